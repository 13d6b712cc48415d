/**
 * Limits of a run, shared by all its sessions. Guards reserve tokens before a call and count tokens and
 * dollars after it. The limits and their defaults: src/docs/operating.md#limits.
 */
import { errorCode, PreampError } from "../sdk/errors.ts";
import { isObject } from "../sdk/json.ts";
import { formatDecimal, parseDecimal } from "../sdk/money.ts";
import type { RaisableLimit, RunLimits, Usage } from "../sdk/types.ts";
import type { HostClock } from "./host.ts";
import { StepAbort } from "./timeouts.ts";

/** Fewest output tokens that a lowered reservation may have. */
const MIN_OUTPUT_TOKENS = 256;

/** Options of {@link RunLimitGuard}. */
export interface RunLimitOptions {
  /** Default: those of the parent. */
  limits?: RunLimits;
  /** Whether the plan or request set `max_cost_usd`: then a call without a price ends the run. */
  cost_limit_is_set?: boolean;
  clock: HostClock;
  /**
   * Limits of the parent: a sub-agent's calls count against its own limits and its parent's. The last model
   * call is the parent's, unless a person may raise the limit.
   */
  parent?: RunLimitGuard;
}

/** A reservation for one model call; call `settle` exactly once. */
export interface Reservation {
  /** Maximum output tokens of the call, lowered to what is left. */
  readonly max_output_tokens: number;
  /**
   * Counts the usage of the answer; null: the call failed. Throws when an answer without a price must end the
   * run.
   * @param is_answered Whether the call counts for `max_iterations`. Default: an answer does.
   */
  settle(usage: Usage | null, is_answered?: boolean): void;
}

/** Amounts that a run had used before it was interrupted. */
export interface UsedLimits {
  model_calls: number;
  tool_calls: number;
  tokens: number;
  cost_usd: string | null;
  duration_ms: number;
}

/** Counts usage of a run and throws when a limit is reached. */
export class RunLimitGuard {
  /** Undefined: those of the parent. */
  #limits: RunLimits | undefined;
  /** Aborts with `limit_reached` when a limit ends the run, or the parent's run while a session works. */
  readonly ending = new StepAbort();
  readonly #options: RunLimitOptions;
  readonly #endWithParent = (reason: unknown): void => this.ending.abort(reason);
  /** Values of the limits; infinite where a sub-agent has that of its parent, which decides. */
  #max = { iterations: 0, tool_calls: 0, tokens: 0 };
  /** Null: that of the parent. */
  #max_cost: bigint | null = null;
  /** Open questions about limits of the run: steps that reach the same limit share one. */
  #questions: Map<RaisableLimit, Promise<boolean | null>> | null = null;
  #answered = 0;
  #pending = 0;
  #tool_calls = 0;
  #tokens = 0;
  #reserved_tokens = 0;
  #cost = 0n;
  #used_ms = 0;
  #started_at: number | null = null;
  /** The clock runs while there is a running session and no pending approval. */
  #working = 0;
  #waiting = 0;
  #stop_timer: (() => void) | null = null;

  constructor(options: RunLimitOptions) {
    this.#options = options;
    if (options.limits) this.#apply(options.limits);
    else this.#max = { iterations: Infinity, tool_calls: Infinity, tokens: Infinity };
  }

