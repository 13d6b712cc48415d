/**
 * Starting runs: one at a time in a session, so many at once, the same request once; those that wait, in order; and the end
 * of all of them when the server stops. What happens inside a run is `run/run.ts`.
 */
import type { Entry } from "../../kernel/host.ts";
import type { Outcome } from "../../kernel/session/outcome.ts";
import { errorCode, errorMessage, PreampError } from "../../sdk/errors.ts";
import type { Prompt } from "../../sdk/types.ts";
import type { Awaitable } from "../../store/store.ts";
import { Admission, type AdmissionSlot } from "./admission.ts";
import type { RunnablePlan, RunsDeps } from "../ports.ts";
import { SessionLeases } from "./session_leases.ts";
import { Idempotency } from "./idempotency.ts";
import { printableId } from "../../process/ids.ts";
import type { OrphanedRun } from "./crash_state.ts";
import { inputChange, inputDeletion, openInputs, type StoredInput } from "../storage/run_input.ts";
import { ReleasingMap } from "./releasing_map.ts";
import { ActiveRun, type ResumeOptions } from "../run/run.ts";
import { askedPlan, callerOfPlan, savedChild, savedSession } from "../storage/saved_session.ts";
import type { SavedSession, Sessions } from "../storage/session_store.ts";
import type { Caller, CreateOptions, RunHandle, RunRequest } from "../types.ts";

/** Milliseconds between two looks for runs of processes that are gone: half of what a lease lasts (our choice). */
const RECOVER_EVERY_MS = 2_500;

/** The runs of this process, from their start to their end. */
export class RunScheduler {
  readonly #deps: RunsDeps;
  readonly #sessions: Sessions;
  readonly #idempotency: Idempotency;
  readonly #runners = new ReleasingMap<ActiveRun>();
  readonly #holds: SessionLeases;
  readonly #admission: Admission;
  /** Session id → settled when the last run of its queue has ended. */
  readonly #queues = new Map<string, Promise<unknown>>();
  readonly #open = new Set<Promise<void>>();
  readonly #recovering = new AbortController();
  #draining = false;

  constructor(deps: RunsDeps, sessions: Sessions) {
    this.#deps = deps;
    this.#sessions = sessions;
    this.#idempotency = new Idempotency(deps.store);
    this.#holds = new SessionLeases(deps.store, deps.newId("proc"), deps.log);
    this.#admission = new Admission((caller) => deps.limitsOf(caller));
  }

  /** Returns a run that has not ended, or whose end could not be stored. */
  runner(run_id: string): ActiveRun | undefined {
    return this.#runners.get(run_id);
  }

  /** Forgets a run that was deleted. */
  forget(run_id: string): void {
    this.#runners.delete(run_id);
  }

  /** Returns the run that is at work in a session. */
  at(session_id: string): ActiveRun | undefined {
    return this.#holds.at(session_id);
  }

