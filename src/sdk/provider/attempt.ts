/** The attempts of a call: the watch over each one, and the rule by which they are repeated. */
import { untilAborted } from "../abortable.ts";
import type { Clock } from "../contracts.ts";
import { GrowingText } from "../growing_text.ts";
import { LLMError } from "../llm_errors.ts";
import { isBrokenStream, isPassing } from "../loop/provider_errors.ts";
import type { StreamDelta } from "../messages.ts";
import { RetryConfig, retryDelay, type RetryNotice } from "../retry.ts";
import { AnswerSize } from "./answer_size.ts";
import { type AnswerUsage, type CallIo, withWatchedBody } from "./backend.ts";
import type { ProviderSettings } from "./settings.ts";

/**
 * Reason of the abort after the end of an attempt. perf: without one, each abort creates an error with a
 * stack.
 */
const ENDED = "the attempt has ended";

/** Bytes of white space and of a byte order mark. */
const BLANK: ReadonlySet<number> = new Set([...new TextEncoder().encode("\t\n\r \ufeff")]);
/** First byte of a page of HTML; no answer in JSON or in events begins with it. */
const PAGE_BEGIN = 0x3c;
/** First bytes of an answer in JSON; no stream of events begins with them. */
const JSON_BEGINS: ReadonlySet<number | undefined> = new Set(new TextEncoder().encode("{["));

export interface AttemptOptions {
  readonly clock: Clock;
  readonly settings: Pick<
    ProviderSettings,
    "timeout_s" | "first_byte_timeout_s" | "idle_timeout_s"
  >;
  /** Maximum bytes of an answer. */
  readonly max_answer_bytes: number;
  /** Aborts when the caller cancels. */
  readonly signal: AbortSignal | undefined;
  /** Receives deltas; absent when the answer is not streamed. */
  readonly onDelta: ((delta: StreamDelta) => void) | undefined;
}

/**
 * One attempt of a call. The reason of an abort by the attempt itself is an LLMError, which
 * {@link Attempt.failure} returns.
 */
export class Attempt {
  readonly #options: AttemptOptions;
  readonly #abort = new AbortController();
  /** Milliseconds on the session's clock. */
  readonly #started_ms: number;
  #last_ms: number;
  #ended = false;
  /** Whether a delta was emitted: another attempt must not follow it. */
  emitted = false;
  /** Whether any byte of a response arrived. */
  received = false;
  /** Tokens that the server has counted so far. */
  usage: AnswerUsage | undefined;
  readonly #text = new GrowingText();

  /** Starts the timeouts. */
  constructor(options: AttemptOptions) {
    this.#options = options;
    this.#started_ms = this.#last_ms = options.clock.monotonic();
  }

  /** The failure for which the attempt aborted itself, or null. */
  get failure(): LLMError | null {
    const { reason } = this.#abort.signal;
    return reason instanceof LLMError ? reason : null;
  }

  /** Text of the deltas that were emitted. */
  get text(): string {
    return this.#text.value;
  }

