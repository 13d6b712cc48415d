/**
 * Turns estimated tokens into the provider's: by what it reported for the last request, and by what text added since then
 * has cost so far (context.md, Token meter). Arithmetic only: the same observations give the same numbers.
 */

/** Reports below this share of the estimate, or above its inverse, speak of something else (cached input left out, a script). */
const LEAST_SHARE = 0.5;

/** Estimated tokens that the first report weighs against what is learned from growth; our choice. */
const PRIOR_TOKENS = 2000;

/** One request and what the provider said of it. Tokens. */
export interface Observation {
  /** Estimate of the view. */
  readonly view: number;
  /** Estimate of what went with it: tool schemas, injections. */
  readonly extras: number;
  /** `usage.input_tokens`. */
  readonly reported: number;
}

/** As kept with an escalation: view and messages of the last report, growth as estimated and as reported. */
export type SavedCalibration = readonly [view: number, messages: number, estimated: number, reported: number];

/** See the top of the file. Before the first observation, an estimate stands for itself. */
export class Calibration {
  #anchor: { view: number; messages: number } | null = null;
  #estimated = 0;
  #reported = 0;

  /** Whether a provider has reported a usage. */
  get isKnown(): boolean {
    return this.#anchor !== null;
  }

  /** Learns from one request; a report that cannot be about this request is left out. */
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

  /** Returns the tokens that a view of this estimate takes. */
  tokensOf(view: number): number {
    if (!this.#anchor) return view;
    return Math.max(0, Math.round(this.#anchor.messages + (view - this.#anchor.view) * this.#rate));
  }

  /** Returns the estimate of a view that takes this many tokens; may be negative. */
  estimateOf(tokens: number): number {
    if (!this.#anchor) return tokens;
    return this.#anchor.view + (tokens - this.#anchor.messages) / this.#rate;
  }

  /** Tokens for one estimated token of what is added. */
  get #rate(): number {
    if (!this.#anchor) return 1;
    const first = this.#anchor.messages / this.#anchor.view;
    return (this.#reported + PRIOR_TOKENS * first) / (this.#estimated + PRIOR_TOKENS);
  }

  /** Returns what {@link restore} takes; null before the first observation. */
  save(): SavedCalibration | null {
    return this.#anchor ? [this.#anchor.view, this.#anchor.messages, this.#estimated, this.#reported] : null;
  }

  /** Goes on from what was saved. */
  restore([view, messages, estimated, reported]: SavedCalibration): void {
    this.#anchor = { view, messages };
    this.#estimated = estimated;
    this.#reported = reported;
  }
}

function isPlausible(reported: number, estimated: number): boolean {
  return estimated > 0 && reported >= estimated * LEAST_SHARE && reported <= estimated / LEAST_SHARE;
}
