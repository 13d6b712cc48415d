/**
 * Replays a recorded run: orchestrator and context for real, everything else from the log; says where the two part
 * (architecture.md, Replay).
 */
import { Ceilings } from "../../kernel/ceilings.ts";
import type { KernelLimits } from "../../kernel/core.ts";
import type { DraftEntry, Entry, Host } from "../../kernel/host.ts";
import type { Outcome } from "../../kernel/outcome.ts";
import { Session } from "../../kernel/session.ts";
import { REDACTED } from "../../policy/redact.ts";
import { PreampError } from "../../sdk/errors.ts";
import { isObject, type JsonObject, toPlainObject } from "../../sdk/json.ts";
import type { Clock, ModuleSpec, MountPlan, Prompt, RunLimits } from "../../sdk/types.ts";
import type { ReadyPlan, SecretSink } from "../deps.ts";
import { contextUsageOf, RunFold } from "../fold.ts";
import type { Recording } from "../recording.ts";
import { Conductor } from "./conductor.ts";
import type { Difference } from "./compare.ts";
import { decisionOf } from "./recall.ts";
import { ReplayClock } from "./replay_clock.ts";
import { standInFor } from "./stand_ins.ts";
import { Tape } from "./tape.ts";

/** What a replay came to. */
export interface ReplayReport {
  equal: boolean;
  first_difference?: Difference;
}

/** What a replay needs beside the recording. */
export interface ReplayDeps {
  /** The recording's plan, checked: where orchestrator and context come from. */
  ready: ReadyPlan;
  secrets: SecretSink;
  clock: Clock;
  limits: KernelLimits;
}

/** Replays a run. @throws {PreampError} `not_replayable` when its log does not hold what a replay needs. */
export async function replay(recording: Recording, deps: ReplayDeps): Promise<ReplayReport> {
  const { surface } = recording.replay;
  refuseUnlessReplayable(recording);
  const { plan } = deps.ready.compiled;
  const { orchestrator, context } = plan.session;
  if ([orchestrator, context].some(({ source }) => source.kind !== "builtin")) await deps.ready.load?.();
  const tape = new Tape(recording.events, [idOf(orchestrator), idOf(context)]);
  const clock = new ReplayClock(Date.parse(tape.entries[0]!.ts));
  const limits = tape.entries[0]!.data.limits as RunLimits; // written by the runner
  const ceilings = new Ceilings({ limits, cost_is_asked_for: recording.replay.cost_is_asked_for, clock });
  const fold = foldOf(recording);
  const stop_reason = String(recording.run.stop_reason);
  const limit = stop_reason.startsWith("limit:") ? stop_reason.slice("limit:".length) : null;
  const stage: { session?: Session } = {};
  const conductor = new Conductor({
    tape,
    clock,
    real_clock: deps.clock,
    redact: (data) => deps.secrets.redact(data),
    steer(text) {
      const steer = stage.session?.getCapability("session.steer");
      if (typeof steer === "function") steer(text);
    },
    cancel: (mode) => void stage.session?.cancel(mode),
    played(entry) {
      fold.add(entry);
      if (entry.event === "provider:response" && stage.session) noteContext(fold, stage.session);
    },
  });
  const reader = {
    tape,
    limit,
    get position() {
      return conductor.position;
    },
    endWithoutOutcome() {
      // the log says when a turn was cancelled or its time was over; what else ends a call is a limit of the log's own
      if (limit !== null && limit !== "max_duration_s") ceilings.stopFor(limit, "as recorded");
      else if (
        tape.find(0, ({ event, data }) => event === "cancel:completed" && data.was_immediate === true)
      ) {
        if (stage.session?.cancellation.is_cancelled) void stage.session.cancel("immediate");
      }
    },
  };
  const mounted = new Map<ModuleSpec, Entry>();
  const host: Host = {
    clock,
    newId: (prefix) => conductor.newId(prefix),
    async open(spec) {
      const entry = mounted.get(spec)!; // every spec of the replayed plan has one
      const told = {
        isolation: entry.data.isolation as "inline", // as it was recorded
        integrity: entry.data.integrity as string | null,
      };
      if (spec.type !== "orchestrator" && spec.type !== "context") {
        return { module: standInFor(entry, surface!, reader), config: {}, ...told };
      }
      return { ...await deps.ready.open(spec, deps.secrets), ...told };
    },
    record: (entry: DraftEntry) => conductor.record(entry),
    async ask({ approval_id }) {
      const decision = decisionOf(tape, approval_id);
      return decision === undefined ? await new Promise(() => {}) : decision;
    },
    accept() {},
    recall: (event, data) => conductor.recall(event, data),
    recallAnswers: (_event, data) => conductor.recallAnswers(data),
    warn() {},
  };
  const { history, session_state, usages, continued } = recording.replay;
  const session = stage.session = new Session({
    plan: replayedPlan(plan, tape, mounted),
    written: deps.ready.compiled.written,
    host,
    ceilings,
    limits: { ...deps.limits, max_tool_result_bytes: Number.MAX_SAFE_INTEGER }, // results were cut when they were recorded
    session_id: tape.session_id,
    session_state,
    history,
    usages,
    continued,
  });
  conductor.start();
  void perform(session, conductor, fold, recording);
  const difference = await conductor.finished;
  if (difference === null) return { equal: true };
  session.cancellation.requestImmediate(); // whatever it still does, nobody looks at
  return { equal: false, first_difference: difference };
}

