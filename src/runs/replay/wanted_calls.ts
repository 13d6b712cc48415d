/** Which of a run's model calls a page of requests has, so that a replay computes and keeps those only. */
import type { Entry } from "../../kernel/host.ts";
import { estimateJsonBytes } from "../../sdk/json.ts";
import type { ModelRequest, Page } from "../types.ts";

/** The calls that are asked for: that of one entry, or `limit` calls from number `cursor` on. */
export interface CallPlace {
  readonly seq?: number | undefined;
  readonly cursor?: number;
  readonly limit?: number;
  /** The page ends when its requests have this many bytes. */
  readonly max_bytes: number;
}

/** The calls of a page, in the order of the log; requests are added turn by turn. */
export class WantedCalls {
  /** Numbers of the entries `provider:request`. */
  readonly #calls: readonly number[];
  readonly #wanted: ReadonlySet<number>;
  readonly #requests: ModelRequest[] = [];
  /** The last call that is still wanted: the page ends before what would make it too large. */
  #last: number;
  #bytes = 0;
  readonly #max_bytes: number;

  constructor(events: readonly Entry[], { seq, cursor = 0, limit = Infinity, max_bytes }: CallPlace) {
    this.#max_bytes = max_bytes;
    const calls = events.filter(({ event }) => event === "provider:request").map((entry) => entry.seq);
    this.#calls = seq === undefined ? calls : calls.filter((call) => call === seq);
    const wanted = this.#calls.slice(cursor, cursor + limit);
    this.#wanted = new Set(wanted);
    this.#last = wanted.at(-1) ?? Infinity;
  }

  /** Returns whether one of these calls is wanted. */
  hasSome(calls: readonly number[]): boolean {
    return calls.some((seq) => this.has(seq));
  }

  has(seq: number): boolean {
    return seq <= this.#last && this.#wanted.has(seq);
  }

  /** Returns whether no call from this one on is wanted. */
  isPast(seq: number): boolean {
    return seq > this.#last;
  }

  /** Adds a request of a wanted call. */
  add(request: ModelRequest): void {
    this.#requests.push(request);
    this.#bytes += estimateJsonBytes(request);
    // other turns may have earlier calls: they only let the page end earlier
    if (this.#bytes >= this.#max_bytes) this.#last = Math.min(this.#last, request.seq);
  }

  /** Returns the page. A call whose request was shortened has several requests, which stay together. */
  get page(): Page<ModelRequest> {
    const data = this.#requests.filter(({ seq }) => seq <= this.#last).sort((a, b) => a.seq - b.seq);
    const next = this.#calls.findIndex((seq) => seq > this.#last);
    return { data, next_cursor: next < 0 ? null : String(next) };
  }
}
