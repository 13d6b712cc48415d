/** Waits of clients for a state of a run: that it needs attention, or that a question was answered. */
import { Waiters } from "../../store/waiters.ts";
import type { Approval, Run } from "../types.ts";
import type { RunProjection } from "./run_projection.ts";

/** The waits for one run. Each ends when the run does. */
export class RunWaiters {
  readonly #projection: RunProjection;
  /** Null until there is a wait. */
  #waiters: Waiters | null = null;

  constructor(projection: RunProjection) {
    this.#projection = projection;
  }

  /** Checks all waits: the run's status or its approvals may have changed. */
  notify(): void {
    this.#waiters?.wakeAll();
  }

  /** Resolves to the run when it awaits an approval, or has ended. */
  async untilAttention(): Promise<Run> {
    await this.#until(() => this.#projection.status === "awaiting_approval");
    return this.#projection.run;
  }

  /** Resolves to an approval once its answer is in the log. */
  async untilDecided(approval_id: string): Promise<Approval> {
    const find = () => this.#projection.approvals.find((approval) => approval.id === approval_id);
    await this.#until(() => find()?.status !== "pending");
    return { ...find()! };
  }

  async #until(holds: () => boolean): Promise<void> {
    this.#waiters ??= new Waiters();
    while (!holds() && this.#projection.run.ended_at === null) await this.#waiters.wait();
  }
}
