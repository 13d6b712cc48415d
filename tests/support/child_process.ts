/** Signals to child processes, and what they have written so far. */

/** Sends a signal to a child process, unless it has ended: then `kill` would throw. */
export function endChild(child: Deno.ChildProcess, signal: Deno.Signal): void {
  try {
    child.kill(signal);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
  }
}

/** What a stream has given so far, and a way to wait for more. */
export class Tail {
  /** Everything so far. */
  text = "";
  /** Resolves at the stream's end. */
  readonly closed: Promise<void>;
  #over = false;
  readonly #watchers = new Set<() => void>();

  constructor(stream: ReadableStream<Uint8Array>) {
    this.closed = this.#read(stream);
  }

  async #read(stream: ReadableStream<Uint8Array>): Promise<void> {
    for await (const text of stream.pipeThrough(new TextDecoderStream())) {
      this.text += text;
      this.#notify();
    }
    this.#over = true;
    this.#notify();
  }

  #notify(): void {
    for (const look of [...this.#watchers]) look();
  }

  /** Resolves to the text once it holds, or at the stream's end. */
  until(holds: (text: string) => boolean): Promise<string> {
    return new Promise((resolve) => {
      const look = () => {
        if (!this.#over && !holds(this.text)) return;
        this.#watchers.delete(look);
        resolve(this.text);
      };
      this.#watchers.add(look);
      look();
    });
  }
}
