/** What the model of a loop bench says: provider-mock's configs, and the moments in them at which a bench is told. */
import type { Clock, JsonObject } from "../../src/sdk/types.ts";

/** The prompt of every run. */
export const PROMPT = "Work it out.";
/** What every run of {@link scriptOf} answers. */
export const ANSWER = "It is 42.";
/** Deltas of {@link STREAM}. */
export const DELTAS = 1_000;

const CHUNK_CHARS = 20;
/** No timer has this many milliseconds but a probe. */
const PROBE_MS = 86_400_123;

/** An answer of so many deltas. */
export const STREAM: JsonObject = {
  response: "A delta of 20 chars ".repeat(DELTAS),
  chunk_chars: CHUNK_CHARS,
};

/**
 * Returns the config for a run of so many iterations: all but the last call the calculator. At the `probed` calls (from 0) the
 * provider asks its clock to wait, which a {@link ProbeClock} takes for a sign.
 */
export function scriptOf(iterations: number, probed: readonly number[] = []): JsonObject {
  const usage = { input_tokens: 10, output_tokens: 5 };
  const calling = { tool_calls: [{ name: "calculator", arguments: { expression: "6*7" } }], usage };
  const responses: JsonObject[] = Array.from({ length: iterations - 1 }, () => calling);
  responses.push({ text: ANSWER, usage });
  for (const index of probed) responses[index] = { ...responses[index], delay_ms: PROBE_MS };
  return { responses, context_window: 10_000_000 };
}

/** A clock that tells when a script's probe is reached, and waits for nothing then. */
export class ProbeClock implements Clock {
  readonly #real: Clock;
  /** Told at each probe; a promise is waited for. */
  onProbe: () => void = () => {};

  constructor(real: Clock) {
    this.#real = real;
  }

  now(): number {
    return this.#real.now();
  }

  monotonic(): number {
    return this.#real.monotonic();
  }

  after(ms: number, signal?: AbortSignal): Promise<void> {
    if (ms !== PROBE_MS) return this.#real.after(ms, signal);
    this.onProbe();
    return Promise.resolve();
  }
}
