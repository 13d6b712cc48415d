/** Starts the worker in which both tiers run a module. */
import type { GuestGrant } from "./worker_permissions.ts";

/** A worker and the port to the runtime in it. */
export interface GuestWorker {
  readonly worker: Worker;
  readonly port: MessagePort;
}

/** Requests that the worker load parts of the SDK before the module. The worker answers with {@link LOADED}. */
export interface LoadAhead {
  readonly parts: readonly string[];
}

/** Message of a worker that has started, and of one that has loaded parts ahead. Not a frame: frames are texts. */
export const LOADED = null;

/** Path of the worker's first file in the compiled program, relative to its main file. */
const COMPILED = "src/sandbox/worker_runtime/main.js";

/** Starts a worker with exactly this grant. @throws {Error} if this process lacks a permission of the grant. */
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

/** Resolves when the worker has started. Until then its creator must keep its permissions: Deno reads the worker's files with them. */
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
