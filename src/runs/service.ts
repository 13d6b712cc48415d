/**
 * The public API of runs: reading, answering, cancelling and deleting, with ownership checks. Starting runs
 * is `scheduler/scheduler.ts`.
 */
import type { Entry } from "../kernel/host.ts";
import { hasCode, PreampError } from "../sdk/errors.ts";
import { type JsonObject, toPlain } from "../sdk/json.ts";
import type { RaisableLimit, RunLimits } from "../sdk/types.ts";
import {
  approvalKey,
  closedApprovalError,
  decisionOf,
  storedAnswers,
  withStoredAnswers,
} from "./run/approval_queue.ts";
import { checkRaised, limitsIn } from "./run/raised_limits.ts";
import { withoutPlanSecrets } from "../policy/plan_secrets.ts";
import type { RunsDeps } from "./ports.ts";
import type { ReplayDeps } from "./replay/replay_turn.ts";
import { changedFilesOfRuns, undoFileChanges } from "./storage/file_changes.ts";
import { FORKED_BEFORE_RUN, forkedSession, originOf, pointOf } from "./storage/fork.ts";
import { printableId } from "../sdk/ids.ts";
import { eraseRun } from "./storage/erase.ts";
import { commandFacts, loadInput, recordedInput } from "./storage/run_input.ts";
import { type ActiveRun, notSteerable } from "./run/run.ts";
import { isAway, repeat } from "./run/run_store.ts";
import { SessionService } from "./session_service.ts";
import { listOptions, SessionStore } from "./storage/session_store.ts";
import type { RemoteRuns } from "./scheduler/remote_runs.ts";
import { RunCommands } from "./scheduler/run_commands.ts";
import { RunScheduler } from "./scheduler/scheduler.ts";
import { MAX_PAGE_BYTES, type Store } from "../store/store.ts";
import { AWAITING, mayOperate } from "./types.ts";
import type {
  Approval,
  Caller,
  ChangedRun,
  CreateOptions,
  ModelRequest,
  Page,
  PageOptions,
  Recording,
  ReplayReport,
  Run,
  RunHandle,
  RunPlan,
  RunRequest,
  Runs,
  RunStatus,
  UndoReport,
} from "./types.ts";

/** Entries of one page of an event stream. */
const PAGE_ENTRIES = 256;

export class RunService implements Runs {
  readonly #deps: RunsDeps;
  readonly sessions: SessionService;
  readonly #sessions: SessionStore;
  readonly #scheduler: RunScheduler;
  readonly #commands: RunCommands;
  readonly #remote: RemoteRuns;

