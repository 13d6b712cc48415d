/** One session of a replay: orchestrator, context and kernel run, all else is read from the recording. */
import type { RunLimitGuard } from "../../kernel/run_limits.ts";
import type { KernelLimits } from "../../kernel/session/session_context.ts";
import type { Entry, Host } from "../../kernel/host.ts";
import { Session } from "../../kernel/session/session.ts";
import type { MountedDescriptors } from "../../kernel/mounting/mounts.ts";
import type { JsonObject } from "../../sdk/json.ts";
import type { ModuleSpec, MountPlan } from "../../sdk/types.ts";
import type { ModuleReporter, RunnablePlan, SecretSink } from "../ports.ts";
import { knownApproval } from "../run/approval_memory.ts";
import type { RunProjection } from "../run/run_projection.ts";
import type { InitialState } from "../types.ts";
import type { ReplayedSession, Sequencer } from "./sequencer.ts";
import { answersOf, decisionOf, withRecordedCleanups } from "./recorded_results.ts";
import type { VirtualClock } from "./virtual_clock.ts";
import { type EventReader, mountListContext, placeOf, stubFor } from "./stubs.ts";
import type { RecordedEvents } from "./recorded_events.ts";

/** What the sessions of a replay share. */
export interface ReplayParts {
  readonly sequencer: Sequencer;
  readonly clock: VirtualClock;
  readonly projection: RunProjection;
  readonly secrets: SecretSink;
  readonly limits: KernelLimits;
}

/** Options of {@link ReplaySession}. */
export interface ReplaySessionOptions {
  readonly recorded: RecordedEvents;
  readonly ready: RunnablePlan;
  readonly surface: MountedDescriptors;
  readonly limitGuard: RunLimitGuard;
  /** `stop_reason` of the recorded turn. */
  readonly stop_reason: unknown;
  /** State of the session at its start. */
  readonly initial: InitialState;
  /** The session that spawned this one. */
  readonly parent?: ReplayedSession;
}

/** Limits that were applied at recording time and must not be applied again. */
const AS_RECORDED = {
  max_tool_result_bytes: Number.MAX_SAFE_INTEGER,
  max_answer_tool_calls: Number.MAX_SAFE_INTEGER,
  max_answer_blocks: Number.MAX_SAFE_INTEGER,
  max_hooks: Number.MAX_SAFE_INTEGER,
  max_session_state_bytes: Number.MAX_SAFE_INTEGER,
  approval_timeout: Number.MAX_SAFE_INTEGER,
} as const satisfies Partial<KernelLimits>;

/** A session that runs in a replay. */
export class ReplaySession implements ReplayedSession, EventReader {
  readonly session: Session;
  readonly recorded: RecordedEvents;
  readonly limitGuard: RunLimitGuard;
  readonly surface: MountedDescriptors;
  readonly limit: string | null;
  ended = false;
  closed = false;
  assigned: JsonObject = {};
  compared = 0;
  readonly #parts: ReplayParts;
  readonly #options: ReplaySessionOptions;
  /** Entries of the recorded modules that were not mounted yet. */
  readonly #mounted: Entry[];

  constructor(parts: ReplayParts, options: ReplaySessionOptions) {
    const { recorded, ready, surface, limitGuard, stop_reason, initial, parent } = options;
    const { session_state, history, usages, continued } = initial;
    this.#parts = parts;
    this.#options = options;
    this.recorded = recorded;
    this.surface = surface;
    this.limitGuard = limitGuard;
    this.limit = /^limit:(.*)$/.exec(String(stop_reason))?.[1] ?? null;
    this.#mounted = recorded.all(({ event }) => event === "module:mounted");
    this.session = new Session({
      plan: replayedPlan(ready.compiled.plan, this.#mounted),
      written: ready.compiled.written,
      host: this.#host(),
      run_limits: limitGuard,
      limits: { ...parts.limits, ...AS_RECORDED },
      session_id: recorded.session_id,
      parent_id: parent?.recorded.session_id ?? null,
      session_state,
      history,
      usages,
      continued,
    });
  }

  /** Closes the session: what it still emits is ignored. */
  close(): void {
    this.closed = true;
    this.session.cancellation.requestImmediate();
  }

  #host(): Host {
    const { sequencer, clock, projection, secrets } = this.#parts;
    const { recorded } = this;
    return {
      clock,
      newId: (prefix, call) => sequencer.ids.newId(prefix, recorded, this.position, call),
      open: (spec) => this.#open(spec),
      record: (entry) => {
        if (this.closed) return;
        if (entry.event === "session:cleanup") entry.data = withRecordedCleanups(entry.data, recorded);
        return sequencer.record(entry, this);
      },
      async ask({ approval_id }) {
        const decision = decisionOf(recorded, approval_id);
        return decision === undefined ? await new Promise(() => {}) : decision;
      },
      knownApproval: (question, id) => knownApproval(projection.approvals, question, id),
      rememberedApproval: (question, id) => projection.answerTo(question, id),
      accept() {}, // the run exists
      recordedResult: (event, data) => sequencer.emissionFor(event, data, recorded),
      recordedAnswers: (_event, data) => answersOf(recorded, this.position, data),
      redactEvent: (event, data) => secrets.redactEvent(event, data),
      warn() {},
    };
  }

  async #open(spec: ModuleSpec) {
    const entry = this.#mounted.shift(); // modules are mounted in the order of the log
    if (!entry) return await new Promise<never>(() => {}); // the process ended before this module was mounted
    const { isolation, integrity, name, version, provides } = entry.data;
    const descriptor = {
      isolation: isolation as "inline", // as recorded
      integrity: integrity as string | null,
      stated: { name, version, provides },
    };
    if (spec.type === "context" && this.recorded.foreign_context) {
      return { module: { mount: mountListContext }, config: {}, ...descriptor };
    }
    if (spec.type === "orchestrator" || spec.type === "context") {
      return { ...await this.#options.ready.open(spec, this.#parts.secrets, SILENT), ...descriptor };
    }
    return { module: stubFor(entry, this), config: {}, placeOf, ...descriptor };
  }

  get position(): number {
    return this.#parts.sequencer.position;
  }

  reached(entry: Entry): Promise<void> {
    return this.#parts.sequencer.reached(entry);
  }

  /** The replay repeats cancellation and timeouts; any other end of a call was a limit. */
  endWithoutOutcome(): void {
    const { recorded, limit } = this;
    if (recorded.segment.is_cut || this.closed) return; // its process ended
    if (limit === null || limit === "max_duration_s") return;
    // the log is the run's
    const { limitGuard } = limit.startsWith("max_log_") && this.#options.parent || this;
    limitGuard.stopFor(limit, "as recorded");
  }
}

/** Ignores console output and warnings of modules: they belong to the recorded run. */
const SILENT: ModuleReporter = { warn() {}, console() {} };

/** Returns the plan as it was mounted, with a stub for every module except orchestrator and context. */
function replayedPlan(plan: MountPlan, mounted: readonly Entry[]): MountPlan {
  const stubs = (type: "provider" | "tool" | "hook") =>
    mounted.filter(({ data }) => data.type === type).map(({ data }, index): ModuleSpec => ({
      module: String(data.module_id),
      type,
      source: { kind: "builtin" },
      config: {},
      path: `${type}s[${index}]`,
    }));
  return { ...plan, providers: stubs("provider"), tools: stubs("tool"), hooks: stubs("hook") };
}
