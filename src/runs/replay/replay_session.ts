/**
 * One session of a replay: orchestrator, context and kernel run, everything else is read from the recording.
 */
import type { RunLimitGuard } from "../../kernel/run_limits.ts";
import type { KernelLimits } from "../../kernel/session/session_context.ts";
import type { DraftEntry, Entry, Host, KnownApproval } from "../../kernel/host.ts";
import { Session, type SessionOptions } from "../../kernel/session/session.ts";
import type { MountedDescriptors } from "../../kernel/mounting/mount_descriptors.ts";
import { noopEmission } from "../../sdk/hook_chain.ts";
import type { JsonObject } from "../../sdk/json.ts";
import type { ModuleSpec, MountPlan } from "../../sdk/types.ts";
import type { ModuleReporter, RunnablePlan, SecretSink } from "../ports.ts";
import type { ReplayedSession, Sequencer } from "./sequencer.ts";
import { decisionOf, withRecordedCleanups } from "./recorded_results.ts";
import type { VirtualClock } from "./virtual_clock.ts";
import { type EventReader, placeOf, stubFor } from "./stubs.ts";
import type { RecordedEvents } from "./recorded_events.ts";

/** Options of {@link ReplaySession}. */
export interface ReplaySessionOptions {
  readonly sequencer: Sequencer;
  readonly clock: VirtualClock;
  readonly recorded: RecordedEvents;
  readonly ready: RunnablePlan;
  readonly secrets: SecretSink;
  readonly surface: MountedDescriptors;
  readonly limitGuard: RunLimitGuard;
  readonly limits: KernelLimits;
  /** Name of the limit that ended the turn, or null. */
  readonly limit: string | null;
  /** Ends the turn for that limit, when a recorded call has no outcome. */
  stopFor(limit: string): void;
  /** State of the session at its start. */
  readonly initial: Pick<SessionOptions, "parent_id" | "session_state" | "history" | "usages" | "continued">;
  /** Receives each entry that the session emits, before it is compared. */
  onEntry?(entry: DraftEntry): void;
  rememberedApproval: NonNullable<Host["rememberedApproval"]>;
  /** Returns the answers to questions that were asked before this segment. */
  knownApproval?: NonNullable<Host["knownApproval"]>;
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
export class ReplaySession implements ReplayedSession {
  readonly session: Session;
  readonly recorded: RecordedEvents;
  readonly #options: ReplaySessionOptions;
  readonly #mounted = new Map<ModuleSpec, Entry>();
  #closed = false;

