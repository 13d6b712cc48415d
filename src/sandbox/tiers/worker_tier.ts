/**
 * Starts the worker in which both tiers run a module, with the permissions of a grant; and the host's side
 * of the `worker` tier, where that is a worker of this process. Not a security boundary: it shares the
 * memory of this process, and Deno cannot terminate a busy worker (src/docs/security.md).
 */
import { within } from "../../process/system_clock.ts";
import {
  type Channel,
  type ChannelListener,
  type GuestExit,
  type LoadAhead,
  LOADED,
  TOO_LARGE,
} from "../protocol.ts";
import { PERMISSION_KINDS, type PermissionKind } from "../../sdk/plan.ts";

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
        return this.#end(TOO_LARGE);
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

  /**
   * Terminates the worker. Only a worker that still answers really stops, and Deno does not report whether it
   * did.
   */
  async #terminate(): Promise<void> {
    const { worker, port } = this.#guest;
    const answered = loadAhead(this.#guest, []).catch(() => {}); // an error: the worker has ended by itself
    const stopped = await within(ANSWER_TIMEOUT_MS, answered).then(() => true, () => false);
    port.close();
    worker.terminate();
    this.#stop.resolve(stopped);
  }
}

/** Permissions of a guest, with a value for every kind: `false`, a list, or `true`. */
export type GuestGrant = Readonly<Record<PermissionKind, boolean | readonly string[]>>;

/**
 * Returns a grant with a value for every kind. In Deno's options `undefined`, `null`, `"inherit"` and
 * inherited properties mean "all permissions", so the object is rebuilt from own properties. An empty list
 * becomes `false`.
 */
export function guestGrant(permissions: Readonly<Partial<GuestGrant>>): GuestGrant {
  return Object.fromEntries(PERMISSION_KINDS.map((kind) => {
    const value = Object.hasOwn(permissions, kind) ? permissions[kind] : false;
    if (!Array.isArray(value)) return [kind, value === true];
    const list = value.filter((entry) => typeof entry === "string" && entry !== "");
    return [kind, list.length > 0 && list];
  })) as GuestGrant;
}

/** Returns a text that identifies a grant of {@link guestGrant}. */
export function grantKey(grant: GuestGrant): string {
  return JSON.stringify(PERMISSION_KINDS.map((kind) => grant[kind]));
}

/** A worker and the port to the runtime in it. */
export interface GuestWorker {
  readonly worker: Worker;
  readonly port: MessagePort;
}

/** Path of the worker's first file in the compiled program, relative to its main file. */
const COMPILED = "src/sandbox/worker_runtime/main.js";

/**
 * Starts a worker with exactly this grant. @throws {Error} if this process lacks a permission of the grant.
 */
export function startGuestWorker(grant: GuestGrant): GuestWorker {
  // cast: the option is specific to Deno and behind a flag
  const options = { type: "module", name: "guest", deno: { permissions: { ...grant } } } as WorkerOptions;
  const worker = Deno.build.standalone
    ? new Worker(new URL(COMPILED, Deno.mainModule), options)
    : new Worker(new URL("../worker_runtime/main.ts", import.meta.url), options);
  const { port1, port2 } = new MessageChannel();
  worker.postMessage({ port: port2 }, [port2]);
  return { worker, port: port1 };
}

/**
 * Resolves when the worker has started. Until then its creator must keep its permissions: Deno reads the
 * worker's files with them.
 */
export function workerLoaded({ port, worker }: GuestWorker): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  port.onmessage = ({ data }: MessageEvent<unknown>) => {
    if (data === LOADED) resolve();
  };
  worker.onerror = (event) => {
    event.preventDefault();
    reject(new Error(`Cannot start a guest: ${event.message}`));
  };
  return promise;
}

/** Resolves when a started worker has loaded these parts of the SDK. */
export function loadAhead(guest: GuestWorker, parts: readonly string[]): Promise<void> {
  guest.port.postMessage({ parts } satisfies LoadAhead);
  return workerLoaded(guest);
}
