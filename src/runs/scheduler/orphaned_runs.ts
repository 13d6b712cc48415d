/**
 * Continues the runs of crashed processes. A run is recovered when it has not ended and the lease of its
 * session, or its own lease while it waits, has expired. See src/docs/architecture.md#the-log-is-the-state.
 */
import { draftEntry, type Entry } from "../../kernel/host.ts";
import { failedOutcome, type Outcome } from "../../kernel/outcome.ts";
import { errorMessage, PreampError } from "../../sdk/errors.ts";
import type { JsonObject } from "../../sdk/json.ts";
import { timestamp } from "../../sdk/timestamp.ts";
import type { RunnablePlan } from "../ports.ts";
import type { Lease } from "../run/lease.ts";
import { lostAttempts } from "../run/restored_run.ts";
import type { ActiveRun } from "../run/run.ts";
import type { NewRun } from "../run/run_options.ts";
import {
  inputDeletions,
  loadOpenInput,
  type OpenInput,
  openInputs,
  type StoredInput,
} from "../storage/run_input.ts";
import { RunProjection } from "../run/run_projection.ts";
import { DAY_MS, endOf } from "../run/run_records.ts";
import { pointOf, withAnswers } from "../storage/fork.ts";
import { initialState, lastRunOf, sessionChanges } from "../storage/session_store.ts";
import type { Run, SavedSession } from "../types.ts";
import { projectRun } from "./remote_runs.ts";
import type { SchedulerContext } from "./scheduler_context.ts";
import { type SessionQueue, waitingLease } from "./session_queue.ts";
import { sessionLease } from "./leases.ts";
import type { OrphanedRun } from "../storage/run_input.ts";

/** Milliseconds between two searches when no process has died: a living one may have left a run. */
const SEARCH_EVERY_MS = 5_000;

/** Most times that a model call is repeated because its process ended. */
const MAX_REPEATED_CALLS = 2;

/** A run whose process is gone, and the lease that was acquired for it. */
interface Claim extends OrphanedRun {
  readonly lease: Lease;
  release(): Promise<void>;
}

/** Finds orphaned runs and continues them in this process. */
export class Recovery {
  readonly #scheduler: SchedulerContext;
  readonly #queue: SessionQueue;
  readonly #newRun: (options: Omit<NewRun, "slot">) => ActiveRun;
  readonly #stopped = new AbortController();

  /** @param newRun Creates a run; counts it against the limits of concurrent runs without checking them. */
  constructor(
    scheduler: SchedulerContext,
    queue: SessionQueue,
    newRun: (options: Omit<NewRun, "slot">) => ActiveRun,
  ) {
    this.#scheduler = scheduler;
    this.#queue = queue;
    this.#newRun = newRun;
  }

