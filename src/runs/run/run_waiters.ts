/** Waits of clients for a state of a run: that it needs attention, or that a question was answered. */
import { Waiters } from "../../store/waiters.ts";
import { type Approval, AWAITING } from "../types.ts";
import type { RunProjection } from "./run_projection.ts";

/** The waits for one run. Each ends when the run does. */
export class RunWaiters {
  readonly #projection: RunProjection;
  /** Null until there is a wait. */
  #waiters: Waiters | null = null;
  #is_closed = false;

  constructor(projection: RunProjection) {
    this.#projection = projection;
  }

  /** Checks all waits: the run's status or its approvals may have changed. */
  notify(): void {
    this.#waiters?.wakeAll();
  }

  /** Ends all waits: the run has ended, or this process has lost it. */
  close(): void {
    this.#is_closed = true;
    this.notify();
  }

  /** Resolves when the run waits for a person. */
  untilAttention(): Promise<void> {
    return this.#until(() => AWAITING.has(this.#projection.status));
  }

  /** Resolves to an approval once its answer is in the log. */
  async untilDecided(approval_id: string): Promise<Approval> {
    const find = () => this.#projection.approvals.find((approval) => approval.id === approval_id);
    await this.#until(() => find()?.status !== "pending");
    return { ...find()! };
  }

  async #until(holds: () => boolean): Promise<void> {
    this.#waiters ??= new Waiters();
    while (!holds() && !this.#is_closed) await this.#waiters.wait();
  }
}
