/**
 * Starting runs: one at a time in a session, so many at once, the same request once; those that wait, in order; and the end
 * of all of them when the server stops. What happens inside a run is `runner.ts`.
 */
import type { Outcome } from "../kernel/outcome.ts";
import { PreampError } from "../sdk/errors.ts";
import { Admission } from "./admission.ts";
import type { ReadyPlan, RunsDeps } from "./deps.ts";
import { SessionHolds } from "./holds.ts";
import { Idempotency } from "./idempotency.ts";
import { type ResumeOptions, Runner } from "./runner.ts";
import { askedPlan, callerOfPlan, savedChild, savedSession } from "./saved_session.ts";
import { printable, type SavedSession, type Sessions } from "./sessions.ts";
import type { Caller, CreateOptions, RunHandle, RunRequest } from "./types.ts";

/** What a run is made of. */
interface NewRun {
  request: RunRequest;
  caller: Caller;
  options: CreateOptions;
  ready: ReadyPlan;
  run_id: string;
  session_id: string;
  saved: SavedSession | null;
  /** How it goes on with a turn that was begun elsewhere. */
  resume?: ResumeOptions | undefined;
}

/** The runs of this process, from their start to their end. */
export class RunStarter {
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

  constructor(deps: RunsDeps, sessions: Sessions) {
    this.#deps = deps;
    this.#sessions = sessions;
    this.#idempotency = new Idempotency(deps.store);
    this.#holds = new SessionHolds(deps.store, deps.newId("proc"), deps.log);
    this.#admission = new Admission(deps.limits);
  }

  /** Returns a run that has not ended, or whose end could not be stored. */
  runner(run_id: string): Runner | undefined {
    return this.#runners.get(run_id);
  }

  /** Forgets a run that was deleted. */
  forget(run_id: string): void {
    this.#runners.delete(run_id);
  }

  /** Returns the run that is at work in a session. */
  at(session_id: string): Runner | undefined {
    return this.#holds.at(session_id);
  }

  /** Starts a run, or finds the one that its key stands for, by `find`. */
  async create(
    request: RunRequest,
    caller: Caller,
    options: CreateOptions,
    find: (run_id: string) => Promise<RunHandle>,
  ): Promise<RunHandle> {
    const { idempotency } = options;
    if (!idempotency) return await this.#create(request, caller, options);
    return await this.#idempotency.once<RunHandle>(
      caller,
      idempotency,
      () => this.#create(request, caller, options),
      find,
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
      askedPlan(request, saved),
      callerOfPlan(caller, request, saved),
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
      if (busy.session_id !== session_id) {
        throw new PreampError(
          "session_busy",
          `Cannot start a run in session "${session_id}": its agent is at work in run "${busy.id}"`,
        );
      }
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
    await this.#take(runner);
    await this.#begin(runner, () => this.#catchUp(runner));
    return runner;
  }

  /** Begins a run whose session is taken. */
  async #begin(runner: Runner, before: () => Promise<void> = () => Promise.resolve()): Promise<void> {
    try {
      await before();
      await runner.begin();
    } catch (error) {
      await this.#holds.letGo(runner.session_id);
      throw error;
    }
    this.#keep(runner);
    this.#go(runner);
  }

  /** Starts a run that goes on behind an entry of another, in a session of its own that nobody else knows yet. */
  async goOn(
    parts: Omit<NewRun, "run_id" | "ready"> & { ready: () => Promise<ReadyPlan> },
  ): Promise<Runner> {
    if (this.#draining) throw new PreampError("draining", "Cannot start a run: the server is stopping");
    const { caller, session_id } = parts;
    const place = this.#admission.enter(caller, session_id, undefined);
    try {
      const ready = await parts.ready();
      const runner = this.#make({ ...parts, ready, run_id: this.#deps.newId("run") });
      await this.#holds.take(session_id, runner);
      await this.#begin(runner);
      runner.settled("end").finally(() => this.#admission.leave(place));
      return runner;
    } catch (error) {
      this.#admission.leave(place);
      throw error;
    }
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

  #make({ request, caller, options, ready, run_id, session_id, saved, resume }: NewRun): Runner {
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
      takeChild: (runner, id, parent_id) => this.#takeChild(caller, runner, id, parent_id),
      letGoChild: (id) => this.#holds.letGo(id),
      saveChild: (runner, child) =>
        this.#sessions.put(caller, savedChild(runner, child, this.#deps.clock.now())),
      saveSession: (runner) => this.#sessions.put(caller, savedSession(runner, this.#deps.clock.now())),
      ...(resume ? { resume } : {}),
      with_run: idempotency ? [this.#idempotency.put(caller, idempotency, run_id, expires_ms)] : [],
    });
  }

  /** A sub-agent's session goes on only for who spawned it, and for one run at a time. */
  async #takeChild(
    caller: Caller,
    runner: Runner,
    session_id: string,
    parent_id: string,
  ): Promise<SavedSession> {
    const found = await this.#sessions.load(caller, session_id);
    if (found.object.parent_id !== parent_id || found.spawned === undefined) {
      throw new PreampError(
        "not_found",
        `Cannot find session "${printable(session_id)}" among this session's agents`,
      );
    }
    await this.#holds.take(session_id, runner);
    try {
      return await this.#sessions.load(caller, session_id); // a run of it may have ended since it was read
    } catch (error) {
      await this.#holds.letGo(session_id);
      throw error;
    }
  }

  #keep(runner: Runner): void {
    this.#runners.set(runner.id, runner);
    runner.settled("end").then(() => {
      if (runner.end_is_stored) this.#runners.delete(runner.id); // else only the runner knows how it ended
    });
  }

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

/** Returns the outcome of a run that was cancelled before it began. */
export function cancelledOutcome(): Outcome {
  return { status: "cancelled", stop_reason: "cancelled", output_text: "", output: [], error: null };
}
