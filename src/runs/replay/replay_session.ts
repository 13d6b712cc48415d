/** One session of a replay: real orchestrator, context and kernel, everything else from its recorded. */
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

/** What a session is put on the stage with. */
export interface ReplaySessionOptions {
  readonly sequencer: Sequencer;
  readonly clock: VirtualClock;
  readonly recorded: RecordedEvents;
  readonly ready: RunnablePlan;
  readonly secrets: SecretSink;
  readonly surface: MountedDescriptors;
  readonly ceilings: RunLimitGuard;
  readonly limits: KernelLimits;
  /** Name of the ceiling that ended the turn, or null. */
  readonly limit: string | null;
  /** Ends the turn for that ceiling where the recorded has no outcome of a call. */
  stopFor(limit: string): void;
  /** Where the session stands when it begins. */
  readonly initial: Pick<SessionOptions, "parent_id" | "session_state" | "history" | "usages" | "continued">;
  /** Told each entry that the session makes, before its turn comes. */
  onEntry?(entry: DraftEntry): void;
  rememberedApproval: NonNullable<Host["rememberedApproval"]>;
  /** What was question before the process that this session's part begins in. */
  knownApproval?: NonNullable<Host["knownApproval"]>;
}

/** Limits that the recorded values were held to when they were recorded, whatever they are today. */
const AS_RECORDED = {
  max_tool_result_bytes: Number.MAX_SAFE_INTEGER,
  max_answer_tool_calls: Number.MAX_SAFE_INTEGER,
  max_answer_blocks: Number.MAX_SAFE_INTEGER,
  max_hooks: Number.MAX_SAFE_INTEGER,
  max_session_state_bytes: Number.MAX_SAFE_INTEGER,
  approval_timeout: Number.MAX_SAFE_INTEGER,
} as const satisfies Partial<KernelLimits>;

/** A session on the stage. */
export class ReplaySession implements ReplayedSession {
  readonly session: Session;
  readonly recorded: RecordedEvents;
  readonly #options: ReplaySessionOptions;
  readonly #mounted = new Map<ModuleSpec, Entry>();
  #closed = false;

  constructor(options: ReplaySessionOptions) {
    const { recorded, ready, limits, ceilings, initial } = options;
    this.#options = options;
    this.recorded = recorded;
    this.session = new Session({
      plan: replayedPlan(ready.compiled.plan, recorded, this.#mounted),
      written: ready.compiled.written,
      host: this.#host(),
      run_limits: ceilings,
      limits: { ...limits, ...AS_RECORDED },
      session_id: recorded.session_id,
      ...initial,
    });
  }

  steer(text: string): void {
    const steer = this.session.getCapability("session.steer");
    // what a loop that runs elsewhere makes of it shows in what it does
    if (typeof steer === "function") Promise.resolve(steer(text)).catch(() => {});
  }

  cancel(mode: "graceful" | "immediate"): void {
    void this.session.cancel(mode);
  }

  /** Sends it away: whatever it still does, nobody looks at. */
  close(): void {
    this.#closed = true;
    this.session.cancellation.requestImmediate();
  }

  /** Whether it was sent away. */
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
    if (!entry) return await new Promise<never>(() => {}); // its process ended before it was mounted
    const descriptor = {
      isolation: entry.data.isolation as "inline", // as it was recorded
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

  /** The log says when a turn was cancelled or its time was over; what else ends a call is a limit of the log's own. */
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

/** What modules write in a replay they wrote in the recorded run. */
const SILENT: ModuleReporter = { warn() {}, console() {} };

/** The plan as it was mounted: orchestrator and context as they are, a stand-in for everything else. */
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

/** Returns the ids of the modules that run for real. */
export function ownModules({ compiled }: RunnablePlan): string[] {
  const { orchestrator, context } = compiled.plan.session;
  return [orchestrator, context].map((spec) => spec.instance_id ?? spec.module);
}

/** Fetches the modules that run for real, when they are not compiled in. */
export async function loadOwn(ready: RunnablePlan): Promise<void> {
  const { orchestrator, context } = ready.compiled.plan.session;
  if ([orchestrator, context].some(({ source }) => source.kind !== "builtin")) await ready.load?.();
}

/** What a module said of itself when it was mounted. */
function metadataIn({ name, version, provides }: JsonObject): JsonObject {
  const stated = Object.entries({ name, version, provides });
  return Object.fromEntries(stated.filter(([, value]) => value !== undefined));
}
