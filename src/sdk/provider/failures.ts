/** The failures of one provider: of a known type, without its key, with a message of limited length. */
import { errorMessage } from "../errors.ts";
import { LLMError, type LLMErrorOptions } from "../llm_errors.ts";
import type { Attempt } from "./attempt.ts";
import type { Backend } from "./backend.ts";
import type { JsonObject } from "../json.ts";
import { originOf, type ProviderDefinition, type ProviderSettings } from "./settings.ts";

/** Least characters of a key; local servers take any text, such as `none`. */
const MIN_KEY_LENGTH = 8;

/** Maximum code units of the message of a failure: some servers answer with a page or the whole request. */
const MAX_MESSAGE_CHARS = 4000;

export class ProviderFailures {
  readonly #provider: string;
  readonly #api_key: string;
  readonly #keyPlaces: () => string;

  /**
   * @param definition Its id is the name in the failures.
   * @param plan The plan as written.
   */
  constructor(
    definition: ProviderDefinition,
    { api_key = "", config }: Pick<ProviderSettings, "api_key" | "config">,
    plan: JsonObject,
  ) {
    this.#provider = definition.id;
    this.#api_key = api_key;
    this.#keyPlaces = () => {
      const { variables } = originOf("api_key", plan, config, definition);
      return variables.join(" or ") || "api_key in the plan";
    };
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
    return this.create(type, this.#explained(type, message, attempt), {
      ...facts,
      hint: this.#hintFor(type),
      cause: this.#withoutKeyIn(cause),
      retryable,
      delay_multiplier,
      status_code,
      retry_after,
      limit_tokens,
      requested_tokens,
    });
  }

  /** Returns a message with how much of the answer came. */
  #explained(type: LLMError["type"], message: string, { emitted, text }: Attempt): string {
    if (!emitted || type !== "StreamError" && type !== "LLMTimeoutError") return message;
    const words = text.match(/\S+/g)?.length ?? 0;
    return `The answer broke off after ${words} ${words === 1 ? "word" : "words"}: ${message}`;
  }

  #hintFor(type: LLMError["type"]): string | undefined {
    if (type === "NotFoundError") return `\`preamp provider models ${this.#provider}\` lists the models`;
    const is_of_key = type === "AuthenticationError" || type === "AccessDeniedError";
    return is_of_key ? `the key is that of ${this.#keyPlaces()}` : undefined;
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
