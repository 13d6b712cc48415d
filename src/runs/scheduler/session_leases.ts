/**
 * Which run is at work in which session: one at a time in this process, and by a lease one at a time among all processes
 * (architecture.md, Resume). Knows no queue and no policy of who goes first.
 */
import { PreampError } from "../../sdk/errors.ts";
import type { JsonObject } from "../../sdk/types.ts";
import type { Awaitable, Fence, Store } from "../../store/store.ts";
import { ReleasingMap } from "./releasing_map.ts";
import type { ActiveRun } from "../run/run.ts";

/** Milliseconds a session's lease is held without renewal (architecture.md, Resume). */
const LEASE_MS = 5_000;
const RENEW_MS = 1_500;

interface Lease {
  readonly runner: ActiveRun;
  /** Made when somebody waits for it. */
  released: PromiseWithResolvers<void> | null;
  fence: Fence | undefined;
}

/** The sessions that runs of this process are at work in. */
export class SessionLeases {
  readonly #store: Store;
  readonly #owner: string;
  readonly #log: (level: "error", event: string, facts: JsonObject) => void;
  readonly #holds = new ReleasingMap<Lease>();
  #renewing: ReturnType<typeof setInterval> | null = null;

  /** @param owner Name of this process among those that share the store. */
  constructor(store: Store, owner: string, log: (level: "error", event: string, facts: JsonObject) => void) {
    this.#store = store;
    this.#owner = owner;
    this.#log = log;
  }

  /** Returns the run that holds a session. */
  at(session_id: string): ActiveRun | undefined {
    return this.#holds.get(session_id)?.runner;
  }

  /** Returns every run that holds a session. */
  get runners(): ActiveRun[] {
    return this.#holds.items.map((hold) => hold.runner);
  }

  /** Returns the proof that a session is held; undefined when it is not. */
  fence(session_id: string): Fence | undefined {
    return this.#holds.get(session_id)?.fence;
  }

  /** Resolves once the run that holds the session now has let go of it; another may hold it then. */
  async released(session_id: string): Promise<void> {
    const hold = this.#holds.get(session_id);
    if (hold) await (hold.released ??= Promise.withResolvers()).promise;
  }

  /**
   * Takes a session for a run; in this process that is decided before the first wait.
   * @throws {PreampError} `session_busy` while another run, here or elsewhere, holds it.
   */
  acquire(session_id: string, runner: ActiveRun): Awaitable<void> {
    if (this.#holds.has(session_id)) throw busy(session_id, "another run has not ended");
    const hold: Lease = { runner, released: null, fence: undefined };
    this.#holds.set(session_id, hold);
    const lease = `session/${session_id}`;
    try {
      const token = this.#store.acquire(lease, this.#owner, LEASE_MS);
      if (!(token instanceof Promise)) return this.#grant(session_id, hold, { lease, token });
      return token.then((granted) => this.#grant(session_id, hold, { lease, token: granted })).catch(
        (error) => {
          this.#leave(session_id, hold);
          throw error;
        },
      );
    } catch (error) {
      this.#leave(session_id, hold);
      throw error;
    }
  }

  #grant(session_id: string, hold: Lease, { lease, token }: { lease: string; token: number | null }): void {
    if (token === null) throw busy(session_id, "another server runs one");
    hold.fence = { lease, token };
    this.#renewing ??= setInterval(() => void this.#renewAll(), RENEW_MS);
  }

  /** Lets go of a session, whatever the store says to it: a lease that is not released expires. */
  release(session_id: string): Awaitable<void> {
    const hold = this.#holds.get(session_id);
    if (!hold) return;
    let released: Promise<void> | void = undefined;
    try {
      if (hold.fence) released = this.#store.release(hold.fence.lease, this.#owner);
    } catch (error) {
      this.#notReleased(hold, error);
    }
    if (!released) return this.#leave(session_id, hold);
    return released.catch((error) => this.#notReleased(hold, error)).then(() =>
      this.#leave(session_id, hold)
    );
  }

  #notReleased({ fence }: Lease, error: unknown): void {
    this.#log("error", "lease_not_released", { lease: fence?.lease ?? null, message: String(error) });
  }

  #leave(session_id: string, hold: Lease): void {
    this.#holds.delete(session_id);
    hold.fence = undefined; // nothing is left to renew
    hold.released?.resolve();
    if (this.#holds.size === 0) this.close();
  }

  async #renewAll(): Promise<void> {
    for (const { fence } of this.#holds.items) { // read when its turn comes: it may have been let go of meanwhile
      if (!fence) continue;
      const { lease } = fence;
      try {
        if (!(await this.#store.renew(lease, this.#owner, LEASE_MS))) {
          this.#log("error", "lease_lost", { lease });
        }
      } catch (error) {
        this.#log("error", "lease_not_renewed", { lease, message: String(error) });
      }
    }
  }

  /** Stops renewing leases. */
  close(): void {
    if (this.#renewing !== null) clearInterval(this.#renewing);
    this.#renewing = null;
  }
}

function busy(session_id: string, fact: string): PreampError {
  return new PreampError("session_busy", `Cannot start a run in session "${session_id}": ${fact}`);
}