  /** Runs `send`. Rejects at an abort even if `send` does not. */
  async run<T>(send: (io: CallIo) => Promise<T>): Promise<T> {
    const { signal, onDelta } = this.#options;
    signal?.throwIfAborted();
    const joined = signal ? AbortSignal.any([signal, this.#abort.signal]) : this.#abort.signal;
    void this.#watch();
    const io: CallIo = {
      signal: joined,
      fetch: (input, init) => this.#fetch(input, init, joined),
      onUsage: (usage) => this.usage = usage,
      ...(onDelta ? { onDelta: (delta: StreamDelta) => this.#emit(onDelta, delta) } : {}),
    };
    try {
      return await untilAborted(joined, send(io));
    } finally {
      this.#ended = true;
      this.#abort.abort(ENDED); // ends the watch, and a response that is not read to its end
    }
  }

  #emit(onDelta: (delta: StreamDelta) => void, delta: StreamDelta): void {
    if (this.#ended) return;
    this.emitted = true;
    this.#text.append(delta.delta);
    onDelta(delta);
  }

  async #fetch(
    input: Parameters<typeof fetch>[0],
    init: RequestInit | undefined,
    signal: AbortSignal,
  ): Promise<Response> {
    const response = await fetch(input, { ...init, redirect: "manual" });
    this.#refuseRedirect(input, response);
    this.#noteChunk();
    const size = new AnswerSize(this.#options.max_answer_bytes, response.headers.get("content-type") ?? "");
    const onChunk = (chunk: Uint8Array) => this.#onChunk(chunk, size);
    if (response.body === null) return response;
    if (!response.ok) return await readFailure(withWatchedBody(response, onChunk, signal));
    const begin = await readBegin(response.body, onChunk);
    const first = begin.at(-1)?.find((byte) => !BLANK.has(byte));
    if (first === PAGE_BEGIN) this.#refusePage(input);
    const watched = withWatchedBody(response, onChunk, signal, begin);
    // proxies label streams as JSON, and answers in JSON as something else
    const is_json = JSON_BEGINS.has(first);
    if (is_json !== /json/i.test(watched.headers.get("content-type") ?? "")) {
      watched.headers.set("content-type", is_json ? "application/json" : "text/plain");
    }
    return watched;
  }

  /** The media type does not show a page, such as of a proxy: proxies also label answers as pages. */
  #refusePage(input: Parameters<typeof fetch>[0]): void {
    const { origin, pathname } = new URL(input instanceof Request ? input.url : input);
    const message =
      `Cannot read the answer: ${origin}${pathname} answers with a page of HTML; check base_url`;
    this.#abort.abort(new LLMError("InvalidRequestError", message));
    this.#abort.signal.throwIfAborted();
  }

  /** The plan states where its requests go: another address would get the plan's headers and the history. */
  #refuseRedirect(input: Parameters<typeof fetch>[0], { status, headers }: Response): void {
    const location = headers.get("location");
    if (status < 300 || status > 399 || location === null) return;
    const from = new URL(input instanceof Request ? input.url : input);
    const to = URL.canParse(location, from) ? new URL(location, from) : from;
    const message =
      `Cannot send the request: ${from.origin}${from.pathname} redirects to ${to.origin}${to.pathname}; ` +
      "set base_url to the address that answers";
    this.#abort.abort(new LLMError("InvalidRequestError", message, { status_code: status }));
    this.#abort.signal.throwIfAborted();
  }

  #noteChunk(): void {
    this.received = true;
    this.#last_ms = this.#options.clock.monotonic();
  }

  #onChunk(chunk: Uint8Array, size: AnswerSize): void {
    this.#noteChunk();
    const fact = size.add(chunk);
    if (fact === undefined) return;
    this.#abort.abort(new LLMError("LLMError", `Cannot read the answer: ${fact}`));
    this.#abort.signal.throwIfAborted();
  }

  /** Aborts at the first timeout that is reached. One wait at a time, whatever the number of chunks. */
  async #watch(): Promise<void> {
    const { clock, settings: { timeout_s, first_byte_timeout_s, idle_timeout_s }, onDelta } = this.#options;
    const { signal } = this.#abort;
    const end_ms = this.#started_ms + timeout_s * 1000;
    try {
      for (;;) {
        // without a stream, the body arrives in one piece after the model's whole time
        const idle_s = this.received ? idle_timeout_s : first_byte_timeout_s;
        const idle_ms = onDelta ? this.#last_ms + idle_s * 1000 : Infinity;
        const now = clock.monotonic();
        if (now >= end_ms) {
          return this.#expire(`the model did not finish its answer within ${timeout_s} s (timeout_s)`);
        }
        if (now >= idle_ms) {
          const name = this.received ? "idle_timeout_s" : "first_byte_timeout_s";
          return this.#expire(`the model's server sent nothing for ${idle_s} s (${name})`);
        }
        await clock.after(Math.min(end_ms, idle_ms) - now, signal);
      }
    } catch {
      return; // the attempt has ended
    }
  }

  #expire(fact: string): void {
    this.#abort.abort(new LLMError("LLMTimeoutError", `Cannot finish the model call: ${fact}`));
  }
}