  constructor(options: ReplaySessionOptions) {
    const { recorded, ready, limits, limitGuard, initial } = options;
    this.#options = options;
    this.recorded = recorded;
    this.session = new Session({
      plan: replayedPlan(ready.compiled.plan, recorded, this.#mounted),
      written: ready.compiled.written,
      host: this.#host(),
      run_limits: limitGuard,
      limits: { ...limits, ...AS_RECORDED },
      session_id: recorded.session_id,
      ...initial,
    });
  }

  steer(text: string): void {
    const steer = this.session.getCapability("session.steer");
    // a sandboxed loop reports failures by its own events
    if (typeof steer === "function") Promise.resolve(steer(text)).catch(() => {});
  }

  cancel(mode: "graceful" | "immediate"): void {
    void this.session.cancel(mode);
  }

  /** Closes the session: what it still emits is ignored. */
  close(): void {
    this.#closed = true;
    this.session.cancellation.requestImmediate();
  }

  /** Whether the session was closed. */
  get closed(): boolean {
    return this.#closed;
  }

  #host(): Host {
    const {
      sequencer,
      clock,
      recorded,
      onEntry,
      knownApproval,
      rememberedApproval,
      secrets,
    } = this.#options;
    return {
      clock,
      newId: (prefix) => this.#closed ? `${prefix}_gone` : sequencer.newId(prefix, recorded),
      open: (spec) => this.#open(spec),
      record: (entry) => {
        if (this.#closed) return;
        onEntry?.(entry);
        if (entry.event === "session:cleanup") entry.data = withRecordedCleanups(entry.data, recorded);
        return sequencer.record(entry);
      },
      async ask({ approval_id }) {
        const decision = decisionOf(recorded, approval_id);
        return decision === undefined ? await new Promise(() => {}) : decision;
      },
      ...(knownApproval
        ? { knownApproval: (...question): KnownApproval | null => knownApproval(...question) }
        : {}),
      rememberedApproval,
      accept() {}, // the run exists
      recall: (event, data) =>
        this.#closed ? noopEmission(data) : sequencer.emissionFor(event, data, recorded),
      recallAnswers: (_event, data) => this.#closed ? [] : sequencer.answersFor(data, recorded),
      redactEvent: (event, data) => secrets.redactEvent(event, data),
      warn() {},
    };
  }

  async #open(spec: ModuleSpec) {
    const { ready, secrets, surface } = this.#options;
    const entry = this.#mounted.get(spec);
    if (!entry) return await new Promise<never>(() => {}); // the process ended before this module was mounted
    const descriptor = {
      isolation: entry.data.isolation as "inline", // as recorded
      integrity: entry.data.integrity as string | null,
      stated: metadataIn(entry.data),
    };
    if (spec.type !== "orchestrator" && spec.type !== "context") {
      return { module: stubFor(entry, surface, this.#reader()), config: {}, placeOf, ...descriptor };
    }
    return { ...await ready.open(spec, secrets, SILENT), ...descriptor };
  }

  #reader(): EventReader {
    const { recorded, limit, sequencer } = this.#options;
    return {
      recorded,
      limit,
      get position() {
        return sequencer.position;
      },
      reached: (entry) => sequencer.reached(entry),
      endWithoutOutcome: () => this.#endWithoutOutcome(),
    };
  }

  /**
   * Ends the turn when a call has no recorded outcome. The log records cancellation and timeouts; any other
   * end was a limit.
   */
  #endWithoutOutcome(): void {
    const { recorded, limit, stopFor } = this.#options;
    if (recorded.is_cut || this.#closed) return; // its process ended
    if (limit !== null && limit !== "max_duration_s") stopFor(limit);
    else if (
      recorded.find(0, ({ event, data }) => event === "cancel:completed" && data.was_immediate === true) &&
      this.session.cancellation.is_cancelled
    ) void this.session.cancel("immediate");
  }
}

/** Ignores console output and warnings of modules: they belong to the recorded run. */
const SILENT: ModuleReporter = { warn() {}, console() {} };

/** Returns the plan as it was mounted, with a stub for every module except orchestrator and context. */
function replayedPlan(plan: MountPlan, recorded: RecordedEvents, mounted: Map<ModuleSpec, Entry>): MountPlan {
  const specs = { provider: [] as ModuleSpec[], tool: [] as ModuleSpec[], hook: [] as ModuleSpec[] };
  for (const entry of recorded.all(({ event }) => event === "module:mounted")) {
    const type = String(entry.data.type);
    const own = type === "orchestrator" || type === "context" ? plan.session[type] : null;
    if (own) mounted.set(own, entry);
    else if (type === "provider" || type === "tool" || type === "hook") {
      const spec: ModuleSpec = {
        module: String(entry.data.module_id),
        type,
        source: { kind: "builtin" },
        config: {},
        path: `${type}s[${specs[type].length}]`,
      };
      mounted.set(spec, entry);
      specs[type].push(spec);
    }
  }
  return { ...plan, providers: specs.provider, tools: specs.tool, hooks: specs.hook };
}

/** Returns the ids of the modules that run in a replay. */
export function ownModules({ compiled }: RunnablePlan): string[] {
  const { orchestrator, context } = compiled.plan.session;
  return [orchestrator, context].map((spec) => spec.instance_id ?? spec.module);
}

/** Fetches the modules that run in a replay, unless they are compiled in. */
export async function loadOwn(ready: RunnablePlan): Promise<void> {
  const { orchestrator, context } = ready.compiled.plan.session;
  if ([orchestrator, context].some(({ source }) => source.kind !== "builtin")) await ready.load?.();
}

/** Returns the recorded name, version and capabilities of a module. */
function metadataIn({ name, version, provides }: JsonObject): JsonObject {
  const stated = Object.entries({ name, version, provides });
  return Object.fromEntries(stated.filter(([, value]) => value !== undefined));
}
