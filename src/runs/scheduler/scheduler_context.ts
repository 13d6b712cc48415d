/** State and collaborators that all parts of the scheduler share: the runs and leases of this process. */
import { RunHeaders } from "../storage/run_headers.ts";
import { onAbort } from "../../sdk/abortable.ts";
import type { RunsDeps } from "../ports.ts";
import type { ActiveRun } from "../run/run.ts";
import type { SessionStore } from "../storage/session_store.ts";
import type { Caller, Run } from "../types.ts";
import { HeldLeases, SessionLeases } from "./leases.ts";
import { ReleasingMap } from "./releasing_map.ts";

/** Operations on the runs of all processes. */
export interface RunsAnywhere {
  /** Cancels a run. Resolves when the command is stored or carried out, or the run has ended. */
  cancel(run_id: string, reason: string): Promise<void>;
  /** Carries out the stored commands of a run of this process. */
  carryOut(run_id: string): Promise<void>;
  /** Resolves when a run of another process has settled. */
  settled(caller: Caller, run: Run, until: "end" | "attention"): Promise<Run>;
}

export class SchedulerContext {
  readonly held: HeldLeases;
  readonly leases: SessionLeases;
  readonly headers: RunHeaders;
  /** Runs of this process that have not ended. */
  readonly runs = new ReleasingMap<ActiveRun>();
  /** Whether no run may start any more. */
  is_draining = false;
  /** Aborted when runs whose end cannot be stored are left to other processes. */
  readonly stopping = new AbortController();

  /** @param onReleased Called when a session is free in this process. */
  constructor(
    readonly deps: RunsDeps,
    readonly sessions: SessionStore,
    readonly anywhere: RunsAnywhere,
    onReleased: (session_id: string) => void,
  ) {
    this.held = new HeldLeases(deps);
    this.headers = new RunHeaders(deps.secret_key);
    this.leases = new SessionLeases(this.held, onReleased);
  }

  /** Whether other processes may share the store. */
  get is_shared(): boolean {
    return this.deps.store.changed !== undefined;
  }

  /** Keeps a run that is active or waits for its session. */
  register(run: ActiveRun): void {
    if (!run.log.closed) this.runs.set(run.id, run);
  }

  /** Executes a run in the background, unless it has ended, and releases its session. */
  execute(run: ActiveRun): void {
    const { orphan, request, createOptions: { signal } } = run.options;
    const wasKnown = this.is_shared && (orphan !== undefined || this.runs.has(run.id));
    this.register(run);
    if (signal && request.on_disconnect === "cancel") {
      const cancel = () => run.cancel("immediate", "client disconnected");
      onAbort(signal, () => void cancel().catch(() => {})); // it ended meanwhile
    }
    void this.#executeAndRelease(run, wasKnown);
  }

  /** @param wasKnown Whether commands may be stored for the run: it was stored before it began here. */
  async #executeAndRelease(run: ActiveRun, wasKnown: boolean): Promise<void> {
    try {
      if (wasKnown) await this.anywhere.carryOut(run.id);
      if (!run.ended) await run.run(run.options.request.prompt);
      if (run.late_commit) await run.late_commit; // keeps its session meanwhile
    } catch (error) {
      this.deps.log("error", "run_lost", { run_id: run.id, message: String(error) });
    }
    void this.leases.release(run.session_id); // never rejects
  }
}