  #apply(limits: RunLimits): void {
    this.#limits = Object.isFrozen(limits) ? limits : Object.freeze({ ...limits }); // modules have a reference to it
    const outer = this.#options.parent?.limits;
    const own = (name: RaisableLimit) => limits[name] !== outer?.[name];
    this.#max = {
      iterations: own("max_iterations") ? limits.max_iterations : Infinity,
      tool_calls: own("max_tool_calls") ? limits.max_tool_calls : Infinity,
      tokens: own("max_total_tokens") ? limits.max_total_tokens : Infinity,
    };
    this.#max_cost = own("max_cost_usd") ? parseDecimal(limits.max_cost_usd) : null;
  }

  /** The limits that apply now. */
  get limits(): RunLimits {
    return this.#limits ?? this.#options.parent!.limits; // one of the two is there
  }

  /** Sets limits that a person has raised. Sub-agents keep limits of their own. */
  raise(limits: Partial<RunLimits>): void {
    this.#apply({ ...this.limits, ...limits });
  }

  /** Returns what was used of a limit, as the limit is written. */
  used(limit: RaisableLimit): number | string {
    switch (limit) {
      case "max_iterations":
        return this.#answered + this.#pending;
      case "max_tool_calls":
        return this.#tool_calls;
      case "max_total_tokens":
        return this.#tokens + this.#reserved_tokens;
      case "max_cost_usd":
        return formatDecimal(this.#cost);
    }
  }

  /**
   * Resolves to whether a limit was raised, as `ask` does; while it is asked, further callers wait for the
   * same answer.
   */
  askOnce(limit: RaisableLimit, ask: () => Promise<boolean | null>): Promise<boolean | null> {
    const questions = this.#questions ??= new Map();
    let answer = questions.get(limit);
    if (!answer) {
      answer = ask().finally(() => questions.delete(limit));
      questions.set(limit, answer);
    }
    return answer;
  }

  /**
   * Reserves tokens for one model call.
   * @throws {PreampError} `limit_reached` for max_iterations, max_total_tokens, max_cost_usd or
   * max_duration_s.
   */
  reserveCall(input_tokens: number, max_output_tokens: number): Reservation {
    if (this.over !== null) throw this.over;
    const { limits } = this;
    if (this.#answered + this.#pending >= this.#max.iterations) {
      throw this.#reached("max_iterations", `${limits.max_iterations} model calls were answered`);
    }
    if (this.#kept_calls > 0 && this.calls_left === 0) {
      throw this.#reached(
        "max_iterations",
        "the last model call is that of the session which started this one",
      );
    }
    if (this.#max_cost !== null && this.#cost >= this.#max_cost) {
      throw this.#reached("max_cost_usd", `the run has cost ${limits.max_cost_usd} US dollars`);
    }
    const left = this.#max.tokens - this.#tokens - this.#reserved_tokens - input_tokens;
    const own_output = Math.min(max_output_tokens, left);
    if (own_output < Math.min(MIN_OUTPUT_TOKENS, max_output_tokens)) {
      throw this.#reached(
        "max_total_tokens",
        `of ${limits.max_total_tokens} tokens too few are left for another model call`,
      );
    }
    const outer = this.#options.parent?.reserveCall(input_tokens, own_output);
    const output = outer?.max_output_tokens ?? own_output;
    const reserved = input_tokens + output;
    this.#reserved_tokens += reserved;
    this.#pending++;
    let open = true;
    return {
      max_output_tokens: output,
      settle: (usage, is_answered = usage !== null) => {
        if (!open) return;
        open = false;
        this.#reserved_tokens -= reserved;
        this.#pending--;
        if (is_answered) this.#answered++;
        try {
          if (usage) this.#settle(usage);
        } finally {
          outer?.settle(usage, is_answered);
        }
      },
    };
  }

  #settle(usage: Usage): void {
    this.#add(usage);
    if (usage.cost_usd === null && this.#options.cost_limit_is_set) {
      throw reached(
        "max_cost_usd",
        'the provider reported no cost for this call; set config.prices of the provider, such as {input: "3", ' +
          'output: "15"} in US dollars per million tokens, or leave max_cost_usd out',
      );
    }
  }

  /** Counts the usage that an event states: of a part of an answer, or of an answer of a loop's own model. */
  countPart(usage: Usage): void {
    this.#options.parent?.countPart(usage);
    this.#add(usage);
  }

  #add({ total_tokens, cost_usd }: Pick<Usage, "total_tokens" | "cost_usd">): void {
    this.#tokens += total_tokens;
    if (cost_usd !== null) this.#cost += parseDecimal(cost_usd);
  }

  /** Adds the usage of the run before it was interrupted. */
  restore(used: UsedLimits): void {
    this.#answered += used.model_calls;
    this.#tool_calls += used.tool_calls;
    this.#add({ total_tokens: used.tokens, cost_usd: used.cost_usd });
    this.#used_ms += used.duration_ms;
  }

  /** Counts one tool call. @throws {PreampError} `limit_reached` after `max_tool_calls` calls. */
  countToolCall(): void {
    if (this.over !== null) throw this.over;
    if (this.#tool_calls >= this.#max.tool_calls) {
      throw this.#reached("max_tool_calls", `${this.limits.max_tool_calls} tool calls were made`);
    }
    this.#options.parent?.countToolCall();
    this.#tool_calls++;
  }

  /** Number of model calls that are neither answered nor open, without the one that a parent keeps. */
  get calls_left(): number {
    const own = this.#max.iterations - this.#answered - this.#pending;
    const outer = this.#options.parent?.calls_left ?? Infinity;
    return Math.max(0, Math.min(own, outer - this.#kept_calls));
  }

  /** Model calls of the parent that a sub-agent leaves. */
  get #kept_calls(): number {
    return this.#options.parent && this.limits.on_limit !== "pause" ? 1 : 0;
  }

  /** Number of tokens that are neither used nor reserved. */
  get tokens_left(): number {
    const own = this.#max.tokens - this.#tokens - this.#reserved_tokens;
    return Math.max(0, Math.min(own, this.#options.parent?.tokens_left ?? own));
  }

  /** Milliseconds that the run may still work. */
  get left_ms(): number {
    const { clock, parent } = this.#options;
    const working_ms = this.#started_at === null ? 0 : clock.monotonic() - this.#started_at;
    const own = this.limits.max_duration_s * 1000 - this.#used_ms - working_ms;
    return Math.min(own, parent?.left_ms ?? own);
  }

  /** Error of the limit that ended the run; null before. */
  get over(): PreampError | null {
    return this.ending.reason as PreampError | null; // only limits end it
  }

  /** Aborts with {@link over}. */
  get signal(): AbortSignal {
    return this.ending.signal;
  }

  /** Notes that a session started work. The run's clock runs until the last session calls {@link stop}. */
  start(): void {
    const { parent } = this.#options;
    parent?.start();
    if (this.#working++ === 0) parent?.ending.add(this.#endWithParent);
    this.#updateClock();
  }

  /** Notes that a session stopped work. */
  stop(): void {
    const { parent } = this.#options;
    parent?.stop();
    if (--this.#working === 0) parent?.ending.remove(this.#endWithParent);
    this.#updateClock();
  }

  /** Runs `wait` with the clock stopped: waiting for a person does not count. Several calls may overlap. */
  async paused<T>(wait: () => Promise<T>): Promise<T> {
    const { parent: within } = this.#options;
    this.#waiting++;
    this.#updateClock();
    try {
      return await (within ? within.paused(wait) : wait());
    } finally {
      this.#waiting--;
      this.#updateClock();
    }
  }

  #updateClock(): void {
    const { clock } = this.#options;
    const running = this.#working > 0 && this.#waiting === 0 && this.over === null;
    if (running && this.#started_at === null) {
      this.#started_at = clock.monotonic();
      const { max_duration_s } = this.limits;
      const left = Math.max(0, max_duration_s * 1000 - this.#used_ms);
      const end = () =>
        this.ending.abort(reached("max_duration_s", `the run took ${max_duration_s} seconds`));
      this.#stop_timer = clock.later(left, end);
    } else if (!running && this.#started_at !== null) {
      this.#used_ms += clock.monotonic() - this.#started_at;
      this.#started_at = null;
      this.#stop_timer?.();
      this.#stop_timer = null;
    }
  }

  /** Returns the error of a limit, which a person may raise if the plan says so. */
  #reached(limit: RaisableLimit, fact: string): PreampError {
    const error = reached(limit, fact);
    const is_of_run = this.#options.parent === undefined;
    if (is_of_run && this.limits.on_limit === "pause") RAISABLE.set(error, { guard: this, limit });
    return error;
  }

  /** Ends the run for a limit that is counted elsewhere, such as the size of its log. */
  stopFor(limit: string, fact: string): void {
    this.ending.abort(reached(limit, fact));
  }
}

/** Errors of limits that a person may raise. */
const RAISABLE = new WeakMap<object, { guard: RunLimitGuard; limit: RaisableLimit }>();

/** Returns the limit of an error that a person may raise, with its guard; undefined for other errors. */
export function raisableLimit(error: unknown): { guard: RunLimitGuard; limit: RaisableLimit } | undefined {
  return error instanceof PreampError ? RAISABLE.get(error) : undefined;
}

function reached(limit: string, fact: string): PreampError {
  return new PreampError("limit_reached", `The run reached its limit ${limit}: ${fact}`, {
    facts: { limit },
  });
}

/** Returns the name of the limit in a `limit_reached` error, or null. */
export function limitOf(error: unknown): string | null {
  if (errorCode(error) !== "limit_reached") return null;
  const { facts } = error as { facts?: unknown }; // it has a code: it is an object
  return isObject(facts) && typeof facts.limit === "string" ? facts.limit : "limit";
}
