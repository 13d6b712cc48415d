/**
 * Continues the runs of crashed processes. A run is recovered when it has not ended and the lease of its
 * session has expired. See src/docs/architecture.md#the-log-is-the-state.
 */
import type { Entry } from "../../kernel/host.ts";
import { errorCode, errorMessage } from "../../sdk/errors.ts";
import type { RunsDeps } from "../ports.ts";
import type { ActiveRun } from "../run/run.ts";
import type { NewRun } from "../run/run_options.ts";
import { inputChange, inputDeletion, openInputs, type StoredInput } from "../storage/run_input.ts";
import type { SavedSession, SessionStore } from "../storage/session_store.ts";
import type { SessionLeases } from "./session_leases.ts";

/** Milliseconds between two searches for orphaned runs: half the duration of a lease. */
const RECOVER_EVERY_MS = 2_500;

/** Collaborators of {@link Recovery}. */
export interface RecoveryDeps {
  readonly deps: RunsDeps;
  readonly sessions: SessionStore;
  readonly leases: SessionLeases;
  /** Returns whether a run is active in this process. */
  isActive(run_id: string): boolean;
  newRun(options: NewRun): ActiveRun;
  /** Counts a run against the limits of concurrent runs, without checking them. */
  admit(run: ActiveRun): void;
  /** Executes a run that has begun, until its end. */
  execute(run: ActiveRun): void;
}

/** Finds orphaned runs and continues them in this process. */
export class Recovery {
  readonly #deps: RecoveryDeps;
  readonly #stopped = new AbortController();

  constructor(deps: RecoveryDeps) {
    this.#deps = deps;
  }

  /**
   * Continues every run that has not ended and whose session has no lease.
   * Resolves to the run ids once each run executes again, or has ended because it cannot be continued.
   */
  async recover(): Promise<string[]> {
    const { deps: { store, log }, leases, isActive } = this.#deps;
    const recovered: string[] = [];
    for (const input of await openInputs(store)) {
      if (this.#stopped.signal.aborted || isActive(input.run_id) || leases.runIn(input.session_id)) continue;
      try {
        if (await this.#recoverRun(input)) recovered.push(input.run_id);
      } catch (error) {
        // its process is alive, or another process was faster
        if (errorCode(error) === "session_busy") continue;
        log("error", "run_not_recovered", { run_id: input.run_id, message: errorMessage(error) });
      }
    }
    return recovered;
  }

  /** Calls {@link recover} now and every 2.5 s, until {@link stop}. */
  start(): void {
    const { clock, log } = this.#deps.deps;
    const { signal } = this.#stopped;
    const repeat = async () => {
      while (!signal.aborted) {
        await this.recover().catch((error) =>
          log("error", "recovery_failed", { message: errorMessage(error) })
        );
        await clock.after(RECOVER_EVERY_MS, signal);
      }
    };
    repeat().catch(() => {}); // stopped
  }

  /** Stops searching for orphaned runs. */
  stop(): void {
    this.#stopped.abort();
  }

  async #recoverRun(input: StoredInput): Promise<boolean> {
    const { deps, sessions, leases, newRun, admit, execute } = this.#deps;
    const { run_id, session_id, caller } = input;
    const log = await deps.store.entries(run_id, 0, Number.MAX_SAFE_INTEGER) as Entry[] | null;
    if (log === null || log.at(-1)?.event === "run:end") {
      await deps.store.commit([log === null ? inputDeletion(run_id) : inputChange(input, false)]);
      return false;
    }
    // a queued run's session may not exist yet
    const saved = await sessions.load(caller, session_id).catch(() => null);
    const origin = input.plan_origin;
    const ready = await deps.ready(
      { ...input.request, plan: input.plan, ...(input.plan_lock ? { lock: input.plan_lock } : {}) },
      { ...caller, origin },
      input.plan_base_url ?? undefined,
    );
    const run = newRun({
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
      orphan: { input, entries: log },
    });
    await leases.acquire(session_id, run);
    const appended = await deps.store.entries(run_id, log.length, 1);
    // another process continued it before the lease was acquired
    if (appended === null || appended.length > 0) {
      await leases.release(session_id);
      return false;
    }
    admit(run);
    try {
      await run.begin();
    } catch (error) {
      await run.interrupt(error);
      await leases.release(session_id);
      return true;
    }
    execute(run);
    return true;
  }
}

/** Returns a session as it was before a run began. */
function beforeRun(saved: SavedSession, { continued }: StoredInput): SavedSession | null {
  const { run_count } = saved.object;
  return continued || run_count > 1
    ? { ...saved, object: { ...saved.object, run_count: run_count - 1 } }
    : null;
}
