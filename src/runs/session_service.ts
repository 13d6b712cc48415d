/** The public API of sessions: reading, forking and deleting, with ownership checks. */
import { printableId } from "../sdk/ids.ts";
import { PreampError } from "../sdk/errors.ts";
import type { JsonObject } from "../sdk/json.ts";
import { allRecords } from "../store/store.ts";
import type { RunsDeps } from "./ports.ts";
import { DAY_MS } from "./run/run_records.ts";
import type { SessionProjection } from "./run/run_projection.ts";
import {
  FORKED_BEFORE_RUN,
  forkedSession,
  type ForkPoint,
  messagesOfTurns,
  withAnswers,
} from "./storage/fork.ts";
import { eraseRun } from "./storage/erase.ts";
import { loadInput, loadOlderInput } from "./storage/run_input.ts";
import { EMPTY_STATE, stateAfterEntries } from "./storage/session_log.ts";
import {
  listOptions,
  pageOf,
  SESSION_KIND,
  sessionChanges,
  type SessionStore,
  type StoredSession,
  withStatus,
} from "./storage/session_store.ts";
import type { Caller, Page, PageOptions, SavedSession, SessionObject, Sessions } from "./types.ts";

/** The stored sessions, and those of the active runs of this process. */
export class SessionService implements Sessions {
  readonly #deps: RunsDeps;
  readonly #sessions: SessionStore;
  readonly #live: (session_id: string) => SessionProjection | undefined;

  /** @param live Returns a session in its active run. */
  constructor(
    deps: RunsDeps,
    sessions: SessionStore,
    live: (session_id: string) => SessionProjection | undefined,
  ) {
    this.#deps = deps;
    this.#sessions = sessions;
    this.#live = live;
  }

  async list(caller: Caller, options: PageOptions): Promise<Page<SessionObject>> {
    const { store, limitsOf } = this.#deps;
    const page = await store.list(SESSION_KIND, listOptions(caller, options, limitsOf(caller)));
    const data = page.records.map(({ key, value }) =>
      withStatus(value as unknown as StoredSession, this.#live(key))
    );
    return { data, next_cursor: page.next_cursor };
  }

  async get(caller: Caller, session_id: string): Promise<SessionObject> {
    return withStatus(await this.#sessions.record(caller, session_id), this.#live(session_id));
  }

  async messages(
    caller: Caller,
    session_id: string,
    place: { cursor?: number; limit?: number } = {},
  ): Promise<Page<JsonObject>> {
    const live = this.#live(session_id);
    const { history } = live && await this.#sessions.record(caller, session_id)
      ? live
      : await this.#sessions.load(caller, session_id);
    const messages = history as readonly JsonObject[];
    return pageOf(messages, place);
  }

  async remove(caller: Caller, session_id: string): Promise<void> {
    await this.#sessions.record(caller, session_id);
    // sub-agents' sessions are deleted with it: only this session can continue them
    const family = await this.#sessions.familyOf(caller, session_id);
    if (family.some((id) => this.#live(id)) || await this.#haveRunsElsewhere(caller, family)) {
      throw new PreampError(
        "session_busy",
        `Cannot delete session "${printableId(session_id)}": a run of it has not ended`,
      );
    }
    const { store } = this.#deps;
    const { namespace } = caller;
    for (const id of family) {
      for await (const { key } of allRecords(store, "run", { namespace, where: { session_id: id } })) {
        await eraseRun(store, namespace, key);
      }
    }
    await this.#sessions.remove(family); // last: a deletion that breaks off can be repeated
  }

  /** Resolves to whether other processes have runs of sessions that have not ended. */
  async #haveRunsElsewhere({ namespace }: Caller, session_ids: readonly string[]): Promise<boolean> {
    const { store } = this.#deps;
    if (store.changed === undefined) return false;
    for (const session_id of session_ids) {
      const where = { session_id, open: "true" };
      const { records } = await store.list("run", { namespace, where, limit: 1 });
      if (records.length > 0) return true;
    }
    return false;
  }

  async fork(
    caller: Caller,
    session_id: string,
    { turn, before_run }: { turn?: number; before_run?: string } = {},
  ): Promise<SessionObject> {
    const { store, newId, clock, limitsOf } = this.#deps;
    const parent = await this.#sessions.load(caller, session_id);
    const point = before_run === undefined
      ? await this.#pointAfter(caller, parent, turn)
      : await this.#pointBefore(session_id, before_run);
    const fork = forkedSession(parent, newId("ses"), point, clock.now());
    const expires_ms = clock.now() + limitsOf(caller).retention_days * DAY_MS;
    await store.commit(sessionChanges(caller, fork, { before: fork, expires_ms }));
    return withStatus({ object: fork.object, messages: fork.history });
  }

  /** Returns the state of a session at the end of a turn. */
  async #pointAfter(caller: Caller, session: SavedSession, turn: number | undefined): Promise<ForkPoint> {
    const messages = messagesOfTurns(session.history, turn);
    const is_whole = messages.length === session.history.length;
    const session_state = is_whole
      ? session.session_state
      : await this.#stateAt(caller, session, messages.length);
    const lineage: JsonObject = turn === undefined ? {} : { forked_from_turn: turn };
    return { messages: withAnswers(messages), session_state, lineage };
  }

  /** Returns the state of a session that one of its runs has begun with. */
  async #pointBefore(session_id: string, run_id: string): Promise<ForkPoint> {
    const input = await loadInput(this.#deps.store, run_id);
    if (input === null || input.session_id !== session_id) {
      throw new PreampError(
        "request_invalid",
        `Cannot fork the session before run "${
          printableId(run_id)
        }": it has no such run, or the run's input ` +
          "is no longer stored",
      );
    }
    const { history, session_state } = input;
    return { messages: withAnswers(history), session_state, lineage: { [FORKED_BEFORE_RUN]: run_id } };
  }

  /** Returns the module state of a session when its history had this length. */
  async #stateAt(caller: Caller, session: SavedSession, length: number): Promise<JsonObject> {
    const { store } = this.#deps;
    const { object: { id }, position } = session;
    let state = EMPTY_STATE;
    for (const entry of position === null ? [] : await store.entries(id, 0, position) ?? []) {
      state = stateAfterEntries(state, [entry]);
      if (state.history.length === length) return state.session_state;
    }
    // an older version stored it in the input of the run that continued from there
    const where = { session_id: id };
    for await (const { key } of allRecords(store, "run", { namespace: caller.namespace, where })) {
      const input = await loadOlderInput(store, key);
      if (input?.history.length === length) return input.session_state;
    }
    return {};
  }
}
