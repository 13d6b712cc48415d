/**
 * Host's side of the `worker` tier, where a module runs in a worker of this process with permissions of its own. Not a security
 * boundary: it shares the memory of this process, and Deno cannot terminate a busy worker (src/docs/security.md).
 */
import { within } from "../../process/within.ts";
import type { Channel, ChannelListener, GuestExit } from "../channel.ts";
import { LOADED } from "../protocol.ts";
import { type GuestGrant, type GuestWorker, loadAhead, startGuestWorker } from "./start_worker.ts";

/** Milliseconds that a worker has to answer before it counts as impossible to terminate. */
const ANSWER_TIMEOUT_MS = 500;

/** Starts a guest in a worker. @throws {Error} if this process lacks a permission of the grant. */
export function openWorkerChannel(grant: GuestGrant): Channel {
  return new WorkerChannel(startGuestWorker(grant));
}

class WorkerChannel implements Channel {
  readonly #guest: GuestWorker;
  readonly #exit = Promise.withResolvers<GuestExit>();
  readonly #stop = Promise.withResolvers<boolean>();
  readonly exited: Promise<GuestExit> = this.#exit.promise;
  readonly stopped: Promise<boolean> = this.#stop.promise;
  #ended = false;

  constructor(guest: GuestWorker) {
    this.#guest = guest;
  }

  listen(listener: ChannelListener): void {
    const { worker, port } = this.#guest;
    port.onmessage = ({ data }: MessageEvent<unknown>) => {
      if (data === LOADED) return;
      if (typeof data !== "string") {
        return this.#end({ cause: "violation", detail: "it sent a message that is not text" });
      }
      if (data.length > listener.limit()) {
        return this.#end({ cause: "output", detail: "it sent a message that is too large" });
      }
      listener.take(data);
    };
    worker.onerror = (event) => {
      event.preventDefault();
      this.#end({ cause: "crashed", detail: "its worker ended with an error" });
    };
    worker.onmessage = () =>
      this.#end({ cause: "violation", detail: "it posted to the port of the worker itself" });
  }

  send(text: string): void {
    if (!this.#ended) this.#guest.port.postMessage(text);
  }

  watch(): void {
    // a busy worker cannot be terminated; the host's timers abandon it
  }

  kill(exit: GuestExit): Promise<void> {
    this.#end(exit);
    return Promise.resolve();
  }

  #end(exit: GuestExit): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#exit.resolve(exit);
    void this.#terminate();
  }

  /** Terminates the worker. Only a worker that still answers really stops, and Deno does not report whether it did. */
  async #terminate(): Promise<void> {
    const { worker, port } = this.#guest;
    const answered = loadAhead(this.#guest, []).catch(() => {}); // an error: the worker has ended by itself
    const stopped = await within(ANSWER_TIMEOUT_MS, answered).then(() => true, () => false);
    port.close();
    worker.terminate();
    this.#stop.resolve(stopped);
  }
}
