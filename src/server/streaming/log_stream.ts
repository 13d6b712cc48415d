/**
 * Log entries as a response body that is pulled: a page is asked for when the reader has taken the one before, so a reader that
 * stalls costs one page and nobody waits for it (threats.md T27). Knows pages and frames, neither runs nor HTTP.
 */
import type { ServerClock } from "../clock.ts";

/** How entries become bytes. */
export interface EntryStreamOptions<Entry> {
  /** Opens the log; called once, at the first pull. It must end soon after the signal aborts. */
  follow(signal: AbortSignal): AsyncIterable<readonly Entry[]>;
  /** Returns the text of one entry. */
  frame(entry: Entry): string;
  /** Sent before anything else. */
  opening?: string;
  /** Sent whenever `every_ms` passed without anything else while a reader waited. */
  ping?: { text: string; every_ms: number };
  /** Sent when the server ends the stream before the log ends. */
  farewell?: string;
  clock: ServerClock;
  /** Told once when it is over, whoever ended it; `left`: the reader went away. */
  onEnd?(how: "complete" | "left" | "ended" | "failed", error?: unknown): void;
}

/** A body and a way to end it early. */
export interface EntryStream {
  body: ReadableStream<Uint8Array>;
  /** Sends the farewell and closes; nothing when it is over already. */
  end(): void;
}

/** Frames are joined up to about this many characters: one write for many deltas, yet no page is held twice. */
const CHUNK_LENGTH = 64 * 1024;

/** Returns entries as a stream of framed, UTF-8 encoded chunks. */
export function entryStream<Entry>(options: EntryStreamOptions<Entry>): EntryStream {
  const source = new EntrySource(options);
  // No queue: with the default high-water mark of 1 a chunk would be made ahead of every read.
  return { body: new ReadableStream(source, { highWaterMark: 0 }), end: () => source.end() };
}

const encoder = new TextEncoder();

type Arrival<Entry> = { result: IteratorResult<readonly Entry[]> } | { error: unknown };

class EntrySource<Entry> implements UnderlyingDefaultSource<Uint8Array> {
  readonly #options: EntryStreamOptions<Entry>;
  readonly #abort = new AbortController();
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  #pages: AsyncIterator<readonly Entry[]> | undefined;
  /** The page being sent, and how much of it is. */
  #page: readonly Entry[] = [];
  #sent = 0;
  /** What the pending `next()` came to; its handlers are attached once, however many pings pass meanwhile. */
  #arrival: Arrival<Entry> | undefined;
  #asked = false;
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
      this.#pages = this.#options.follow(this.#abort.signal)[Symbol.asyncIterator]();
      this.#ask(); // the first page is fetched while the opening travels
      if (this.#options.opening) return controller.enqueue(encoder.encode(this.#options.opening));
    }
    while (!this.#over) {
      if (this.#sent < this.#page.length) return controller.enqueue(this.#nextChunk());
      this.#ask();
      if (!this.#arrival && !await this.#waitForPage()) {
        return controller.enqueue(encoder.encode(this.#options.ping!.text)); // only a ping's timer wakes without a page
      }
      this.#take(controller);
    }
  }

  cancel(): void {
    this.#finish("left");
  }

  end(): void {
    if (this.#over || !this.#controller) return;
    if (this.#options.farewell) this.#controller.enqueue(encoder.encode(this.#options.farewell));
    this.#finish("ended");
    this.#controller.close();
  }

  #ask(): void {
    if (this.#asked) return;
    this.#asked = true;
    this.#pages!.next().then(
      (result) => this.#arrive({ result }),
      (error) => this.#arrive({ error }),
    );
  }

  #arrive(arrival: Arrival<Entry>): void {
    this.#arrival = arrival;
    this.#wake?.();
  }

  /** Resolves to false when a ping is due, to true when a page is there or the stream is over. */
  #waitForPage(): Promise<boolean> {
    const { ping, clock } = this.#options;
    return new Promise((resolve) => {
      const stop = ping && clock.timer(ping.every_ms, () => {
        this.#wake = undefined;
        resolve(false);
      });
      const wake = () => { // named: see `runs/README.md`, "A run dies with its end"
        stop?.();
        this.#wake = undefined;
        resolve(true);
      };
      this.#wake = wake;
    });
  }

  #take(controller: ReadableStreamDefaultController<Uint8Array>): void {
    const arrival = this.#arrival;
    this.#arrival = undefined;
    this.#asked = false;
    if (!arrival || this.#over) return;
    if ("error" in arrival) {
      this.#finish("failed", arrival.error);
      controller.error(arrival.error); // breaks the connection: the reader sees that this is not the end
    } else if (arrival.result.done) {
      this.#finish("complete");
      controller.close();
    } else {
      this.#page = arrival.result.value;
      this.#sent = 0;
    }
  }

  #nextChunk(): Uint8Array {
    let text = "";
    while (this.#sent < this.#page.length && text.length < CHUNK_LENGTH) {
      text += this.#options.frame(this.#page[this.#sent++]!); // below length
    }
    if (this.#sent >= this.#page.length) this.#page = [];
    return encoder.encode(text);
  }

  #finish(how: "complete" | "left" | "ended" | "failed", error?: unknown): void {
    if (this.#over) return;
    this.#over = true;
    this.#page = [];
    this.#abort.abort();
    this.#wake?.();
    // Frees what the log holds for us. A log that fails while it is being left has nobody to tell.
    this.#pages?.return?.()?.catch(() => {});
    this.#options.onEnd?.(how, error);
  }
}
