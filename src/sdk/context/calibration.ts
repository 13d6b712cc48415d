/** Corrects estimated tokens by the usage that the provider reports. */
import { type Coordinator, isObject } from "../base.ts";

/** Values of the setting `token_meter`. */
export type TokenMeter = "estimate" | "calibrated";

/**
 * Reports below this share of the estimate, or above its inverse, are ignored: they do not describe this
 * request, for example when cached input is left out.
 */
const LEAST_SHARE = 0.5;

/** Weight, in estimated tokens, of the first report against later growth; an assumed value. */
const PRIOR_TOKENS = 2000;

/** One request and its reported usage, in tokens. */
export interface Observation {
  /** Estimate of the view. */
  readonly view: number;
  /** Estimate of the tool schemas and injections. */
  readonly extras: number;
  /** Tokens of the request by the usage of its answer. */
  readonly reported: number;
}

/** Saved form: view and message tokens of the last report, growth as estimated and as reported. */
export type SavedCalibration = readonly [view: number, messages: number, estimated: number, reported: number];

/**
 * Converts between estimated and provider's tokens, using the usage that the provider reported for the last
 * request and for the growth since then. Before the first observation, both are equal.
 */
export class Calibration {
  #anchor: { view: number; messages: number } | null = null;
  #estimated = 0;
  #reported = 0;

  /** Whether a provider has reported a usage. */
  get isKnown(): boolean {
    return this.#anchor !== null;
  }

  /** Updates the calibration with one request; ignores implausible reports. */
  observe({ view, extras, reported }: Observation): void {
    const messages = reported - extras;
    if (!isPlausible(messages, view)) return;
    const before = this.#anchor;
    if (before && view > before.view && isPlausible(messages - before.messages, view - before.view)) {
      this.#estimated += view - before.view;
      this.#reported += messages - before.messages;
    }
    this.#anchor = { view, messages };
  }

  /** Returns the provider's tokens of a view with this estimate. */
  tokensOf(view: number): number {
    if (!this.#anchor) return view;
    return Math.max(0, Math.round(this.#anchor.messages + (view - this.#anchor.view) * this.#rate));
  }

  /** Returns the estimate of a view with this number of provider's tokens; may be negative. */
  estimateOf(tokens: number): number {
    if (!this.#anchor) return tokens;
    return this.#anchor.view + (tokens - this.#anchor.messages) / this.#rate;
  }

  /** Provider's tokens per estimated token of added text. */
  get #rate(): number {
    if (!this.#anchor) return 1;
    const first = this.#anchor.messages / this.#anchor.view;
    return (this.#reported + PRIOR_TOKENS * first) / (this.#estimated + PRIOR_TOKENS);
  }

  /** Returns the saved form; null before the first observation. */
  save(): SavedCalibration | null {
    return this.#anchor ? [this.#anchor.view, this.#anchor.messages, this.#estimated, this.#reported] : null;
  }

  restore([view, messages, estimated, reported]: SavedCalibration): void {
    this.#anchor = { view, messages };
    this.#estimated = estimated;
    this.#reported = reported;
  }
}

function isPlausible(reported: number, estimated: number): boolean {
  return estimated > 0 && reported >= estimated * LEAST_SHARE && reported <= estimated / LEAST_SHARE;
}

/**
 * Feeds reported usage to a {@link Calibration}. Does nothing unless enabled. The capability
 * `session.last_usage` returns the last request's, with the number of its answer in the session, from 1;
 * `session.usages` the logged ones of earlier runs, each with the length of the history at its request.
 * `input_tokens` are those of the request, cache writes included. So a restarted session counts like the old
 * one, and the same observations give the same numbers.
 */
export class ReportedUsage {
  readonly #coordinator: Pick<Coordinator, "getCapability">;
  readonly #enabled: boolean;
  #last_request: { view: number; extras: number } | null = null;
  /** Number of the last answer that was used. */
  #answer = 0;
  /** Logged usages by length of the history; read once, for the initial history of the session. */
  #logged: Map<number, number> | null = null;
  /** Requests of earlier runs; their tool schemas are unknown until the first request of this run. */
  #earlier: { view: number; reported: number }[] = [];

  constructor(coordinator: Pick<Coordinator, "getCapability">, enabled: boolean) {
    this.#coordinator = coordinator;
    this.#enabled = enabled;
  }

  /** Reads the logged usages when a history is set for the first time. */
  begin(): void {
    const first = this.#logged === null;
    this.#logged = new Map();
    if (!this.#enabled || !first) return;
    const read = this.#coordinator.getCapability("session.usages");
    const usages: unknown = typeof read === "function" ? read() : [];
    if (!Array.isArray(usages)) return; // a promise when this module is sandboxed: it then uses its saved state
    for (const usage of usages) {
      if (isUsage(usage, "messages")) this.#logged.set(usage.messages, usage.input_tokens);
    }
  }

  /** Collects the logged usage of the request made with this number of messages, if any. */
  recall(messages: number, view: () => number): void {
    const reported = this.#logged?.get(messages);
    if (reported !== undefined) this.#earlier.push({ view: view(), reported });
  }

  /** Drops requests that were not used yet. */
  forget(): void {
    this.#earlier = [];
    this.#last_request = null;
  }

  /** Calibrates with the requests of earlier runs, assuming the tools of the first request of this run. */
  learn(tools: number, calibration: Calibration): void {
    if (this.#earlier.length === 0) return;
    for (const { view, reported } of this.#earlier) calibration.observe({ view, extras: tools, reported });
    this.#earlier = [];
  }

  /** Calibrates with the usage of the last request, if it was reported. */
  async learnLast(calibration: Calibration): Promise<void> {
    if (!this.#enabled) return;
    const read = this.#coordinator.getCapability("session.last_usage");
    const last: unknown = typeof read === "function" ? await read() : null; // a promise in a sandbox
    const request = this.#last_request;
    this.#last_request = null; // also when its answer had no usage
    if (!isUsage(last, "answer") || last.answer === this.#answer) return;
    this.#answer = last.answer;
    if (request) calibration.observe({ ...request, reported: last.input_tokens });
  }

  /** Calibrates with a request that the provider refused, if it said how many tokens it has. */
  learnRefused(
    { view, extras, reported }: { view: number; extras: number; reported: number | null },
    calibration: Calibration,
  ): void {
    if (this.#enabled && reported !== null) calibration.observe({ view, extras, reported });
  }

  /** Records the estimates of the current request. */
  recordRequest(view: number, extras: number): void {
    if (this.#enabled) this.#last_request = { view, extras };
  }
}

function isUsage<Key extends string>(
  value: unknown,
  key: Key,
): value is Record<Key | "input_tokens", number> {
  return isObject(value) && typeof value[key] === "number" && typeof value.input_tokens === "number";
}
