/**
 * Streams log entries as a response body. The next page is requested when the client has read the previous
 * one, so a stalled client costs the memory of one page. Handles pages and frames; does not know what a run
 * is.
 */
import type { SystemClock } from "../../process/system_clock.ts";

/** Options of {@link entryStream}. */
export interface EntryStreamOptions<Entry> {
  /**
   * Opens the log; called once, on the first pull. Must end soon after the signal aborts. A page should have
   * at most `pageEntries()` entries, which is asked before each.
   */
  follow(signal: AbortSignal, pageEntries: () => number): AsyncIterable<readonly Entry[]>;
  /** Formats one entry. */
  frame(entry: Entry): string;
  /** Text that is sent first. */
  opening?: string;
  /** Text that is sent after `every_ms` milliseconds without an entry. */
  ping?: { text: string; every_ms: number };
  /** Text that is sent when the server ends the stream before the log ends. */
  closingFrame?: string;
  clock: SystemClock;
  /** Called once at the end of the stream. */
  onEnd?(reason: EndReason, error?: unknown): void;
}

/**
 * Reason for the end of a stream: end of the log, the client disconnected, {@link EntryStream.end}, or an
 * error of the log.
 */
export type EndReason = "complete" | "disconnected" | "ended" | "failed";

/** A response body, and a function that ends it early. */
export interface EntryStream {
  body: ReadableStream<Uint8Array>;
  /** Sends `closingFrame` and closes the body. No effect after the end. */
  end(): void;
}

/**
 * Bytes of a chunk. Deno takes some chunks more than fit into the socket: large ones are memory of a stalled
 * client, small ones processor time of all others.
 */
const CHUNK_BYTES = 16 * 1024;
/** Characters that the frames of a page have, about. */
const PAGE_LENGTH = 32 * 1024;
/** Most entries of a page, and characters that an entry is expected to have before any was sent. */
const MAX_PAGE_ENTRIES = 256;
const FIRST_LENGTH = 4 * 1024;

/** Creates a body that streams the entries as framed, UTF-8 encoded chunks. */
export function entryStream<Entry>(options: EntryStreamOptions<Entry>): EntryStream {
  const source = new EntrySource(options);
  // No queue: with the default high-water mark of 1, one chunk would be created before the client reads.
  return { body: new ReadableStream(source, { highWaterMark: 0 }), end: () => source.end() };
}

const encoder = new TextEncoder();

type PageResult<Entry> = { result: IteratorResult<readonly Entry[]> } | { error: unknown };

class EntrySource<Entry> implements UnderlyingDefaultSource<Uint8Array> {
  readonly #options: EntryStreamOptions<Entry>;
  readonly #abort = new AbortController();
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  #pages: AsyncIterator<readonly Entry[]> | undefined;
  /** The page that is being sent, and the number of its entries already sent. */
  #page: readonly Entry[] = [];
  #sent = 0;
  /** What follows the last chunk of frames that have more bytes than one. */
  #rest: Uint8Array | null = null;
  /** Characters of a frame on the latest chunk, on average. */
  #frame_length = FIRST_LENGTH;
  /** Result of the pending `next()`. Its handlers are attached once, not once per ping. */
  #result: PageResult<Entry> | undefined;
  #requested = false;
  #wake: (() => void) | undefined;
  #over = false;

  constructor(options: EntryStreamOptions<Entry>) {
    this.#options = options;
  }

  start(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.#controller = controller;
  }

  async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    if (!this.#pages) {
      this.#pages = this.#options.follow(this.#abort.signal, () => this.#pageEntries())
        [Symbol.asyncIterator]();
      this.#requestPage(); // in parallel with sending the opening
      if (this.#options.opening) return controller.enqueue(encoder.encode(this.#options.opening));
    }
    while (!this.#over) {
      if (this.#rest !== null || this.#sent < this.#page.length) {
        return controller.enqueue(this.#nextChunk());
      }
      this.#requestPage();
      if (!this.#result && !await this.#waitForPage()) {
        return controller.enqueue(encoder.encode(this.#options.ping!.text)); // only the ping timer wakes without a page
      }
      this.#usePage(controller);
    }
  }

  cancel(): void {
    this.#finish("disconnected");
  }

  end(): void {
    if (this.#over || !this.#controller) return;
    if (this.#rest !== null) this.#controller.enqueue(this.#rest); // a frame has begun
    if (this.#options.closingFrame) this.#controller.enqueue(encoder.encode(this.#options.closingFrame));
    this.#finish("ended");
    this.#controller.close();
  }

  #requestPage(): void {
    if (this.#requested) return;
    this.#requested = true;
    this.#pages!.next().then(
      (result) => this.#receive({ result }),
      (error) => this.#receive({ error }),
    );
  }

  #receive(result: PageResult<Entry>): void {
    this.#result = result;
    this.#wake?.();
  }

  /** Resolves to false when a ping is due, and to true when a page has arrived or the stream has ended. */
  #waitForPage(): Promise<boolean> {
    const { ping, clock } = this.#options;
    return new Promise((resolve) => {
      const stop = ping && clock.later(ping.every_ms, () => {
        this.#wake = undefined;
        resolve(false);
      });
      const wake = () => { // perf: src/docs/performance.md#closures
        stop?.();
        this.#wake = undefined;
        resolve(true);
      };
      this.#wake = wake;
    });
  }

  #usePage(controller: ReadableStreamDefaultController<Uint8Array>): void {
    const page_result = this.#result;
    this.#result = undefined;
    this.#requested = false;
    if (!page_result || this.#over) return;
    if ("error" in page_result) {
      this.#finish("failed", page_result.error);
      controller.error(page_result.error); // aborts the connection, so that the client does not take this for the end
    } else if (page_result.result.done) {
      this.#finish("complete");
      controller.close();
    } else {
      this.#page = page_result.result.value;
      this.#sent = 0;
    }
  }

  /** Returns the number of entries of a page: a stalled client keeps it in memory. */
  #pageEntries(): number {
    const entries = Math.floor(PAGE_LENGTH / Math.max(1, this.#frame_length));
    return Math.min(Math.max(1, entries), MAX_PAGE_ENTRIES);
  }

  #nextChunk(): Uint8Array {
    const bytes = this.#rest ?? encoder.encode(this.#nextFrames());
    this.#rest = bytes.length > CHUNK_BYTES ? bytes.subarray(CHUNK_BYTES) : null;
    return this.#rest === null ? bytes : bytes.subarray(0, CHUNK_BYTES);
  }

  /** Returns frames of about one chunk, at least one. */
  #nextFrames(): string {
    let text = "";
    const first = this.#sent;
    while (this.#sent < this.#page.length && text.length < CHUNK_BYTES) {
      text += this.#options.frame(this.#page[this.#sent++]!); // below length
    }
    this.#frame_length = text.length / (this.#sent - first);
    if (this.#sent >= this.#page.length) this.#page = [];
    return text;
  }

  #finish(reason: EndReason, error?: unknown): void {
    if (this.#over) return;
    this.#over = true;
    this.#page = [];
    this.#rest = null;
    this.#abort.abort();
    this.#wake?.();
    // Lets the log release its resources. An error of the log is of no use after the end.
    this.#pages?.return?.()?.catch(() => {});
    this.#options.onEnd?.(reason, error);
  }
}
