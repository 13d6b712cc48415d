/** State and collaborators that all parts of the scheduler share: the runs and leases of this process. */
import { onAbort } from "../../sdk/abortable.ts";
import type { RunsDeps } from "../ports.ts";
import type { ActiveRun } from "../run/run.ts";
import type { SessionStore } from "../storage/session_store.ts";
import { HeldLeases, SessionLeases } from "./leases.ts";
import { ReleasingMap } from "./releasing_map.ts";

/** Cancels a run in any process. Resolves when the cancellation was requested, or the run has ended. */
export type CancelRun = (run_id: string, reason: string) => Promise<void>;

export class SchedulerContext {
  readonly held: HeldLeases;
  readonly leases: SessionLeases;
  /** Runs of this process that have not ended, or whose end could not be stored. */
  readonly runs = new ReleasingMap<ActiveRun>();
  /** Whether no run may start any more. */
  is_draining = false;

  /** @param onReleased Called when a session is free in this process. */
  constructor(
    readonly deps: RunsDeps,
    readonly sessions: SessionStore,
    readonly cancel: CancelRun,
    onReleased: (session_id: string) => void,
  ) {
    this.held = new HeldLeases(deps.store, deps.newId("proc"), deps.log);
    this.leases = new SessionLeases(this.held, onReleased);
  }

  /** Whether other processes may share the store. */
  get is_shared(): boolean {
    return this.deps.store.changed !== undefined;
  }

  /** Whether a run of this process has ended, although its end may not be stored. */
  hasEnded(run_id: string): boolean {
    return this.runs.get(run_id)?.ended ?? false;
  }

  /** Keeps a run that is active or waits for its session. */
  register(run: ActiveRun): void {
    if (!run.log.closed || run.end_is_unstored) this.runs.set(run.id, run);
  }

  /** Executes a run in the background, unless it has ended, and releases its session. */
  execute(run: ActiveRun): void {
    this.register(run);
    const { request, createOptions: { signal } } = run.options;
    if (signal && request.on_disconnect === "cancel") {
      const cancel = () => run.cancel("immediate", "client disconnected");
      onAbort(signal, () => void cancel().catch(() => {})); // it ended meanwhile
    }
    void this.#executeAndRelease(run);
  }

  async #executeAndRelease(run: ActiveRun): Promise<void> {
    try {
      if (!run.ended) await run.run(run.options.request.prompt);
    } catch (error) {
      this.deps.log("error", "run_lost", { message: String(error) });
    }
    void this.leases.release(run.session_id); // never rejects
  }
}
