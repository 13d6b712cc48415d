/** Reads what arrives on a connection: small messages here, large ones in a worker. */
import { isObject } from "preamp/base";
import { inWorker, type WorkerFile } from "../worker/worker_task.ts";
import { type Message, readMessages, type RequestId } from "./messages.ts";

/** Characters of a message that is read here: the most hostile one takes some ten milliseconds. */
const MAX_INLINE_CHARS = 256 * 1024;
/** Time for a large message: ten megabytes of empty objects take one second. */
const READ_MS = 10_000;

/** The arguments of {@link readMessages}. */
export interface LargeMessage {
  readonly text: string;
  readonly open: ReadonlyMap<RequestId, string>;
  readonly alone: RequestId | undefined;
}

const WORKER: WorkerFile<LargeMessage, Message[]> = {
  source: new URL("./message_worker.ts", import.meta.url),
  compiled: "modules/tool-mcp/message_worker.js",
  inline: ({ text, open, alone }) => Promise.resolve(readMessages(text, open, alone)),
};

/** A message that this end sends: a request has `id` and `method`, an answer no `method`. */
export interface SentMessage {
  readonly id?: RequestId;
  readonly method?: string;
  readonly params?: unknown;
}

/** The requests of a connection that wait for an answer. */
export class Inbox {
  readonly #open = new Map<RequestId, string>();

  /** Notes a message before it is sent. Returns the id of a request. */
  sends({ id, method, params }: SentMessage): RequestId | undefined {
    if (method === "notifications/cancelled" && isObject(params)) {
      this.#open.delete(params.requestId as RequestId);
    }
    if (id === undefined || method === undefined) return undefined;
    this.#open.set(id, method);
    return id;
  }

  /** Returns whether a request waits for its answer. */
  waitsFor(id: RequestId): boolean {
    return this.#open.has(id);
  }

  /** Notes that a request waits no more. */
  forget(id: RequestId): void {
    this.#open.delete(id);
  }

  /**
   * Resolves to the messages of a text; see {@link readMessages}.
   *
   * @throws {Error} for a large text that takes too long. Rejects with the signal's reason on abort.
   */
  async read(
    text: string,
    { alone, signal }: { alone?: RequestId; signal?: AbortSignal } = {},
  ): Promise<Message[]> {
    const messages = text.length <= MAX_INLINE_CHARS
      ? readMessages(text, this.#open, alone)
      : await inWorker(WORKER, { text, open: this.#open, alone }, { signal, timeout_ms: READ_MS });
    // a request has one answer: a second one is left out
    return messages.filter(({ id, method }) => method !== undefined || this.#open.delete(id as RequestId));
  }
}