  /**
   * Continues every run that has not ended and whose process is gone. Resolves to the run ids once each run
   * executes again, waits for its session, or has ended because it cannot be continued.
   */
  async recover(): Promise<string[]> {
    const { deps: { store, log }, runs, held } = this.#scheduler;
    await held.beat(); // finds the processes that have died
    const others = (await openInputs(store)).filter(({ run_id }) => !runs.has(run_id));
    const inputs = await this.#withFreeLease(others);
    const failed = (run_id: string) => (error: unknown) => {
      log("error", "run_not_recovered", { run_id, message: errorMessage(error) });
      return null;
    };
    const claims = await Promise.all(inputs.map((input) => this.#claim(input).catch(failed(input.run_id))));
    const recovered: string[] = [];
    for (const claim of claims) {
      if (claim === null) continue;
      const { run_id } = claim.input;
      if (await this.#recoverRun(claim).catch(failed(run_id))) recovered.push(run_id);
    }
    return recovered;
  }

  /** Resolves to the runs whose process is gone. */
  async #withFreeLease(inputs: readonly OpenInput[]): Promise<readonly OpenInput[]> {
    if (inputs.length === 0) return inputs;
    const free = new Set(await this.#scheduler.deps.store.free(inputs.map(leaseOf)));
    return inputs.filter((input) => free.has(leaseOf(input)));
  }

  /** Calls {@link recover} now, when processes have died, and each five seconds, until {@link stop}. */
  start(): void {
    const { deps: { clock, log }, held } = this.#scheduler;
    const { signal } = this.#stopped;
    let is_searching = false;
    const search = async () => {
      if (is_searching || signal.aborted) return;
      is_searching = true;
      await this.recover().catch((error) =>
        log("error", "recovery_failed", { message: errorMessage(error) })
      );
      is_searching = false;
    };
    held.onDeaths = () => void search();
    const repeat = async () => {
      while (!signal.aborted) {
        await search();
        await clock.after(SEARCH_EVERY_MS, signal);
      }
    };
    repeat().catch(() => {}); // stopped
  }

  /** Stops searching for orphaned runs, and leaves those that were found to other processes. */
  stop(): void {
    this.#stopped.abort();
  }

  /**
   * Acquires the lease that the process of a run has while it is alive, and reads the run; resolves to null
   * when the process is alive, or the run has ended.
   */
  async #claim({ run_id, session_id }: OpenInput): Promise<Claim | null> {
    const { leases } = this.#scheduler;
    if (this.#stopped.signal.aborted) return null;
    if (session_id === undefined) { // it waits, or was about to begin
      const lease = await this.#queue.claim(run_id);
      if (lease === null) return null;
      const claim = await this.#read(run_id, lease, () => this.#queue.disclaim(run_id));
      if (claim === null || isWaiting(claim.entries)) return claim;
      await claim.release();
      ({ session_id } = claim.input);
    }
    const begun_in = session_id;
    const lease = leases.has(begun_in) ? null : await leases.acquire(begun_in, null);
    return lease && await this.#read(run_id, lease, async () => await leases.release(begun_in));
  }

  /** Reads a run whose lease was acquired; releases it and resolves to null when the run has ended. */
  async #read(run_id: string, lease: Lease, release: () => Promise<void>): Promise<Claim | null> {
    const { store } = this.#scheduler.deps;
    try {
      const input = await loadOpenInput(store, run_id);
      if (input !== null) {
        const entries = await store.entries(run_id, 0, Number.MAX_SAFE_INTEGER) as Entry[] | null;
        if (entries !== null) return { input, entries, lease, release };
        await store.commit(inputDeletions(run_id));
      }
    } catch (error) {
      await release();
      throw error;
    }
    await release();
    return null;
  }

  /** Continues a run, or ends it; resolves to false when this process stops and leaves it to others. */
  async #recoverRun(claim: Claim): Promise<boolean> {
    const { deps: { log }, leases } = this.#scheduler;
    const { input: { session_id }, entries, lease, release } = claim;
    const { signal } = this.#stopped;
    let run: ActiveRun | null = null;
    try {
      if (!signal.aborted) run = await this.#restore(claim);
    } catch (error) {
      await release();
      throw error;
    }
    if (run === null || signal.aborted) {
      await release();
      return !signal.aborted;
    }
    run.hold(lease);
    if (isWaiting(entries)) {
      this.#queue.wait(run);
      this.#scheduler.register(run);
      return true;
    }
    leases.assign(session_id, run);
    try {
      await run.begin();
      log("info", "run_continued", { run_id: run.id });
    } catch (error) {
      if (run.log.last_seq === entries.length) { // the store takes nothing: tried again
        run.handOver();
        await release();
        throw error;
      }
      await run.finish(interruptedOutcome(error));
    }
    this.#scheduler.execute(run);
    return true;
  }

  /**
   * Creates the run in this process. Ends it and resolves to null when its plan is no longer allowed, or its
   * model call was lost too often.
   */
  async #restore({ input: stored, entries, lease }: Claim): Promise<ActiveRun | null> {
    const { deps, sessions } = this.#scheduler;
    const { run_id, session_id, caller } = stored;
    // the session of a waiting run may be deleted
    const saved = await sessions.find(caller, session_id);
    // a run that has waited continues the session as the runs before it have left it
    const input = saved && stored.surface === null ? { ...stored, ...initialState(saved) } : stored;
    const lost = lostAttempts(entries, session_id);
    if (lost > MAX_REPEATED_CALLS) {
      await this.#end({ input, entries }, saved, lease, { error: lostCallError(lost) });
      return null;
    }
    const origin = input.plan_origin;
    let ready: RunnablePlan;
    try {
      ready = await deps.ready(
        {
          ...input.request,
          plan: input.plan,
          ...(input.plan_lock ? { lock: input.plan_lock } : {}),
          ...(input.plan_workspace === undefined ? {} : { workspace: input.plan_workspace }),
        },
        { ...caller, origin },
        input.plan_base_url ?? undefined,
        await this.#scheduler.headers.read(run_id, input.headers),
      );
    } catch (error) {
      if (!(error instanceof PreampError)) throw error; // such as a network that is down: tried again
      await this.#end({ input, entries }, saved, lease, { error });
      return null;
    }
    return this.#newRun({
      request: input.own_plan ? { ...input.request, plan: input.plan } : input.request,
      caller: input.own_plan ? { ...caller, origin } : caller,
      createOptions: {},
      ready,
      run_id,
      session_id,
      // the session was stored when the run began, and its end counts the run again: start from the session
      // before the run
      saved: saved && input.surface !== null ? beforeRun(saved, input) : saved,
      ...(input.resume ? { resume: input.resume } : {}),
      orphan: { input, entries },
    });
  }

  /**
   * Ends a run of a process that is gone, instead of continuing it. `lease`: that of its session, which is
   * released unless `keeps_lease`.
   */
  async endOrphan(run_id: string, lease: Lease, keeps_lease = false): Promise<void> {
    const { deps: { store }, sessions } = this.#scheduler;
    const input = await loadOpenInput(store, run_id);
    const entries = await store.entries(run_id, 0, Number.MAX_SAFE_INTEGER) as Entry[] | null;
    if (input === null || entries === null) return;
    const saved = await sessions.find(input.caller, input.session_id);
    await this.#end({ input, entries }, saved, lease, { keeps_lease });
  }

  /** Ends a run that cannot be restored, or is not to be. */
  async #end(
    orphan: OrphanedRun,
    saved: SavedSession | null,
    lease: Lease,
    { error, keeps_lease = false }: { error?: Error; keeps_lease?: boolean },
  ): Promise<void> {
    const { store, clock, limitsOf, log } = this.#scheduler.deps;
    const { input, entries } = orphan;
    const { run_id, session_id, caller } = input;
    if (error) log("warning", "run_not_continued", { run_id, message: errorMessage(error) });
    const record = await store.get("run", run_id);
    if (record === null) return;
    const now_ms = clock.now();
    const outcome = interruptedOutcome(error);
    const stored = record.value as unknown as Run;
    const run = projectRun(stored, entries).end(outcome, timestamp(now_ms));
    const draft = draftEntry("run:end", session_id, { run: run as unknown as JsonObject });
    const entry: Entry = { ...draft, run_id, seq: entries.length + 1, ts: timestamp(now_ms) };
    const expires_ms = now_ms + limitsOf(caller).retention_days * DAY_MS;
    await store.commit([
      { append: run_id, after: entries.length, entries: [entry] },
      ...endOf(run, input, expires_ms, keeps_lease ? null : lease),
      ...(saved && !isWaiting(entries)
        ? sessionChanges(
          caller,
          { ...sessionAfter(saved, stored, orphan), last_run: lastRunOf(outcome) },
          { before: initialState(saved), expires_ms },
        )
        : []),
    ], lease.fence);
    if (!keeps_lease) lease.released();
  }
}