  constructor(deps: RunsDeps) {
    this.#deps = deps;
    this.#sessions = new SessionStore(deps.store);
    this.#scheduler = new RunScheduler(
      deps,
      this.#sessions,
      {
        cancel: (run_id, reason) => this.#commands.cancel(run_id, "graceful", reason),
        carryOut: (run_id) => this.#remote.carryOut(run_id),
        settled: (caller, run, until) => this.#settled(caller, run, until),
      },
    );
    this.#commands = new RunCommands(deps, this.#scheduler.context.runs);
    this.#remote = this.#commands.remote;
    this.sessions = new SessionService(
      deps,
      this.#sessions,
      (session_id) => this.#scheduler.context.leases.runIn(session_id)?.projection.of(session_id),
    );
  }

  create(request: RunRequest, caller: Caller, options: CreateOptions = {}): Promise<RunHandle> {
    return this.#scheduler.create(request, caller, options, (run_id) => this.handle(caller, run_id));
  }

  #activeRun(caller: Caller, run_id: string): ActiveRun | undefined {
    const active = this.#scheduler.context.runs.get(run_id);
    return active?.options.caller.namespace === caller.namespace ? active : undefined;
  }

  /** Runs that execute in this process: without those that wait for their session or a person. */
  get executing(): number {
    const { items } = this.#scheduler.context.runs;
    return items.filter(({ projection }) => projection.status === "running").length;
  }

  async get(caller: Caller, run_id: string): Promise<Run> {
    const run = await this.#logged(caller, run_id);
    return await this.#answered((store) => withStoredAnswers(store, run), run);
  }

  /** Resolves to a run as its log has it; one of this process also while the store is away. */
  async #logged(caller: Caller, run_id: string): Promise<Run> {
    const active = this.#activeRun(caller, run_id);
    return active?.current() ?? await this.#remote.currentRun(await this.#stored(caller, run_id));
  }

  /** Adds the answers that other processes may have stored; resolves to `logged` while the store is away. */
  async #answered<T>(add: (store: Store) => Promise<T>, logged: T): Promise<T> {
    if (!this.#remote.possible) return logged;
    return await add(this.#deps.store).catch((error) => {
      if (!isAway(error)) throw error;
      return logged;
    });
  }

  /** Resolves to a run as it was last stored. @throws {PreampError} `not_found`. */
  async #stored(caller: Caller, run_id: string): Promise<Run> {
    const record = await this.#deps.store.get("run", run_id);
    if (!record || record.namespace !== caller.namespace) {
      throw new PreampError("not_found", `Cannot find run "${printableId(run_id)}"`);
    }
    return record.value as unknown as Run;
  }

  async handle(caller: Caller, run_id: string): Promise<RunHandle> {
    const active = this.#activeRun(caller, run_id);
    if (active) return active;
    const run = await this.get(caller, run_id);
    return {
      id: run.id,
      session_id: run.session_id,
      current: () => run,
      settled: (until) => this.#settled(caller, run, until),
    };
  }

  /** Resolves when a run that another process executes has ended or, with `attention`, awaits an approval. */
  async #settled(caller: Caller, run: Run, until: "end" | "attention"): Promise<Run> {
    const holds = ({ ended_at, status }: Run) =>
      ended_at !== null || until === "attention" && AWAITING.has(status);
    const { stopped } = this.#remote;
    while (!holds(run) && this.#remote.possible && !stopped.aborted) {
      await this.#remote.changed(stopped, (name) => name === run.id);
      const active = this.#activeRun(caller, run.id); // this process may have continued it
      if (active) return await active.settled(until);
      const { id } = run;
      const read = async () => {
        const stored = await this.#stored(caller, id);
        return holds(stored) ? await this.get(caller, id) : stored; // with what happened since
      };
      run = await this.#readFor(caller, stopped, read);
    }
    return run;
  }

  async list(
    caller: Caller,
    filter: { session_id?: string; status?: RunStatus } & PageOptions,
  ): Promise<Page<Run>> {
    const { session_id, status } = filter;
    const where = {
      ...(session_id === undefined ? {} : { session_id }),
      ...(status === undefined ? {} : { status }),
    };
    const { records, next_cursor } = await this.#deps.store.list("run", {
      ...listOptions(caller, filter, this.#deps.limitsOf(caller)),
      where,
    });
    const runs = records.map(({ key, value }) =>
      this.#scheduler.context.runs.get(key)?.current() ?? value as unknown as Run
    );
    // the status of a run of this process may have changed since it was stored
    return { data: status === undefined ? runs : runs.filter((run) => run.status === status), next_cursor };
  }

  async remove(caller: Caller, run_id: string): Promise<void> {
    const run = await this.get(caller, run_id);
    if (run.ended_at === null) {
      throw new PreampError("session_busy", `Cannot delete run "${run_id}": it has not ended`);
    }
    await eraseRun(this.#deps.store, caller.namespace, run_id);
  }

  async raiseLimits(
    caller: Caller,
    run_id: string,
    limits: Partial<Pick<RunLimits, RaisableLimit>>,
  ): Promise<Run> {
    const { ended_at } = await this.#logged(caller, run_id);
    if (ended_at !== null) throw new PreampError("run_ended", "Cannot raise limits: the run has ended");
    await this.#commands.send(run_id, { kind: "limits", limits, raised_by: caller.name }, async () => {
      const { store, limitsOf } = this.#deps;
      const projection = await this.#remote.projectionOf(await this.#stored(caller, run_id));
      const owner = (await commandFacts(store, run_id))?.caller ?? caller;
      if (projection) checkRaised(limits, limitsIn(projection), limitsOf(owner));
    });
    const run = await this.get(caller, run_id);
    return run.ended_at === null ? { ...run, limits: { ...run.limits, ...limits } } : run;
  }

  async undo(caller: Caller, run_id: string): Promise<UndoReport> {
    const run = await this.get(caller, run_id);
    const fact = run.ended_at === null ? await this.#scheduler.endOrphan(run) : null;
    if (fact !== null) throw new PreampError("session_busy", `Cannot undo run "${run_id}": ${fact}`);
    return await undoFileChanges(this.#deps, caller.namespace, run.id);
  }

  async *changedRuns(
    caller: Caller,
    { session_id }: { session_id?: string } = {},
  ): AsyncIterable<ChangedRun> {
    const { store } = this.#deps;
    let of = session_id;
    let end: Run | null = null;
    do {
      for await (const { run_id, paths } of changedFilesOfRuns(store, caller.namespace, of)) {
        const run = await this.get(caller, run_id);
        if (end !== null && run.created_at >= end.created_at) continue; // not in the fork
        yield { run, paths };
      }
      end = of === undefined ? null : await this.#forkedBefore(caller, of);
      of = end?.session_id;
    } while (of !== undefined);
  }

  /** Resolves to the run before which a session was forked; null for any other session. */
  async #forkedBefore(caller: Caller, session_id: string): Promise<Run | null> {
    const { object: { parent_id, metadata } } = await this.#sessions.load(caller, session_id);
    const record = await this.#deps.store.get("run", String(metadata[FORKED_BEFORE_RUN]));
    if (record?.namespace !== caller.namespace) return null;
    const run = record.value as unknown as Run;
    return run.session_id === parent_id ? run : null;
  }

  async cancel(caller: Caller, run_id: string, mode: "graceful" | "immediate"): Promise<Run> {
    const run = await this.#logged(caller, run_id);
    if (run.ended_at !== null) return run;
    await this.#commands.cancel(run_id, mode);
    return await this.get(caller, run_id);
  }

  async steer(caller: Caller, run_id: string, text: string): Promise<Run> {
    const run = await this.#logged(caller, run_id);
    if (run.ended_at !== null) throw new PreampError("run_ended", "Cannot steer the run: it has ended");
    await this.#commands.send(run_id, { kind: "steer", text }, async () => {
      if (text.trim() === "") {
        throw new PreampError("request_invalid", 'Cannot steer: text must not be blank: received ""');
      }
      const facts = await commandFacts(this.#deps.store, run_id);
      if (run.status === "queued" || facts?.steerable === false) throw notSteerable(run.status);
    });
    return await this.get(caller, run_id);
  }

  async approvals(caller: Caller, run_id: string): Promise<Approval[]> {
    const approvals = await this.#approvals(caller, run_id);
    return await this.#answered((store) => storedAnswers(store, approvals), approvals);
  }

  /** Resolves to the approvals of a run as its log has them. */
  async #approvals(caller: Caller, run_id: string): Promise<Approval[]> {
    const active = this.#activeRun(caller, run_id);
    const projection = active?.projection ??
      await this.#remote.projectionOf(await this.#stored(caller, run_id));
    if (projection === null) throw await this.#expired(caller, run_id);
    return projection.approvals.map((approval) => ({ ...approval }));
  }

  async decide(
    caller: Caller,
    run_id: string,
    approval_id: string,
    answer: { decision: string; reason?: string; args_hash?: string },
  ): Promise<Approval> {
    const find = async () => (await this.approvals(caller, run_id)).find(({ id }) => id === approval_id);
    const approval = (await this.#approvals(caller, run_id)).find(({ id }) => id === approval_id);
    if (!approval) throw new PreampError("not_found", `Cannot find approval "${printableId(approval_id)}"`);
    const active = this.#activeRun(caller, run_id);
    const ended = active ? active.ended : (await this.#stored(caller, run_id)).ended_at !== null;
    const isOpen = approval.status === "pending" && !ended && (active || this.#remote.possible);
    if (!isOpen) throw closedApprovalError(approval);
    const { decision, reason = null, args_hash } = answer;
    const decided = { decision, reason, decided_by: caller.name };
    const also = async () => {
      const { store, clock, secrets } = this.#deps;
      const key = approvalKey(run_id, approval_id);
      return [await decisionOf({ store, clock, secrets: secrets() }, key, decided, args_hash)];
    };
    try {
      await this.#commands.send(
        run_id,
        { kind: "decide", approval_id, ...decided, args_hash: args_hash ?? null },
        () => {},
        also,
      );
    } catch (error) {
      throw hasCode(error, "run_ended") ? closedApprovalError(await find() ?? approval) : error;
    }
    return await find() ?? approval;
  }

  async events(
    caller: Caller,
    run_id: string,
    options: { after?: number; limit?: number },
  ): Promise<Entry[]> {
    if (!this.#activeRun(caller, run_id)) await this.#stored(caller, run_id);
    const { after = 0, limit = PAGE_ENTRIES } = options;
    return await this.#entries(caller, run_id, after, limit, MAX_PAGE_BYTES);
  }

  /** Resolves to entries of a log, by default all. */
  async #entries(
    caller: Caller,
    run_id: string,
    after = 0,
    limit = Number.MAX_SAFE_INTEGER,
    max_bytes?: number,
  ): Promise<Entry[]> {
    const entries = await this.#deps.store.entries(run_id, after, limit, max_bytes);
    if (entries === null) throw await this.#expired(caller, run_id);
    return entries as Entry[];
  }

  /** Reads for a client that waits; while the store is away, again, as long as a run waits for it. */
  #readFor<T>(caller: Caller, signal: AbortSignal, read: () => Promise<T>): Promise<T> {
    const { clock, limitsOf } = this.#deps;
    const wait_ms = limitsOf(caller).store_wait_s * 1000;
    const again = (error: unknown, waited_ms: number) => isAway(error) && waited_ms < wait_ms;
    return read().catch((error) => repeat(read, error, { clock, signal, again }));
  }

  async #expired(caller: Caller, run_id: string): Promise<PreampError> {
    const facts = { run: toPlain(await this.get(caller, run_id)) };
    const message = `Cannot read the events of run "${run_id}": they are no longer stored`;
    return new PreampError("log_expired", message, { facts });
  }

  async *follow(
    caller: Caller,
    run_id: string,
    options: { after?: number; signal?: AbortSignal; pageEntries?: () => number },
  ): AsyncIterable<Entry[]> {
    const { signal = new AbortController().signal, pageEntries = () => PAGE_ENTRIES } = options;
    let after = options.after ?? 0;
    const run = await this.#readFor(caller, signal, () => this.get(caller, run_id));
    const remote = run.ended_at === null && this.#remote.possible;
    while (!signal.aborted) {
      const active = this.#activeRun(caller, run_id); // looked up again: this process may continue a run of another
      const closed = active ? active.log.closed : !remote;
      const read = () => this.#entries(caller, run_id, after, pageEntries(), MAX_PAGE_BYTES);
      const entries = active?.log.recent(after, pageEntries()) ?? await this.#readFor(caller, signal, read);
      if (entries.length > 0) {
        yield entries;
        after = entries.at(-1)!.seq;
        if (entries.at(-1)!.event === "run:end") return;
      } else if (closed) return;
      else if (active) await active.log.changed(after, signal);
      else await this.#remote.changed(signal, (name) => name === run_id);
    }
  }

  async recording(caller: Caller, run_id: string): Promise<Recording> {
    const run = await this.get(caller, run_id);
    const events = await this.#entries(caller, run_id);
    const input = await loadInput(this.#deps.store, run.id);
    if (input === null) {
      throw new PreampError(
        "not_replayable",
        `Cannot replay run "${printableId(run_id)}": its input is no longer stored`,
      );
    }
    return { run, events, replay: recordedInput(input) };
  }

  async replay(caller: Caller, recorded: string | Recording): Promise<ReplayReport> {
    const recording = typeof recorded === "string" ? await this.recording(caller, recorded) : recorded;
    // An uploaded recording is authorised as the caller; its own `plan_origin` is not trusted.
    const origin = typeof recorded === "string" ? recording.replay.plan_origin : caller.origin;
    const { replay } = await import("./replay/replay.ts");
    return await replay(recording, await this.#replayDeps(caller, recording, origin));
  }

  async plan(caller: Caller, run_id: string): Promise<RunPlan> {
    const { id, plan_hash } = await this.get(caller, run_id);
    const input = await loadInput(this.#deps.store, id);
    if (input === null) {
      throw new PreampError("not_found", `Cannot find the plan of run "${id}": it is no longer stored`);
    }
    const { planText } = await import("../plan/plan_text.ts");
    const plan = this.#deps.secrets().redact(withoutPlanSecrets(input.plan));
    return { plan_hash, origin: input.plan_origin, plan, text: await planText(plan) };
  }

  async requests(
    caller: Caller,
    run_id: string,
    place: { seq?: number; cursor?: number; limit?: number } = {},
  ): Promise<Page<ModelRequest>> {
    const running = this.#activeRun(caller, run_id)?.running_agents ?? [];
    const { replay, ...recorded } = await this.recording(caller, run_id);
    const recording = { ...recorded, replay: { ...replay, agents: [...replay.agents ?? [], ...running] } };
    const deps = await this.#replayDeps(caller, recording, recording.replay.plan_origin);
    const { requestsOf } = await import("./replay/replay.ts");
    return deps.secrets.redactValues(
      await requestsOf(recording, deps, { ...place, max_bytes: MAX_PAGE_BYTES }),
    );
  }

  /** Resolves to what a replay of a recording needs, with its plan authorised for the caller. */
  async #replayDeps(
    caller: Caller,
    { run, replay }: Recording,
    origin: Caller["origin"],
  ): Promise<ReplayDeps> {
    const { plan, plan_base_url, plan_lock: lock, plan_workspace: workspace } = replay;
    const { clock, limitsOf, secrets } = this.#deps;
    const request: RunRequest = {
      prompt: "",
      plan,
      limits: run.limits,
      ...(lock ? { lock } : {}),
      ...(workspace !== undefined && mayOperate(caller) ? { workspace } : {}),
    };
    const ready = await this.#deps.ready(request, { ...caller, origin }, plan_base_url ?? undefined);
    return { ready, secrets: secrets(), clock, limits: limitsOf(caller) };
  }

  async rerun(
    caller: Caller,
    run_id: string,
    { from_event, plan }: { from_event: number; plan?: JsonObject | string },
    options: CreateOptions = {},
  ): Promise<RunHandle> {
    const recording = await this.recording(caller, run_id);
    const { run } = recording;
    const point = pointOf(recording, from_event);
    // the session may be deleted
    const session = await this.#sessions.find(caller, run.session_id);
    const session_id = this.#deps.newId("ses");
    const saved = forkedSession(originOf(recording, session), session_id, point, this.#deps.clock.now());
    const workspace = recording.replay.plan_workspace;
    const keeps_workspace = plan !== undefined && workspace !== undefined && mayOperate(caller);
    const request: RunRequest = {
      prompt: point.prompt,
      session_id,
      metadata: run.metadata,
      ...(plan === undefined ? {} : { plan }),
      ...(keeps_workspace ? { workspace } : {}), // that of the session belongs to its plan
    };
    const forked_from = { run_id: run.id, seq: from_event };
    return await this.#scheduler.startIn(saved, request, caller, options, {
      forked_from,
      resume: point.resume,
    });
  }

  /** Continues the runs of crashed processes; resolves to their ids. */
  recover(): Promise<string[]> {
    return this.#scheduler.recovery.recover();
  }

  /** Resolves to true when the runs that are active now have ended, to false after `timeout_ms`. */
  idle(timeout_ms: number): Promise<boolean> {
    return this.#scheduler.shutdown.idle(timeout_ms);
  }

  /**
   * Carries out the commands of other processes and, unless `recovers` is false, continues the runs of
   * crashed ones, until the service is closed.
   */
  shareStore(): void {
    if (this.#deps.recovers !== false) this.#scheduler.recovery.start();
    if (!this.#remote.possible) return;
    this.#remote.start(() => this.#scheduler.checkQueues(), (name) => this.#scheduler.isAwaited(name));
  }

  /** Stops accepting runs, lets running ones end for `grace_ms`, then cancels them. */
  drain(grace_ms: number): Promise<void> {
    return this.#scheduler.shutdown.drain(grace_ms);
  }

  /** Whether new runs are refused. */
  get draining(): boolean {
    return this.#scheduler.context.is_draining;
  }

  /** Cancels the runs that it started at once; leaves those of crashed processes to others. */
  async close(): Promise<void> {
    await this.#scheduler.shutdown.close();
    this.#remote.stop();
  }
}
