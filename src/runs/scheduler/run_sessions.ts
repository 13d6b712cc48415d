/** The stored sessions of this process's runs: who may write them, and what is written. */
import { printableId } from "../../process/ids.ts";
import { PreampError } from "../../sdk/errors.ts";
import type { Clock } from "../../sdk/types.ts";
import type { Change, Fence } from "../../store/store.ts";
import type { ActiveRun, RunSessions } from "../run/run.ts";
import {
  type EndedChild,
  savedChild,
  type SavedSession,
  savedSession,
  type SessionStore,
} from "../storage/session_store.ts";
import { busyError, type SessionLeases } from "./session_leases.ts";
import type { SessionQueue } from "./session_queue.ts";

/** Collaborators of {@link LeasedSessions}. */
export interface LeasedSessionsDeps {
  readonly clock: Clock;
  readonly sessions: SessionStore;
  readonly leases: SessionLeases;
  readonly queue: SessionQueue;
}

/** Implements {@link RunSessions}, once for all runs. */
export class LeasedSessions implements RunSessions {
  readonly #deps: LeasedSessionsDeps;

  constructor(deps: LeasedSessionsDeps) {
    this.#deps = deps;
  }

  fence({ id, session_id }: ActiveRun): Fence | undefined {
    return this.#deps.queue.fence(id) ?? this.#deps.leases.fence(session_id);
  }

  change(run: ActiveRun): Change {
    return this.#deps.sessions.put(run.options.caller, savedSession(run, this.#deps.clock.now()));
  }

  childChange(run: ActiveRun, child: EndedChild): Change {
    return this.#deps.sessions.put(run.options.caller, savedChild(run, child, this.#deps.clock.now()));
  }

  async acquireChild(run: ActiveRun, session_id: string, parent_id: string): Promise<SavedSession> {
    const { sessions, leases } = this.#deps;
    const { caller } = run.options;
    const found = await sessions.load(caller, session_id);
    if (found.object.parent_id !== parent_id || found.spawned === undefined) {
      throw new PreampError(
        "not_found",
        `Cannot find session "${printableId(session_id)}" among this session's agents`,
      );
    }
    if (!await leases.acquire(session_id, run)) {
      throw busyError(session_id, "another server has an active run");
    }
    try {
      // another run may have changed it since it was read
      return await sessions.load(caller, session_id);
    } catch (error) {
      await leases.release(session_id);
      throw error;
    }
  }

  releaseChild(session_id: string): Promise<void> {
    return this.#deps.leases.release(session_id);
  }
}
