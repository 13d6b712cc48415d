/** The failures of one provider: of a known type, without its key, with a message of limited length. */
import { errorMessage } from "../errors.ts";
import { LLMError, type LLMErrorOptions } from "../llm_errors.ts";
import type { Attempt } from "./attempt.ts";
import type { Backend } from "./backend.ts";

/** Least characters of a key; local servers take any text, such as `none`. */
const MIN_KEY_LENGTH = 8;

/** Maximum code units of the message of a failure: some servers answer with a page or the whole request. */
const MAX_MESSAGE_CHARS = 4000;

export class ProviderFailures {
  readonly #provider: string;
  readonly #api_key: string;

  /** @param provider Name in the failures. */
  constructor(provider: string, api_key = "") {
    this.#provider = provider;
    this.#api_key = api_key;
  }

  /** Returns the failure of an attempt. `error`: what it threw. */
  ofAttempt(
    error: unknown,
    attempt: Attempt,
    backend: Backend,
    facts: Pick<LLMErrorOptions, "model" | "usage">,
  ): LLMError {
    const known = attempt.failure ?? (error instanceof LLMError ? error : backend.toError(error));
    const { message, cause = error, retryable, delay_multiplier, status_code, retry_after } = known;
    const { limit_tokens, requested_tokens } = known;
    // a connection that broke after the response began is a stream that broke
    const type = known.type === "NetworkError" && attempt.received ? "StreamError" : known.type;
    return this.create(type, message, {
      ...facts,
      cause: this.#withoutKeyIn(cause),
      retryable,
      delay_multiplier,
      status_code,
      retry_after,
      limit_tokens,
      requested_tokens,
    });
  }

  /** Returns the failure of a call that was cancelled. */
  aborted(cause: unknown, facts: Pick<LLMErrorOptions, "model" | "usage">): LLMError {
    return this.create("AbortError", "Cannot finish the model call: it was cancelled", { cause, ...facts });
  }

  /** Creates a failure. */
  create(type: LLMError["type"], message: string, options: LLMErrorOptions): LLMError {
    const text = this.#withoutKey(message);
    const cut = text.length > MAX_MESSAGE_CHARS ? `${text.slice(0, MAX_MESSAGE_CHARS)} …` : text;
    return new LLMError(type, cut.toWellFormed(), { provider: this.#provider, ...options });
  }

  /** Returns an error without the key: undefined when its message repeats it. */
  #withoutKeyIn(cause: unknown): unknown {
    const message = errorMessage(cause);
    return this.#withoutKey(message) === message ? cause : undefined;
  }

  /** Removes the key from a message: some servers repeat it in their errors. A short text is not a key. */
  #withoutKey(message: string): string {
    const key = this.#api_key;
    return key.length < MIN_KEY_LENGTH ? message : message.replaceAll(key, "[REDACTED]");
  }
}
