/** Scripts of the loop benches: configs of provider-mock, with probes that notify the bench. */
import type { HostClock } from "../../src/kernel/host.ts";
import type { JsonObject } from "../../src/sdk/types.ts";

/** The prompt of every run. */
export const PROMPT = "Work it out.";
/** The answer of every run of {@link scriptOf}. */
export const ANSWER = "It is 42.";
/** Deltas of {@link STREAM}. */
export const DELTAS = 1_000;

const CHUNK_CHARS = 20;
/** The delay that marks a probe; no real timer uses it. */
const PROBE_MS = 86_400_123;

/** A config with one answer of {@link DELTAS} deltas. */
export const STREAM: JsonObject = {
  response: "A delta of 20 chars ".repeat(DELTAS),
  chunk_chars: CHUNK_CHARS,
};

/**
 * Returns the config for a run of `iterations` iterations; all but the last call the calculator. At the
 * `probed` calls (from 0) the provider waits on its clock for a special delay, which a {@link ProbeClock}
 * recognises.
 */
export function scriptOf(iterations: number, probed: readonly number[] = []): JsonObject {
  const usage = { input_tokens: 10, output_tokens: 5 };
  const calling = { tool_calls: [{ name: "calculator", arguments: { expression: "6*7" } }], usage };
  const responses: JsonObject[] = Array.from({ length: iterations - 1 }, () => calling);
  responses.push({ text: ANSWER, usage });
  for (const index of probed) responses[index] = { ...responses[index], delay_ms: PROBE_MS };
  return { responses, context_window: 10_000_000 };
}

/** A clock that calls `onProbe`, instead of waiting, when a script reaches a probe. */
export class ProbeClock implements HostClock {
  readonly #real: HostClock;
  /** Called at each probe. */
  onProbe: () => void = () => {};

  constructor(real: HostClock) {
    this.#real = real;
  }

  now(): number {
    return this.#real.now();
  }

  monotonic(): number {
    return this.#real.monotonic();
  }

  later(ms: number, callback: () => void): () => void {
    return this.#real.later(ms, callback);
  }

  after(ms: number, signal?: AbortSignal): Promise<void> {
    if (ms !== PROBE_MS) return this.#real.after(ms, signal);
    this.onProbe();
    return Promise.resolve();
  }
}
