/**
 * All runs of this process: who may start one, in which session, when; and the doors to those that exist. What happens
 * inside a run is `runner.ts`.
 */
import type { Entry } from "../kernel/host.ts";
import type { Outcome } from "../kernel/outcome.ts";
import { PreampError } from "../sdk/errors.ts";
import { type JsonObject, toPlain } from "../sdk/json.ts";
import { Admission } from "./admission.ts";
import { approvalDeletion, tooLate } from "./approvals.ts";
import type { ReadyPlan, RunsDeps } from "./deps.ts";
import { RunFold } from "./fold.ts";
import { SessionHolds } from "./holds.ts";
import { Idempotency } from "./idempotency.ts";
import { Runner } from "./runner.ts";
import { listOptions, printable, type SavedSession, Sessions } from "./sessions.ts";
import type {
  Approval,
  Caller,
  CreateOptions,
  Page,
  PageOptions,
  Run,
  RunHandle,
  RunRequest,
  Runs,
  RunStatus,
  SessionObject,
} from "./types.ts";

/** Entries of one page that a reader is given. */
const PAGE = 256;

/** The runs of one process. */
export class RunService implements Runs {
  readonly #deps: RunsDeps;
  readonly #sessions: Sessions;
  readonly #idempotency: Idempotency;
  readonly #runners = new Map<string, Runner>();
  readonly #holds: SessionHolds;
  readonly #admission: Admission;
  /** Session id → settled when the last run of its queue has ended. */
  readonly #queues = new Map<string, Promise<unknown>>();
  readonly #open = new Set<Promise<void>>();
  #draining = false;

  constructor(deps: RunsDeps) {
    this.#deps = deps;
    this.#sessions = new Sessions(deps.store);
    this.#idempotency = new Idempotency(deps.store);
    this.#holds = new SessionHolds(deps.store, deps.newId("proc"), deps.log);
    this.#admission = new Admission(deps.limits);
  }