/** The data of the first event of a body, after a few comments and other fields. */
const FIRST_EVENT = /^\s*(?:(?:event|id|retry)?:[^\r\n]*[\r\n]+){0,20}data:([^\r\n]*)/;

/**
 * Resolves to a response with a failure whose body is the error itself: some servers of streams state it as
 * an event, which clients do not read in such a response.
 */
async function readFailure(response: Response): Promise<Response> {
  const text = await response.text().catch(() => ""); // broken off: the status says enough
  const { status, statusText, headers } = response;
  return new Response(FIRST_EVENT.exec(text)?.[1]?.trim() ?? text, { status, statusText, headers });
}

/**
 * Resolves to the chunks of a body up to the first one with more than white space. A body that breaks in them
 * breaks again for its next reader.
 */
async function readBegin(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  onChunk: (chunk: Uint8Array) => void,
): Promise<Uint8Array<ArrayBuffer>[]> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  const reader = body.getReader();
  for (;;) {
    const { value } = await reader.read().catch(() => ({ value: undefined }));
    if (value) {
      chunks.push(value);
      onChunk(value);
    }
    if (value?.every((byte) => BLANK.has(byte))) continue;
    reader.releaseLock();
    return chunks;
  }
}

/** What the attempts of one call depend on. */
export interface RetryDeps extends AttemptOptions {
  readonly settings: AttemptOptions["settings"] & Pick<ProviderSettings, "max_retries">;
  /** Returns the milliseconds left in the run; a longer wait is not started. */
  leftMs(): number;
  /** Called before each wait, and awaited. */
  onRetry(notice: RetryNotice, error: LLMError): unknown;
}

/**
 * Resolves to the result of the first attempt that succeeds, else rejects with the last failure. A failure is
 * repeated when it may pass, no delta was emitted, and the run has time for the wait. A response that broke
 * off is repeated once. A wait is at least as long as the server asked for.
 *
 * @param run Runs an attempt; rejects with an LLMError.
 */
export async function tryUntilAnswered<T>(
  run: (attempt: Attempt) => Promise<T>,
  deps: RetryDeps,
): Promise<T> {
  const { clock, settings, signal, leftMs, onRetry } = deps;
  const { max_retries } = settings;
  const config = RetryConfig({ max_retries });
  let broken_off = 0;
  for (let count = 1;; count++) {
    const attempt = new Attempt(deps);
    try {
      return await run(attempt);
    } catch (thrown) {
      const error = thrown as LLMError; // `run` rejects with nothing else
      if (count > max_retries || signal?.aborted || attempt.emitted || !isPassing(error)) throw error;
      if (error.delay_multiplier === 0) throw error; // such as of a server that does not run
      if (hasBrokenOff(error, attempt) && broken_off++ > 0) throw error;
      // jitter is a factor of 0.5 to 1.5; from 1 on the wait is as long as the server asked for
      const fraction = error.retry_after === null ? Math.random() : 0.5 + Math.random() / 2;
      const delay = retryDelay(count, error, config, () => fraction);
      if (delay * 1000 > leftMs()) throw error;
      const { type: error_type, message: error_message } = error;
      await onRetry({ attempt: count, max_retries, delay, error_type, error_message }, error);
      await clock.after(delay * 1000, signal);
    }
  }
}

function hasBrokenOff(error: LLMError, { received }: Attempt): boolean {
  return isBrokenStream(error) || received && error.type === "LLMTimeoutError";
}