/** Returns whether a run had not begun: it waited for its session. */
function isWaiting(entries: readonly Entry[]): boolean {
  const last = entries.findLast(({ event }) => event === "run:start" || event === "run:status");
  return last?.data.status === "queued";
}

/** Returns a session as it was before a run began. */
function beforeRun(saved: SavedSession, { continued }: StoredInput): SavedSession | null {
  const { run_count } = saved.object;
  return continued || run_count > 1
    ? { ...saved, object: { ...saved.object, run_count: run_count - 1 } }
    : null;
}

/** Returns a session with what an interrupted run has added to it. */
function sessionAfter(saved: SavedSession, run: Run, { input, entries }: OrphanedRun): SavedSession {
  const { session_id } = input;
  const has_turn = entries.some((entry) =>
    entry.event === "execution:start" && entry.session_id === session_id
  );
  if (!has_turn) return saved;
  const { messages, session_state } = pointOf({ run, events: entries, replay: input }, entries.length);
  const projection = new RunProjection(
    { ...run, warnings: [] },
    { ...input, counters: saved.counters },
  );
  for (const entry of entries) projection.add(entry);
  const { usages, counters, remembered } = projection.of(session_id);
  return {
    ...saved,
    history: withAnswers(messages, "was interrupted: its process ended, and its effect is not known"),
    session_state,
    usages,
    counters,
    ...(remembered.length > 0 ? { remembered } : {}),
  };
}

/** Returns why a run does not repeat its model call once more. */
function lostCallError(attempts: number): Error {
  return new Error(
    `its model call was lost ${attempts} times, and each attempt may have been paid; give the call less to do, ` +
      "use a faster model, or a host that lets a process run longer",
  );
}

/** Returns the outcome of a run that is not continued. `error`: why it cannot be. */
function interruptedOutcome(error?: unknown): Outcome {
  const reason = error === undefined ? "" : `: ${errorMessage(error)}`;
  return failedOutcome(new Error(`Cannot continue the run: its process ended${reason}`), "interrupted");
}

/** Returns the name of the lease that the process of a run has while it is alive. */
function leaseOf({ run_id, session_id }: OpenInput): string {
  return session_id === undefined ? waitingLease(run_id) : sessionLease(session_id);
}