  async create(request: RunRequest, caller: Caller, options: CreateOptions = {}): Promise<RunHandle> {
    const { idempotency } = options;
    if (!idempotency) return await this.#create(request, caller, options);
    return await this.#idempotency.once<RunHandle>(
      caller,
      idempotency,
      () => this.#create(request, caller, options),
      (run_id) => this.handle(caller, run_id),
    );
  }

  async #create(request: RunRequest, caller: Caller, options: CreateOptions): Promise<Runner> {
    if (this.#draining) throw new PreampError("draining", "Cannot start a run: the server is stopping");
    const session_id = request.session_id ?? this.#deps.newId("ses");
    const place = this.#admission.enter(caller, session_id, request.if_busy);
    try {
      const runner = await this.#place(request, caller, options, session_id);
      runner.settled("end").finally(() => this.#admission.leave(place));
      return runner;
    } catch (error) {
      this.#admission.leave(place);
      throw error;
    }
  }

  /** Starts the run, or puts it into the queue of its session. */
  async #place(
    request: RunRequest,
    caller: Caller,
    options: CreateOptions,
    session_id: string,
  ): Promise<Runner> {
    const saved = request.session_id === undefined ? null : await this.#sessions.load(caller, session_id);
    const ready = await this.#deps.ready(
      asked(request, saved),
      effective(caller, request, saved),
      options.base_url ?? saved?.plan_base_url ?? undefined,
    );
    const run_id = this.#deps.newId("run");
    const runner = this.#make({ request, caller, options, ready, run_id, session_id, saved });
    if (request.if_busy === "queue" && this.#mustQueue(session_id)) return await this.#enqueue(runner);
    return await this.#start(runner);
  }

  #mustQueue(session_id: string): boolean {
    const busy = this.#holds.at(session_id);
    if (busy) return busy.current().status !== "awaiting_approval"; // that one is superseded, whatever `if_busy` says
    return this.#queues.has(session_id);
  }

  /** Takes the session for a run: one that waits for a person is superseded, another one refused or cancelled. */
  async #take(runner: Runner): Promise<void> {
    const { id, session_id, options: { request } } = runner;
    for (let busy = this.#holds.at(session_id); busy; busy = this.#holds.at(session_id)) {
      if (!busy.ended) {
        const waits = busy.current().status === "awaiting_approval";
        if (!waits && request.if_busy !== "cancel") {
          throw new PreampError(
            "session_busy",
            `Cannot start a run in session "${session_id}": run "${busy.id}" has not ended`,
          );
        }
        await busy.cancel("graceful", waits ? `superseded by ${id}` : "cancelled");
      }
      await this.#holds.released(session_id);
    }
    await this.#holds.take(session_id, runner); // nothing came between: whoever else waited finds this run there
  }

  async #start(runner: Runner): Promise<Runner> {
    const { session_id } = runner;
    await this.#take(runner);
    try {
      await this.#catchUp(runner);
      await runner.begin();
    } catch (error) {
      await this.#holds.letGo(session_id);
      throw error;
    }
    this.#keep(runner);
    this.#go(runner);
    return runner;
  }

  /**
   * Takes the session as it is now that nobody else is at work in it: another run may have ended since it was read.
   * @throws {PreampError} `session_conflict` when the plan that the run took from it was replaced meanwhile.
   */
  async #catchUp(runner: Runner): Promise<void> {
    const { saved, request, caller } = runner.options;
    if (saved === null) return;
    const now = await this.#sessions.load(caller, runner.session_id);
    if (now === saved) return;
    const own_plan = request.plan !== undefined || request.plan_ref !== undefined;
    if (!own_plan && now.object.plan_hash !== saved.object.plan_hash) {
      throw new PreampError(
        "session_conflict",
        `Cannot start a run in session "${runner.session_id}": its plan was replaced meanwhile`,
      );
    }
    runner.continueFrom(now);
  }

  async #enqueue(runner: Runner): Promise<Runner> {
    const { session_id } = runner;
    const before = (this.#queues.get(session_id) ?? this.#holds.released(session_id)).catch(() => {}); // its own affair
    const stored = runner.queue();
    const turn = Promise.all([before, stored]).then(() => this.#takeTurn(runner));
    const tail = turn.finally(() => this.#queues.get(session_id) === tail && this.#queues.delete(session_id));
    this.#queues.set(session_id, tail);
    this.#track(tail.then(() => {}));
    await stored;
    this.#keep(runner);
    return runner;
  }

  /** A queued run's turn: it starts as soon as nobody is at work in its session; resolves when it has ended. */
  async #takeTurn(runner: Runner): Promise<void> {
    const { session_id } = runner;
    while (this.#holds.at(session_id)) await this.#holds.released(session_id);
    if (this.#draining) await runner.finish(cancelledOutcome());
    if (runner.ended) return;
    try {
      await this.#holds.take(session_id, runner);
    } catch (error) {
      return await runner.fail(error);
    }
    try {
      runner.continueFrom(await this.#sessions.load(runner.options.caller, session_id));
      if (!runner.ended) await runner.begin();
    } catch (error) {
      await runner.fail(error);
    }
    if (runner.ended) await this.#holds.letGo(session_id);
    else await this.#go(runner);
  }

  #go(runner: Runner): Promise<void> {
    const { request, create: { signal } } = runner.options;
    if (signal && request.on_disconnect === "cancel") {
      const leave = () => void runner.cancel("immediate", "client disconnected").catch(() => {}); // it ended meanwhile
      if (signal.aborted) leave();
      else signal.addEventListener("abort", leave, { once: true });
    }
    return this.#track(runner.run(request.prompt).finally(() => this.#holds.letGo(runner.session_id)));
  }

  #track(done: Promise<void>): Promise<void> {
    const watched = done.catch((error) => this.#deps.log("error", "run_lost", { message: String(error) }))
      .finally(() => this.#open.delete(watched));
    this.#open.add(watched);
    return watched;
  }

  #make(parts: {
    request: RunRequest;
    caller: Caller;
    options: CreateOptions;
    ready: ReadyPlan;
    run_id: string;
    session_id: string;
    saved: SavedSession | null;
  }): Runner {
    const { request, caller, options, ready, run_id, session_id, saved } = parts;
    const { idempotency } = options;
    const expires_ms = this.#deps.clock.now() + this.#deps.limits.idempotency_hours * 3_600_000;
    return new Runner({
      deps: this.#deps,
      caller,
      request,
      create: options,
      ready,
      run_id,
      session_id,
      saved,
      fence: () => this.#holds.fence(session_id),
      saveSession: (runner) => this.#sessions.put(caller, savedSession(runner, this.#deps.clock.now())),
      with_run: idempotency ? [this.#idempotency.put(caller, idempotency, run_id, expires_ms)] : [],
    });
  }

  #keep(runner: Runner): void {
    this.#runners.set(runner.id, runner);
    runner.settled("end").then(() => {
      if (runner.end_is_stored) this.#runners.delete(runner.id); // else only the runner knows how it ended
    });
  }

  #runnerOf(caller: Caller, run_id: string): Runner | undefined {
    const runner = this.#runners.get(run_id);
    return runner?.options.caller.namespace === caller.namespace ? runner : undefined;
  }

  async get(caller: Caller, run_id: string): Promise<Run> {
    const runner = this.#runnerOf(caller, run_id);
    if (runner) return runner.current();
    const record = await this.#deps.store.get("run", run_id);
    if (!record || record.namespace !== caller.namespace) {
      throw new PreampError("not_found", `Cannot find run "${printable(run_id)}"`);
    }
    return record.value as unknown as Run;
  }

  async handle(caller: Caller, run_id: string): Promise<RunHandle> {
    const runner = this.#runnerOf(caller, run_id);
    if (runner) return runner;
    const run = await this.get(caller, run_id);
    return {
      id: run.id,
      session_id: run.session_id,
      current: () => run,
      settled: () => Promise.resolve(run),
    };
  }

  async list(
    caller: Caller,
    filter: { session_id?: string; status?: RunStatus } & PageOptions,
  ): Promise<Page<Run>> {
    const where: Record<string, string> = {};
    if (filter.session_id !== undefined) where.session_id = filter.session_id;
    const wanted = filter.status;
    if (
      wanted !== undefined && wanted !== "running" && wanted !== "awaiting_approval" && wanted !== "queued"
    ) where.status = wanted;
    else if (wanted !== undefined) where.open = "true";
    const { records, next_cursor } = await this.#deps.store.list("run", {
      ...listOptions(caller, filter),
      where,
    });
    const runs = records.map((record) =>
      this.#runners.get(record.key)?.current() ?? record.value as unknown as Run
    );
    return { data: wanted === undefined ? runs : runs.filter((run) => run.status === wanted), next_cursor };
  }

  async remove(caller: Caller, run_id: string): Promise<void> {
    const run = await this.get(caller, run_id);
    if (run.ended_at === null) {
      throw new PreampError("session_busy", `Cannot delete run "${run_id}": it has not ended`);
    }
    const approvals = await this.approvals(caller, run_id).catch(() => []); // the log may be gone, and they with it
    await this.#deps.store.commit([
      { delete: { kind: "run", key: run_id } },
      ...approvals.map((approval) => approvalDeletion(run_id, approval.id)),
      { deleteLog: run_id },
    ]);
    this.#runners.delete(run_id);
  }

  async cancel(caller: Caller, run_id: string, mode: "graceful" | "immediate"): Promise<Run> {
    const run = await this.get(caller, run_id);
    const runner = this.#runnerOf(caller, run_id);
    if (run.ended_at !== null || !runner) return run;
    if (run.status === "queued") await runner.finish(cancelledOutcome());
    else await runner.cancel(mode);
    return runner.current();
  }

  async steer(caller: Caller, run_id: string, text: string): Promise<Run> {
    const run = await this.get(caller, run_id);
    const runner = this.#runnerOf(caller, run_id);
    if (!runner || run.ended_at !== null) {
      throw new PreampError("run_ended", "Cannot steer the run: it has ended");
    }
    runner.steer(text);
    return runner.current();
  }

  async approvals(caller: Caller, run_id: string): Promise<Approval[]> {
    const runner = this.#runnerOf(caller, run_id);
    if (runner) return runner.approvals.map((approval) => ({ ...approval }));
    const run = await this.get(caller, run_id);
    const entries = await this.events(caller, run.id, { after: 0, limit: Number.MAX_SAFE_INTEGER });
    return foldApprovals(run, entries);
  }

  async decide(
    caller: Caller,
    run_id: string,
    approval_id: string,
    answer: { decision: string; reason?: string; args_hash?: string },
  ): Promise<Approval> {
    const approvals = await this.approvals(caller, run_id);
    const approval = approvals.find((one) => one.id === approval_id);
    if (!approval) throw new PreampError("not_found", `Cannot find approval "${printable(approval_id)}"`);
    const runner = this.#runnerOf(caller, run_id);
    if (!runner || runner.ended) throw tooLate(approval);
    const reason = answer.reason ?? null;
    await runner.desk.decide(
      approval_id,
      { decision: answer.decision, reason, decided_by: caller.name },
      answer.args_hash,
    );
    return await runner.decided(approval_id);
  }

  async events(
    caller: Caller,
    run_id: string,
    options: { after?: number; limit?: number },
  ): Promise<Entry[]> {
    await this.get(caller, run_id);
    return await this.#page(caller, run_id, options.after ?? 0, options.limit ?? PAGE);
  }

  async #page(caller: Caller, run_id: string, after: number, limit: number): Promise<Entry[]> {
    const entries = await this.#deps.store.entries(run_id, after, limit);
    if (entries === null) {
      const run = await this.get(caller, run_id);
      throw new PreampError(
        "log_expired",
        `Cannot read the events of run "${run_id}": they are no longer kept`,
        {
          facts: { run: toPlain(run) },
        },
      );
    }
    return entries as Entry[];
  }

  async *follow(
    caller: Caller,
    run_id: string,
    options: { after?: number; signal?: AbortSignal },
  ): AsyncIterable<Entry[]> {
    const { signal } = options;
    let after = options.after ?? 0;
    const runner = this.#runnerOf(caller, run_id);
    if (!runner) await this.get(caller, run_id);
    while (!signal?.aborted) {
      const closed = runner === undefined || runner.log.closed;
      const entries = await this.#page(caller, run_id, after, PAGE);
      if (entries.length > 0) {
        yield entries;
        after = entries.at(-1)!.seq;
        if (entries.at(-1)!.event === "run:end") return;
      } else if (closed) return;
      else await runner.log.changed(after, signal);
    }
  }

  readonly sessions: Runs["sessions"] = {
    list: (caller: Caller, options: PageOptions): Promise<Page<SessionObject>> =>
      this.#sessions.list(caller, options),
    get: async (caller: Caller, session_id: string): Promise<SessionObject> =>
      (await this.#sessions.load(caller, session_id)).object,
    remove: async (caller: Caller, session_id: string): Promise<void> => {
      await this.#sessions.load(caller, session_id);
      if (this.#holds.at(session_id)) {
        throw new PreampError(
          "session_busy",
          `Cannot delete session "${printable(session_id)}": a run of it has not ended`,
        );
      }
      await this.#sessions.remove(session_id);
    },
    messages: async (caller: Caller, session_id: string): Promise<JsonObject[]> => {
      const saved = await this.#sessions.load(caller, session_id);
      const messages = this.#holds.at(session_id)?.messages ?? saved.messages;
      return messages.map((message) => message as JsonObject);
    },
  };

  /** Stops accepting; lets runs end for `grace_ms`, then stops them. */
  async drain(grace_ms: number): Promise<void> {
    this.#draining = true;
    for (const runner of this.#holds.runners) await runner.cancel("graceful", "the server is stopping");
    if (await this.#idle(grace_ms * 0.6)) return;
    for (const runner of this.#holds.runners) await runner.cancel("immediate", "the server is stopping");
    await this.#idle(grace_ms * 0.4);
  }

  async #idle(ms: number): Promise<boolean> {
    const timer = new AbortController();
    const done = Promise.allSettled([...this.#open]).then(() => true);
    const late = this.#deps.clock.after(ms, timer.signal).then(() => false, () => true);
    try {
      return await Promise.race([done, late]);
    } finally {
      timer.abort();
    }
  }

  get draining(): boolean {
    return this.#draining;
  }

  async close(): Promise<void> {
    await this.drain(0);
    this.#holds.close();
  }
}

/** A continued session without a plan of its own goes on with the session's. */
function asked(request: RunRequest, saved: SavedSession | null): RunRequest {
  return saved && request.plan === undefined && request.plan_ref === undefined
    ? { ...(saved.plan_lock ? { lock: saved.plan_lock } : {}), ...request, plan: saved.plan }
    : request;
}

function effective(caller: Caller, request: RunRequest, saved: SavedSession | null): Caller {
  return saved && request.plan === undefined && request.plan_ref === undefined
    ? { ...caller, origin: saved.plan_origin }
    : caller;
}

function savedSession(runner: Runner, now_ms: number): SavedSession {
  const { saved, ready, request, caller } = runner.options;
  const at = new Date(now_ms).toISOString();
  const own_plan = saved === null || request.plan !== undefined || request.plan_ref !== undefined;
  const plan_lock = own_plan ? request.lock : saved.plan_lock;
  return {
    object: {
      id: runner.session_id,
      object: "session",
      parent_id: saved?.object.parent_id ?? null,
      plan_hash: own_plan ? ready.compiled.plan_hash : saved.object.plan_hash,
      run_count: (saved?.object.run_count ?? 0) + 1,
      created_at: saved?.object.created_at ?? runner.created_at,
      last_activity: at,
      metadata: saved?.object.metadata ?? request.metadata ?? {},
    },
    messages: [...runner.messages],
    session_state: runner.session_state,
    usages: [...runner.usages],
    plan: own_plan ? ready.compiled.written : saved.plan,
    ...(plan_lock ? { plan_lock } : {}),
    plan_base_url: own_plan ? ready.base_url ?? null : saved.plan_base_url,
    plan_origin: own_plan
      ? (request.plan_ref !== undefined || request.plan === undefined ? "operator" : caller.origin)
      : saved.plan_origin,
  };
}

function foldApprovals(run: Run, entries: readonly Entry[]): Approval[] {
  const fold = new RunFold({
    id: run.id,
    session_id: run.session_id,
    created_at: run.created_at,
    warnings: [],
    history: [],
  });
  for (const entry of entries) if (entry.event.startsWith("approval:")) fold.add(entry);
  return fold.approvals;
}

function cancelledOutcome(): Outcome {
  return { status: "cancelled", stop_reason: "cancelled", output_text: "", output: [], error: null };
}
