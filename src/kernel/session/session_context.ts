/** What all parts of one session share. Made by the session; has no behaviour but writing entries. */
import { type JsonObject, toPlain, toPlainObject } from "../../sdk/json.ts";
import type { CancellationToken, Emission, MountPlan } from "../../sdk/types.ts";
import type { RunLimitGuard } from "../run_limits.ts";
import type { Hooks } from "../hooks/hooks.ts";
import { draftEntry, type Host, isBarrier, type Verdict } from "../host.ts";
import type { SessionState } from "./session_state.ts";
import type { Turn } from "./turn_state.ts";

/** Limits that the kernel enforces beside the run's ceilings (trust.md, Limits). */
export interface KernelLimits {
  /** Seconds one tool call may take; 0 = none. */
  tool_timeout_s: number;
  /** Bytes of a tool's output that are kept. */
  max_tool_result_bytes: number;
  /** Tool calls and content blocks of one answer of a provider. */
  max_answer_tool_calls: number;
  max_answer_blocks: number;
  /** Handlers that the modules of one session may have registered. */
  max_hooks: number;
  /** Seconds one cleanup may take. */
  cleanup_timeout_s: number;
  /** Seconds one call of a hook's handler may take. */
  hook_timeout_s: number;
  /** Seconds a person has to answer, at most; and when the hook that asks names none. */
  approval_timeout: number;
  /** Bytes of JSON that `session_state` may have. */
  max_session_state_bytes: number;
}

/** The shared parts. `hooks` and `turn` are set by the session. */
export class SessionContext {
  hooks!: Hooks;
  turn: Turn | null = null;
  /** The last answer to the loop: its number in the session, from 1, and what it reported; null before the first. */
  last_usage: { answer: number; input_tokens: number } | null = null;
  /** Tokens of the last request's messages, and of the room they had, as the provider's guard measured them. */
  request_size = { tokens: 0, budget: 0 };
  /** Module id → where in its files an error was thrown; modules that are compiled in are not there. */
  readonly error_locators = new Map<string, (error: unknown) => string | undefined>();

  constructor(
    readonly host: Host,
    readonly plan: MountPlan,
    readonly session_id: string,
    readonly parent_id: string | null,
    readonly state: SessionState,
    readonly run_limits: RunLimitGuard,
    readonly cancellation: CancellationToken,
    readonly limits: KernelLimits,
  ) {}

  /** Returns where in the files of any module an error was thrown, for the log: `{at}`, or nothing. */
  errorLocation(error: unknown): { at?: string } {
    for (const placeOf of this.error_locators.values()) {
      const at = placeOf(error);
      if (at !== undefined) return { at };
    }
    return {};
  }

  /** Aborts a step of the turn: on immediate cancellation and when the time of the run is over. */
  get step_signal(): AbortSignal {
    this.#step ??= new AbortController(); // outside of a turn, where nothing aborts it
    return this.#step.signal;
  }

  #step: AbortController | null = null;

  /** Makes a new step signal for a turn; returns a function that lets go of what it listens to. */
  armStepSignal(): () => void {
    const step = this.#step = new AbortController();
    const cancelled = this.cancellation.signal;
    const expired = this.run_limits.signal;
    const onCancelled = () => step.abort(cancelledError());
    const onExpired = () => step.abort(expired.reason);
    if (cancelled.aborted) onCancelled();
    else cancelled.addEventListener("abort", onCancelled, ONCE);
    if (expired.aborted) onExpired();
    else expired.addEventListener("abort", onExpired, ONCE);
    return () => {
      cancelled.removeEventListener("abort", onCancelled);
      expired.removeEventListener("abort", onExpired);
    };
  }

  /** Tells `execution:start` for a loop whose first act in a turn is another one (R0's does not tell it). */
  beginTurn(event = ""): Promise<unknown> | void {
    const { turn } = this;
    if (turn === null || turn.started || event === "execution:start") return;
    return this.hooks.emit("execution:start", { prompt: turn.prompt });
  }

  /** Writes an entry with these very data (plain, shared with nobody); a promise means: wait until it is durable. */
  write(event: string, data: JsonObject, verdict?: Verdict): Promise<void> | void {
    const { turn } = this;
    const entry = draftEntry(event, this.session_id, data, {
      parent_id: this.parent_id,
      turn_id: turn?.id,
      iteration: turn?.iteration,
      verdict,
    });
    if (isBarrier(entry)) {
      const earlier = this.writeState();
      if (earlier) return earlier.then(() => this.host.record(entry));
    }
    return this.host.record(entry);
  }

  /** Writes what modules assigned to `session_state` since the last time. */
  writeState(): Promise<void> | void {
    const set = this.state.takeChanges();
    if (set) return this.write("session:state", { set });
  }

  /** Writes the entry of an emission: final data without the fields of the envelope, unless the emitter gave them. */
  writeEmission(event: string, emission: Emission, given: JsonObject): Promise<void> | void {
    const data = emission.data === given ? toPlainObject(given) : withoutEnvelope(emission.data, given);
    return this.write(event, data, verdictOf(emission));
  }
}

const ONCE = { once: true } as const;

/** Fields that handlers see in the payload and readers in the envelope (trace.md, section 2). */
const ENVELOPE_FIELDS: ReadonlySet<string> = new Set([
  "session_id",
  "parent_id",
  "timestamp",
  "turn_id",
  "iteration",
]);

/** Returns a copy of a payload without what the envelope says; nothing is deleted, because that makes an object slow for good. */
function withoutEnvelope(payload: JsonObject, given: JsonObject): JsonObject {
  const data: JsonObject = {};
  for (const key in payload) { // plain: what it has is its own
    if (!ENVELOPE_FIELDS.has(key) || Object.hasOwn(given, key)) data[key] = toPlain(payload[key]);
  }
  return data;
}

function verdictOf(emission: Emission): Verdict | undefined {
  if (emission.action === "continue" && !emission.modified) return undefined;
  const verdict: Verdict = { action: emission.action, hook_name: emission.hook_name };
  if (emission.reason !== null) verdict.reason = emission.reason;
  if (emission.modified) verdict.modified = true;
  if (emission.injections.length > 0) {
    verdict.injections = emission.injections.map((injection) => ({ ...injection }));
  }
  return verdict;
}

/** Returns the error that abandoned steps are rejected with on immediate cancellation. */
export function cancelledError(): Error {
  return Object.assign(new Error("Cancelled by user"), { name: "AbortError", code: "cancelled" });
}
