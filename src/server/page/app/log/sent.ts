/** What a model was sent in each call, and what is new in it. */
import type { ModelRequest, PreampClient } from "preamp/client";

/** Calls whose requests are kept: each has the whole context. */
const MAX_KEPT = 20;

/** The requests of a run; the server computes each by a replay, so the last ones are kept. */
export class SentRequests {
  readonly #client: PreampClient;
  readonly #run_id: string;
  readonly #known = new Map<number, Promise<readonly ModelRequest[]>>();

  constructor(client: PreampClient, run_id: string) {
    this.#client = client;
    this.#run_id = run_id;
  }

  /** Returns what was sent in the call of a `provider:request`; a shortened repetition is a second item. */
  of(seq: number): Promise<readonly ModelRequest[]> {
    let sent = this.#known.get(seq);
    if (!sent) {
      sent = this.#client.listRequests(this.#run_id, { seq }).then(({ data }) => {
        if (!data.at(-1)?.usage) this.#known.delete(seq); // not recorded or not answered yet
        return data;
      });
      sent.catch(() => this.#known.delete(seq));
      this.#known.set(seq, sent);
      if (this.#known.size > MAX_KEPT) this.#known.delete(this.#known.keys().next().value!);
    }
    return sent;
  }
}

/** A request compared with the one before it in its session. */
interface Novelty {
  /** For each message, whether the request before had it not. */
  readonly is_new: readonly boolean[];
  /** Messages of the request before that this one has not. */
  readonly left_out: number;
}

/** Compares two requests; without an earlier one, everything is new. */
export function noveltyOf(request: ModelRequest, before: ModelRequest | undefined): Novelty {
  const known = new Map<string, number>();
  for (const message of before?.messages ?? []) {
    const text = JSON.stringify(message);
    known.set(text, (known.get(text) ?? 0) + 1);
  }
  const is_new = request.messages.map((message) => {
    const text = JSON.stringify(message);
    const left = known.get(text) ?? 0;
    if (left > 0) known.set(text, left - 1);
    return left === 0;
  });
  let left_out = 0;
  for (const count of known.values()) left_out += count;
  return { is_new, left_out };
}