  /** Starts a run, or finds the one that its key stands for, by `find`. */
  create(
    request: RunRequest,
    caller: Caller,
    options: CreateOptions,
    find: (run_id: string) => Promise<RunHandle>,
  ): Promise<RunHandle> {
    const { idempotency } = options;
    if (!idempotency) return this.#create(request, caller, options);
    return this.#idempotency.once<RunHandle>(
      caller,
      idempotency,
      () => this.#create(request, caller, options),
      find,
    );
  }

  async #create(request: RunRequest, caller: Caller, options: CreateOptions): Promise<ActiveRun> {
    if (this.#draining) throw new PreampError("draining", "Cannot start a run: the server is stopping");
    const session_id = request.session_id ?? this.#deps.newId("ses");
    const place = this.#admission.enter(caller, session_id, request.if_busy);
    try {
      const saved = request.session_id === undefined ? null : await this.#sessions.load(caller, session_id);
      const ready = await this.#deps.ready(
        askedPlan(request, saved),
        callerOfPlan(caller, request, saved),
        options.base_url ?? saved?.plan_base_url ?? undefined,
      );
      const run_id = this.#deps.newId("run");
      const runner = this.#make({ request, caller, options, ready, run_id, session_id, saved });
      if (request.if_busy === "queue" && this.#mustQueue(session_id)) await this.#enqueue(runner);
      else await this.#start(runner);
      this.#leaveAtEnd(runner, place);
      return runner;
    } catch (error) {
      this.#admission.leave(place);
      throw error;
    }
  }

  /** Gives a place back when its run has ended. */
  #leaveAtEnd(runner: ActiveRun, place: AdmissionSlot): void {
    runner.settled("end").then(() => this.#admission.leave(place)); // it never rejects
  }

  #mustQueue(session_id: string): boolean {
    const busy = this.#holds.at(session_id);
    if (busy) return busy.current().status !== "awaiting_approval"; // that one is superseded, whatever `if_busy` says
    return this.#queues.has(session_id);
  }

  /** Takes the session for a run: one that waits for a person is superseded, another one refused or cancelled. */
  #take(runner: ActiveRun): Awaitable<void> {
    const { session_id } = runner;
    return this.#holds.at(session_id) ? this.#takeOff(runner) : this.#holds.acquire(session_id, runner);
  }

  async #takeOff(runner: ActiveRun): Promise<void> {
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
    await this.#holds.acquire(session_id, runner); // nothing came between: whoever else waited finds this run there
  }

  /** Takes the session and begins the run. `is_new`: the session comes into being with it, there is nothing to be read again. */
  async #start(runner: ActiveRun, is_new = false): Promise<void> {
    const taken = this.#take(runner);
    if (taken) await taken;
    const { saved } = runner.options;
    try {
      if (saved !== null && !is_new) await this.#catchUp(runner, saved);
      await runner.begin();
    } catch (error) {
      await this.#holds.release(runner.session_id);
      throw error;
    }
    this.#keep(runner);
    this.#go(runner);
  }

  /** Starts a run in a session that comes into being with it, and may go on with a turn that was begun elsewhere. */
  async startIn(
    saved: SavedSession,
    request: RunRequest,
    caller: Caller,
    options: CreateOptions,
    resume: ResumeOptions | undefined,
  ): Promise<RunHandle> {
    if (this.#draining) throw new PreampError("draining", "Cannot start a run: the server is stopping");
    const session_id = saved.object.id;
    const place = this.#admission.enter(caller, session_id, undefined);
    try {
      const ready = await this.#deps.ready(
        askedPlan(request, saved),
        callerOfPlan(caller, request, saved),
        options.base_url ?? saved.plan_base_url ?? undefined,
      );
      const run_id = this.#deps.newId("run");
      const runner = this.#make({ request, caller, options, ready, run_id, session_id, saved, resume });
      await this.#start(runner, true);
      this.#leaveAtEnd(runner, place);
      return runner;
    } catch (error) {
      this.#admission.leave(place);
      throw error;
    }
  }

  /**
   * Takes over the runs of processes that are gone: those that have not ended and whose session nobody holds any more.
   * Resolves to their ids once each goes on, or has ended because it cannot.
   */
  async recover(): Promise<string[]> {
    const taken: string[] = [];
    for (const input of await openInputs(this.#deps.store)) {
      if (this.#draining || this.#runners.has(input.run_id) || this.#holds.at(input.session_id)) continue;
      try {
        if (await this.#takeOver(input)) taken.push(input.run_id);
      } catch (error) {
        if (errorCode(error) === "session_busy") continue; // its process lives, or another one was faster
        this.#deps.log("error", "run_not_recovered", { run_id: input.run_id, message: errorMessage(error) });
      }
    }
    return taken;
  }

  /** Looks for runs of processes that are gone, now and again and again until it is drained. */
  keepRecovering(): void {
    const { clock, log } = this.#deps;
    const { signal } = this.#recovering;
    const look = async () => {
      while (!signal.aborted) {
        await this.recover().catch((error) =>
          log("error", "recovery_failed", { message: errorMessage(error) })
        );
        await clock.after(RECOVER_EVERY_MS, signal);
      }
    };
    look().catch(() => {}); // told to stop
  }

  async #takeOver(input: StoredInput): Promise<boolean> {
    const { run_id, session_id, caller } = input;
    const log = await this.#deps.store.entries(run_id, 0, Number.MAX_SAFE_INTEGER) as Entry[] | null;
    if (log === null || log.at(-1)?.event === "run:end") {
      await this.#deps.store.commit([log === null ? inputDeletion(run_id) : inputChange(input, false)]);
      return false;
    }
    const saved = await this.#sessions.load(caller, session_id).catch(() => null); // a queued run's may not be there yet
    const origin = input.plan_origin;
    const ready = await this.#deps.ready(
      { ...input.request, plan: input.plan, ...(input.plan_lock ? { lock: input.plan_lock } : {}) },
      { ...caller, origin },
      input.plan_base_url ?? undefined,
    );
    const runner = this.#make({
      request: input.own_plan ? { ...input.request, plan: input.plan } : input.request,
      caller: input.own_plan ? { ...caller, origin } : caller,
      options: {},
      ready,
      run_id,
      session_id,
      // the session was kept when the run began: what is counted and kept again at its end is what was there before
      saved: saved && input.surface !== null ? asBefore(saved, input) : saved,
      ...(input.resume ? { resume: input.resume } : {}),
      inherited: { input, entries: log },
    });
    await this.#holds.acquire(session_id, runner);
    const since = await this.#deps.store.entries(run_id, log.length, 1);
    if (since === null || since.length > 0) { // it went on while its lease was being taken
      await this.#holds.release(session_id);
      return false;
    }
    const place = this.#admission.enter(caller, session_id, "queue", true);
    this.#leaveAtEnd(runner, place);
    try {
      await runner.begin();
    } catch (error) {
      await runner.interrupt(error);
      await this.#holds.release(session_id);
      return true;
    }
    this.#keep(runner);
    this.#go(runner);
    return true;
  }

  /**
   * Takes the session as it is now that nobody else is at work in it: another run may have ended since it was read.
   * @throws {PreampError} `session_conflict` when the plan that the run took from it was replaced meanwhile.
   */
  async #catchUp(runner: ActiveRun, saved: SavedSession): Promise<void> {
    const { request, caller } = runner.options;
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

  async #enqueue(runner: ActiveRun): Promise<void> {
    const { session_id } = runner;
    const before = (this.#queues.get(session_id) ?? this.#holds.released(session_id)).catch(() => {}); // its own affair
    const stored = runner.queue();
    const turn = Promise.all([before, stored]).then(() => this.#takeTurn(runner));
    const tail = turn.finally(() => this.#queues.get(session_id) === tail && this.#queues.delete(session_id));
    this.#queues.set(session_id, tail);
    this.#track(tail.then(() => {}));
    await stored;
    this.#keep(runner);
  }

  /** A queued run's turn: it starts as soon as nobody is at work in its session; resolves when it has ended. */
  async #takeTurn(runner: ActiveRun): Promise<void> {
    const { session_id } = runner;
    while (this.#holds.at(session_id)) await this.#holds.released(session_id);
    if (this.#draining) await runner.finish(cancelledOutcome());
    if (runner.ended) return;
    try {
      await this.#holds.acquire(session_id, runner);
    } catch (error) {
      return await runner.fail(error);
    }
    try {
      runner.continueFrom(await this.#sessions.load(runner.options.caller, session_id));
      if (!runner.ended) await runner.begin();
    } catch (error) {
      await runner.fail(error);
    }
    if (runner.ended) await this.#holds.release(session_id);
    else await this.#go(runner);
  }

  #go(runner: ActiveRun): Promise<void> {
    const { request, create: { signal } } = runner.options;
    if (signal && request.on_disconnect === "cancel") {
      const leave = () => void runner.cancel("immediate", "client disconnected").catch(() => {}); // it ended meanwhile
      if (signal.aborted) leave();
      else signal.addEventListener("abort", leave, { once: true });
    }
    return this.#track(this.#runToEnd(runner, request.prompt));
  }

  async #runToEnd(runner: ActiveRun, prompt: Prompt): Promise<void> {
    try {
      await runner.run(prompt);
    } finally {
      const left = this.#holds.release(runner.session_id);
      if (left) await left;
    }
  }

  #track(done: Promise<void>): Promise<void> {
    const watched = done.then(() => void this.#open.delete(watched), (error) => {
      this.#open.delete(watched);
      this.#deps.log("error", "run_lost", { message: String(error) });
    });
    this.#open.add(watched);
    return watched;
  }

  #make(parts: {
    request: RunRequest;
    caller: Caller;
    options: CreateOptions;
    ready: RunnablePlan;
    run_id: string;
    session_id: string;
    saved: SavedSession | null;
    resume?: ResumeOptions | undefined;
    inherited?: OrphanedRun;
  }): ActiveRun {
    const { request, caller, options, ready, run_id, session_id, saved, resume, inherited } = parts;
    const { idempotency } = options;
    const expires_ms = this.#deps.clock.now() + this.#deps.limitsOf(caller).idempotency_hours * 3_600_000;
    return new ActiveRun({
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
      letGoChild: (id) => this.#holds.release(id),
      saveChild: (runner, child) =>
        this.#sessions.put(caller, savedChild(runner, child, this.#deps.clock.now())),
      saveSession: (runner) => this.#sessions.put(caller, savedSession(runner, this.#deps.clock.now())),
      ...(resume ? { resume } : {}),
      ...(inherited ? { inherited } : {}),
      with_run: idempotency ? [this.#idempotency.put(caller, idempotency, run_id, expires_ms)] : [],
    });
  }

  /** A sub-agent's session goes on only for who spawned it, and for one run at a time. */
  async #takeChild(
    caller: Caller,
    runner: ActiveRun,
    session_id: string,
    parent_id: string,
  ): Promise<SavedSession> {
    const found = await this.#sessions.load(caller, session_id);
    if (found.object.parent_id !== parent_id || found.spawned === undefined) {
      throw new PreampError(
        "not_found",
        `Cannot find session "${printableId(session_id)}" among this session's agents`,
      );
    }
    await this.#holds.acquire(session_id, runner);
    try {
      return await this.#sessions.load(caller, session_id); // a run of it may have ended since it was read
    } catch (error) {
      await this.#holds.release(session_id);
      throw error;
    }
  }

  #keep(runner: ActiveRun): void {
    this.#runners.set(runner.id, runner);
    runner.settled("end").then(() => {
      if (runner.end_is_stored) this.#runners.delete(runner.id); // else only the runner knows how it ended
    });
  }

  /** Stops accepting; lets runs end for `grace_ms`, then stops them. */
  async drain(grace_ms: number): Promise<void> {
    this.#draining = true;
    this.#recovering.abort();
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

/** A session as it was before a run began, from what was kept of it then. */
function asBefore(saved: SavedSession, { continued }: StoredInput): SavedSession | null {
  const { run_count } = saved.object;
  return continued || run_count > 1
    ? { ...saved, object: { ...saved.object, run_count: run_count - 1 } }
    : null;
}

/** Returns the outcome of a run that was cancelled before it began. */
export function cancelledOutcome(): Outcome {
  return { status: "cancelled", stop_reason: "cancelled", output_text: "", output: [], error: null };
}
