/**
 * The `worker` tier: a module in a worker of this process, with permissions of its own. Not a boundary: it shares this process's
 * memory, and on today's Deno a worker that is busy cannot be ended (modules.md, Isolation tiers).
 */
import type { Channel, ChannelListener, GuestExit } from "../channel.ts";
import type { GuestGrant } from "./worker_permissions.ts";
import { type GuestWorker, loadAhead, LOADED, startGuestWorker } from "./start_worker.ts";

/** Milliseconds that a worker has to answer before it is taken for one that cannot be ended. */
const ANSWER_TIMEOUT_MS = 500;

/** Starts a guest in a worker. @throws {Error} when this process does not hold what the grant gives. */
export function openWorkerChannel(grant: GuestGrant): Channel {
  return new WorkerChannel(startGuestWorker(grant));
}

class WorkerChannel implements Channel {
  readonly exited: Promise<GuestExit>;
  readonly stopped: Promise<boolean>;
  readonly #guest: GuestWorker;
  readonly #resolveExited: (death: GuestExit) => void;
  readonly #resolveStopped: (stopped: boolean) => void;
  #ended = false;

  constructor(root: GuestWorker) {
    this.#guest = root;
    const { promise, resolve } = Promise.withResolvers<GuestExit>();
    this.exited = promise;
    this.#resolveExited = resolve;
    const stopped = Promise.withResolvers<boolean>();
    this.stopped = stopped.promise;
    this.#resolveStopped = stopped.resolve;
  }

  listen(listener: ChannelListener): void {
    const { worker, port } = this.#guest;
    port.onmessage = ({ data }: MessageEvent<unknown>) => {
      if (data === LOADED) return;
      if (typeof data !== "string") {
        return this.#end({ cause: "violation", detail: "it sent what is no text" });
      }
      if (data.length > listener.limit()) {
        return this.#end({ cause: "output", detail: "it sent more than it may at once" });
      }
      listener.take(data);
    };
    worker.onerror = (event) => {
      event.preventDefault();
      this.#end({ cause: "crashed", detail: "its worker ended with an error" });
    };
    worker.onmessage = () =>
      this.#end({ cause: "violation", detail: "it wrote to a wire that is not its own" });
  }

  send(text: string): void {
    if (!this.#ended) this.#guest.port.postMessage(text);
  }

  watch(): void {
    // nobody could end it: the host's own timers abandon it
  }

  kill(death: GuestExit): Promise<void> {
    this.#end(death);
    return Promise.resolve();
  }

  #end(death: GuestExit): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#resolveExited(death);
    void this.#stop();
  }

  /** A worker that still answers ends when it is told to; one that is busy does not, and Deno does not say so. */
  async #stop(): Promise<void> {
    const { worker, port } = this.#guest;
    const answered = loadAhead(this.#guest, []).then(() => true, () => true); // an error: it has ended by itself
    const silent = Promise.withResolvers<boolean>();
    const timer = setTimeout(() => silent.resolve(false), ANSWER_TIMEOUT_MS);
    const stopped = await Promise.race([answered, silent.promise]);
    clearTimeout(timer);
    port.close();
    worker.terminate();
    this.#resolveStopped(stopped);
  }
}
