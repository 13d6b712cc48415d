/** Sessions as they are kept between runs: history, module state, plan (trace.md, section 4, D). */
import { PreampError } from "../../sdk/errors.ts";
import type { JsonObject, Message } from "../../sdk/types.ts";
import type { LoggedUsage } from "../../kernel/session/session.ts";
import type { Counters } from "../../sdk/session_counters.ts";
import type { Change, Store } from "../../store/store.ts";
import { printableId } from "../../process/ids.ts";
import type { RememberedApproval } from "../run/approval_memory.ts";
import { type LastRun, type LiveSession, withStatus } from "../session_status.ts";
import type { Caller, Page, PageOptions, SessionObject } from "../types.ts";

const KIND = "session";

/** What is kept of a session. */
export interface SavedSession {
  object: Omit<SessionObject, "status">;
  messages: readonly Message[];
  session_state: JsonObject;
  /** What the requests since the last compaction took; absent in sessions kept before this was. */
  usages?: readonly LoggedUsage[];
  /** Counters of all its runs; absent in sessions kept before this was. */
  counters?: Counters;
  /** How its last run ended; absent while one is under way, and in sessions kept before this was. */
  last_run?: LastRun;
  /** Answers that hold for its later questions; absent: none. */
  remembered?: readonly RememberedApproval[];
  /** The plan as written, and whether it was an operator's: a continued session runs it with the same rights. */
  plan: JsonObject;
  plan_origin: "operator" | "caller";
  plan_base_url: string | null;
  /** Set on a sub-agent's session: its name, and whether its overlay set ceilings of its own. */
  spawned?: { agent: string; limited: boolean };
  /** The lock that came with the plan: it holds for every run of it. */
  plan_lock?: JsonObject;
}

/** The sessions of a store. */
export class Sessions {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** @throws {PreampError} `not_found` for an unknown or foreign id. */
  async load(caller: Caller, id: string): Promise<SavedSession> {
    const record = await this.#store.get(KIND, id);
    if (!record || record.namespace !== caller.namespace) throw notFound(id);
    return record.value as unknown as SavedSession;
  }

  /** Returns the change that keeps a session. */
  put(caller: Caller, saved: SavedSession): Change {
    return {
      put: {
        kind: KIND,
        key: saved.object.id,
        namespace: caller.namespace,
        value: saved as unknown as JsonObject,
        ...(saved.spawned && saved.object.parent_id ? { index: { spawned_by: saved.object.parent_id } } : {}),
      },
    };
  }

  /** @param live Returns the run of a session that is under way. */
  async list(
    caller: Caller,
    options: PageOptions,
    limits: PageLimits,
    live: (session_id: string) => LiveSession | undefined,
  ): Promise<Page<SessionObject>> {
    const { records, next_cursor } = await this.#store.list(KIND, listOptions(caller, options, limits));
    const data = records.map((record) =>
      withStatus(record.value as unknown as SavedSession, live(record.key))
    );
    return { data, next_cursor };
  }

  /** Ids of the sessions that a session's sub-agents have, and theirs; itself first. */
  async familyOf(caller: Caller, id: string): Promise<string[]> {
    const family = [id];
    for (const member of family) {
      let cursor: string | undefined;
      do {
        const page = await this.#store.list(KIND, {
          namespace: caller.namespace,
          limit: 1000,
          ...(cursor === undefined ? {} : { cursor }),
          where: { spawned_by: member },
        });
        for (const { key } of page.records) if (!family.includes(key)) family.push(key);
        cursor = page.next_cursor ?? undefined;
      } while (cursor !== undefined);
    }
    return family;
  }

  async remove(ids: readonly string[]): Promise<void> {
    await this.#store.commit(ids.map((key) => ({ delete: { kind: KIND, key } })));
  }
}

/** How many items a page of a list has. */
export interface PageLimits {
  /** Items when the request does not say. */
  page_limit: number;
  /** Items at most. */
  max_page_limit: number;
}

/** Returns the store's list options of a page. */
export function listOptions(
  caller: Caller,
  options: PageOptions,
  { page_limit, max_page_limit }: PageLimits,
): { namespace: string; limit: number; cursor?: string } {
  const limit = Math.min(max_page_limit, Math.max(1, options.limit ?? page_limit));
  return {
    namespace: caller.namespace,
    limit,
    ...(options.cursor === undefined ? {} : { cursor: options.cursor }),
  };
}

function notFound(id: string): PreampError {
  return new PreampError("not_found", `Cannot find session "${printableId(id)}"`);
}
