/** What all parts of one session share: its state, appending entries to the log, cancelling the turn. */
import { errorMessage, PreampError } from "../sdk/errors.ts";
import { eventsWith } from "../sdk/event_table.ts";
import type { ImageBlock } from "../sdk/content_blocks.ts";
import { isObject, type JsonObject, toOwnObject } from "../sdk/json.ts";
import { imagesOf, omitsImages } from "../sdk/result_content.ts";
import type { CancellationToken, Emission, HookRegistry, MountPlan } from "../sdk/types.ts";
import type { RunLimitGuard } from "./run_limits.ts";
import { draftEntry, type Host, isBarrier, type Verdict } from "./host.ts";
import { onAbort } from "../sdk/abortable.ts";
import { type Returned, unknownFields } from "../sdk/returned_fields.ts";
import { describe } from "../sdk/value_path.ts";
import { StepAbort } from "./timeouts.ts";
import type { SessionState } from "./session_state.ts";
import type { CallSteps, Turn } from "./turn.ts";

/** Limits that the kernel enforces beside those of the run. Their defaults: src/docs/operating.md#limits. */
export interface KernelLimits {
  /** Timeout of one tool call, in seconds; 0 = none. */
  tool_timeout_s: number;
  /** Maximum bytes of a tool's output. */
  max_tool_result_bytes: number;
  /** Maximum bytes of the images of a tool's result, in base64. */
  max_tool_image_bytes: number;
  /** Maximum tool calls and content blocks of one answer of a provider. */
  max_answer_tool_calls: number;
  max_answer_blocks: number;
  /** Maximum bytes of one answer, which the provider applies while it reads. */
  max_answer_bytes: number;
  /** Maximum number of handlers that the modules of one session register. */
  max_hooks: number;
  /** Timeout of one cleanup, in seconds. */
  cleanup_timeout_s: number;
  /** Timeout of one call of a hook's handler, in seconds. */
  hook_timeout_s: number;
  /** Maximum time that a person has to answer, in seconds; the default when the hook states none. */
  approval_timeout: number;
  /** Maximum bytes of `session_state` as JSON. */
  max_session_state_bytes: number;
}

/** Unknown fields that are reported in one session: a module may return another one each time. */
const MAX_UNKNOWN = 20;

/** Shared state of one session. Its parts set `hooks` and the steps, the session sets `turn`. */
export class SessionContext {
  hooks!: Pick<HookRegistry, "emit">;
  steps!: CallSteps;
  turn: Turn | null = null;
  /** Whether a turn has begun, also if it has ended. */
  has_begun_turn = false;
  /** Number of the last answer to the loop, from 1, with the tokens of its request; null before the first. */
  last_usage: { answer: number; input_tokens: number } | null = null;
  /** Estimated tokens of the last request's messages, and their budget; set by the provider's guard. */
  request_size = { tokens: 0, budget: 0 };
  /** Settles when `cancel:requested` of this turn was appended; null before it is emitted. */
  cancel_emission: Promise<unknown> | null = null;
  /** Module id → function that locates an error in the module's files. Built-in modules have none. */
  error_locators: Map<string, (error: unknown) => string | undefined> | null = null;

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

  /** Returns the location of an error in the files of any module as `{at}`, or an empty object. */
  errorLocation(error: unknown): { at?: string } {
    for (const placeOf of this.error_locators?.values() ?? []) {
      const at = placeOf(error);
      if (at !== undefined) return { at };
    }
    return {};
  }

  /** Unknown fields that were reported; null: none. */
  #unknown: Set<string> | null = null;

  /** Warns of the fields of what a module returned that are not known: of each once, and of some at most. */
  noteReturned(what: Returned, value: unknown, module_id: string): void {
    for (const field of unknownFields(what, value)) {
      const known = this.#unknown ??= new Set();
      const key = `${module_id} ${what} ${field}`;
      if (known.has(key) || known.size >= MAX_UNKNOWN) continue;
      known.add(key);
      const fact = `returned a ${what} with the unknown key ${describe(field)}`;
      this.host.warn("unknown_key", `Module "${module_id}" ${fact}: this version of Preamp does not use it`);
    }
  }

  /** Ends the current step of the turn. Outside of a turn: never aborted. */
  step = new StepAbort();
  #disarm: (() => void) | null = null;

