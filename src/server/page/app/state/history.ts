/** The runs and sessions of the server, in pages: what waits for a person first. */
import { type ReadonlySignal, type Signal, signal } from "@preact/signals";
import type { Data, Page, PreampClient, Run } from "preamp/client";
import { wordsOf } from "./palette.ts";

/** A session as the list shows it. */
export interface SessionRow extends Data {
  readonly id: string;
  /** Absent in sessions of older versions. */
  readonly title?: string;
  readonly last_activity: string;
  readonly run_count: number;
  readonly metadata: Data;
  readonly status: {
    readonly status: string;
    readonly total_input_tokens: number;
    readonly total_output_tokens: number;
    readonly cost_usd?: string;
  };
}

/** Rows of a page, and of one that a search reads. */
const PAGE = 25;
const SEARCH_PAGE = 100;
/** Pages that a search reads until it has a page of rows. */
const SEARCH_PAGES = 10;
const WAITING = ["awaiting_approval", "awaiting_limit"] as const;

/** Resolves to the newest runs that wait for a person, at most `limit` of each status. */
export async function waitingRuns(client: PreampClient, limit: number): Promise<Run[]> {
  const pages = await Promise.all(WAITING.map((status) => client.listRuns({ status, limit })));
  return pages.flatMap(({ data }) => data);
}

/** One list that grows by pages. */
class List<Item extends { readonly id: string }> {
  readonly #fetch: (query: { limit: number; cursor?: string }) => Promise<Page<Item>>;
  readonly #textOf: (item: Item) => string;
  readonly items: Signal<readonly Item[]> = signal([]);
  /** Words that the rows must have; empty: any. */
  readonly query: Signal<string> = signal("");
  readonly #cursor = signal<string | null>(null);
  #round = 0;

  constructor(
    fetch: (query: { limit: number; cursor?: string }) => Promise<Page<Item>>,
    textOf: (item: Item) => string,
  ) {
    this.#fetch = fetch;
    this.#textOf = textOf;
  }

  /** Shows only the rows that have each word of a query. */
  async search(query: string): Promise<void> {
    this.query.value = query;
    await this.load(false);
  }

  /** Position of the next page; null after the last one. */
  get cursor(): ReadonlySignal<string | null> {
    return this.#cursor;
  }

  /**
   * Loads the first page, or the next one; of a search, pages until there are enough rows. An answer that
   * comes after a later request is dropped.
   */
  async load(more: boolean): Promise<void> {
    const round = ++this.#round;
    const words = wordsOf(this.query.value);
    const has = (item: Item) => {
      const [text, id] = [this.#textOf(item).toLowerCase(), item.id.toLowerCase()];
      return words.every((word) => text.includes(word) || id.startsWith(word)); // ids are random letters
    };
    let cursor = more ? this.#cursor.value : null;
    let found: Item[] = [];
    for (let pages = 1;; pages++) {
      const limit = words.length === 0 ? PAGE : SEARCH_PAGE;
      const { data, next_cursor } = await this.#fetch({ limit, ...(cursor === null ? {} : { cursor }) });
      if (round !== this.#round) return;
      found = [...found, ...data.filter(has)];
      cursor = next_cursor;
      if (cursor === null || words.length === 0 || found.length >= PAGE || pages === SEARCH_PAGES) break;
    }
    const known = new Set(found.map(({ id }) => id));
    this.items.value = [...(more ? this.items.value.filter(({ id }) => !known.has(id)) : []), ...found];
    this.#cursor.value = cursor;
  }

  drop(id: string): void {
    this.items.value = this.items.value.filter((item) => item.id !== id);
  }
}

/** The lists. */
export class History {
  readonly #client: PreampClient;
  /** Status that runs must have; empty: any. */
  readonly status: Signal<string> = signal("");
  /** Runs that wait for a person. */
  readonly waiting: Signal<readonly Run[]> = signal([]);
  readonly runs: List<Run>;
  readonly sessions: List<SessionRow>;

  constructor(client: PreampClient) {
    this.#client = client;
    this.runs = new List(
      (query) =>
        client.listRuns({ ...query, status: this.status.value === "" ? undefined : this.status.value }),
      titleOf,
    );
    this.sessions = new List(
      async (query) => await client.listSessions(query) as Page<SessionRow>,
      nameOf,
    );
  }

  /** Loads the first page of everything. */
  async load(): Promise<void> {
    const [waiting] = await Promise.all([
      waitingRuns(this.#client, PAGE),
      this.runs.load(false),
      this.sessions.load(false),
    ]);
    this.waiting.value = waiting;
  }

  /** Loads the runs with a status only. */
  async filter(status: string): Promise<void> {
    this.status.value = status;
    await this.runs.load(false);
  }

  /** Deletes a run and its log for ever. */
  async deleteRun(id: string): Promise<void> {
    await this.#client.deleteRun(id);
    this.runs.drop(id);
  }

  /** Deletes a session with its runs and logs for ever. */
  async deleteSession(id: string): Promise<void> {
    await this.#client.deleteSession(id);
    this.sessions.drop(id);
    await this.runs.load(false);
  }
}

/** Returns the name of a session, else its first prompt, else its id. */
export function nameOf({ id, title, metadata: { name } }: SessionRow): string {
  return typeof name === "string" ? name : title || id;
}

/** Returns the beginning of a run's prompt; of a run of an older version, its name or id. */
export function titleOf({ id, title, metadata }: Run): string {
  const { name } = (metadata ?? {}) as { name?: unknown };
  return title || (typeof name === "string" ? name : id);
}