async function perform(
  session: Session,
  conductor: Conductor,
  fold: RunFold,
  { run, events }: Recording,
): Promise<void> {
  let outcome: Outcome;
  try {
    outcome = await session.execute(promptOf(events));
    await session.cleanup(outcome.status);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    outcome = {
      status: "failed",
      stop_reason: "error",
      output_text: "",
      output: [],
      error: { code: "internal", message },
    };
  }
  conductor.end();
  const ended = fold.end(outcome, run.ended_at ?? "");
  ended.warnings = run.warnings; // they come from the plan, the environment and the modules, which are not here
  // what was redacted has another length: the figures of the context are of a text that nobody can see any more
  if (JSON.stringify(events).includes(REDACTED)) ended.context = run.context;
  conductor.close(toPlainObject(ended));
}

function noteContext(fold: RunFold, session: Session): void {
  const status = session.getCapability("context.status");
  const told: unknown = typeof status === "function" ? status() : session.context_usage;
  if (isObject(told)) fold.context = contextUsageOf(told);
}

function foldOf({ run, replay }: Recording): RunFold {
  return new RunFold({
    id: run.id,
    session_id: run.session_id,
    created_at: run.created_at,
    warnings: [],
    history: replay.history,
    usages: replay.usages,
  });
}

/** The prompt as the log tells it. */
function promptOf(events: readonly Entry[]): Prompt {
  const started = events.find(({ event, parent_id }) =>
    event === "execution:start" && parent_id === undefined
  );
  return started!.data.prompt as Prompt; // it is replayable: it has one
}

/** The plan as it was mounted: orchestrator and context as they are, a stand-in for everything else. */
function replayedPlan(plan: MountPlan, tape: Tape, mounted: Map<ModuleSpec, Entry>): MountPlan {
  const specs = { provider: [] as ModuleSpec[], tool: [] as ModuleSpec[], hook: [] as ModuleSpec[] };
  for (const entry of tape.all(({ event }) => event === "module:mounted")) {
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

function idOf(spec: ModuleSpec): string {
  return spec.instance_id ?? spec.module;
}

function refuseUnlessReplayable({ run, events, replay }: Recording): void {
  const fact = whyNot(events, replay.surface !== null);
  if (fact !== null) throw new PreampError("not_replayable", `Cannot replay run "${run.id}": ${fact}`);
}

function whyNot(events: readonly Entry[], has_surface: boolean): string | null {
  if (events.at(-1)?.event !== "run:end") return "it has not ended";
  if (!has_surface) return "its session was never initialised";
  const { session_id } = events[0]!;
  const own = events.filter((entry) => entry.session_id === session_id);
  if (own.some(({ event, data }) => event === "run:status" && data.resumed === true)) {
    return "it was interrupted and gone on with: its parts ran in different processes";
  }
  if (!own.some(({ event }) => event === "execution:start")) return "no turn was begun";
  const untold = own.some(({ event, data }) =>
    event === "provider:response" &&
    !(isObject(data.response) && Array.isArray((data.response as JsonObject).content))
  );
  return untold ? "its orchestrator does not put the response into provider:response" : null;
}