  /** Starts the steps of a turn, until {@link disarmStep}. */
  armStep(): void {
    const step = this.step = new StepAbort();
    const ignore = onAbort(this.cancellation.signal, () => step.abort(cancelledError()));
    const end = (reason: unknown) => step.abort(reason);
    this.run_limits.ending.add(end);
    this.#disarm = () => {
      ignore();
      this.run_limits.ending.remove(end);
    };
  }

  disarmStep(): void {
    this.#disarm?.();
    this.#disarm = null;
  }

  /**
   * Ends the calls that the loop left running when it returned. The handlers of the turn's last events have a
   * step of their own.
   */
  async endCalls(turn: Turn): Promise<void> {
    const { step } = this;
    this.disarmStep();
    this.armStep();
    step.abort(new PreampError("interrupted", "The turn ended before the call"));
    for (const call of turn.calls) {
      if (call.deadline && !call.done) await (call.over ??= Promise.withResolvers()).promise;
    }
  }

  /** Cancels the turn; emits `cancel:requested` at the first request only. */
  async cancel(mode: "graceful" | "immediate"): Promise<void> {
    const first = !this.cancellation.is_cancelled;
    if (mode === "immediate") this.cancellation.requestImmediate();
    else this.cancellation.requestGraceful();
    if (first) await this.emitCancelRequested();
  }

  /**
   * Emits `cancel:requested`, at most once, and runs the cancellation callbacks. Also called when the parent
   * was cancelled.
   */
  async emitCancelRequested(): Promise<void> {
    await (this.cancel_emission ??= this.hooks.emit("cancel:requested", { state: this.cancellation.state }));
    for (const error of await this.cancellation.triggerCallbacks()) {
      this.host.warn("cancel_callback_failed", errorMessage(error));
    }
  }

  /**
   * Appends an entry. `data` is plain and becomes the entry's own. Returns a promise only when the caller
   * must wait until the entry is durable.
   */
  write(event: string, data: JsonObject, verdict?: Verdict): Promise<void> | void {
    const turn = this.turn?.is_over ? null : this.turn;
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

  /** Appends `session:state` with the keys of `session_state` assigned since the last call, if any. */
  writeState(): Promise<void> | void {
    const set = this.state.takeChanges();
    if (set) return this.write("session:state", { set });
  }

  /** Appends an emission: its data without the fields of the envelope, unless the emitter set them. */
  writeEmission(event: string, emission: Emission, emitted: JsonObject): Promise<void> | void {
    const data = emission.data === emitted ? emitted : withoutEnvelope(emission.data, emitted);
    const kept = emission.modified && OWN_FIELDS.has(event) ? withFacts(data, emitted) : data;
    const images = event === "tool:post" ? this.#imagesOf(kept) : null;
    return this.write(event, toOwnObject(images ? { ...kept, images } : kept), verdictOf(emission));
  }

  /** Returns the images of a result whose event has a text in the place of each; null without any. */
  #imagesOf({ tool_call_id, result }: JsonObject): ImageBlock[] | null {
    if (!isObject(result) || !Array.isArray(result.content)) return null;
    for (const { id, ended } of this.turn?.calls ?? []) {
      const images = id === tool_call_id && ended && "result" in ended ? imagesOf(ended.result.content) : [];
      if (omitsImages(result.content, images)) return images;
    }
    return null;
  }
}

/** Fields that are in the payload for handlers, and in the envelope of the entry. */
const ENVELOPE_FIELDS = new Set<string>(["session_id", "parent_id", "timestamp", "turn_id", "iteration"]);

/**
 * Returns a copy of a payload without the envelope's fields. A copy, because `delete` makes an object
 * permanently slow.
 */
export function withoutEnvelope(payload: JsonObject, emitted: JsonObject = {}): JsonObject {
  const data: JsonObject = {};
  for (const key in payload) { // plain: it inherits nothing
    if (!ENVELOPE_FIELDS.has(key) || Object.hasOwn(emitted, key)) data[key] = payload[key];
  }
  return data;
}

/** Events whose fields are the runtime's. */
const OWN_FIELDS = eventsWith("own_fields");

/** Fields of these that handlers cannot set: the run object, recovery and replay are computed from them. */
const FACTS: ReadonlySet<string> = new Set([
  ...["tool_name", "tool_call_id", "parallel_group_id", "request_id", "approval_id", "sub_session_id"],
  ...["provider", "usage", "response", "error", "inner", "module_id"],
]);

/** Returns data that handlers modified, with the facts that were emitted. */
function withFacts(data: JsonObject, emitted: JsonObject): JsonObject {
  const isFact = ([key]: [string, unknown]) => FACTS.has(key);
  const modified = Object.entries(data).filter((field) => !isFact(field));
  return Object.fromEntries([...Object.entries(emitted).filter(isFact), ...modified]);
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

/** Creates the error that aborted steps reject with on immediate cancellation. */
export function cancelledError(): Error {
  return Object.assign(new Error("Cancelled by user"), { name: "AbortError", code: "cancelled" });
}
