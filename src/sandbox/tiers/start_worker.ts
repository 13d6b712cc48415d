/** A worker with the root in it and nothing else: what both tiers run a module in. */
import type { GuestGrant } from "./worker_permissions.ts";

/** A worker, and our end of the wire to its root. */
export interface GuestWorker {
  readonly worker: Worker;
  readonly port: MessagePort;
}

/** Asks the root to load parts of the SDK before the module is there; it answers with {@link LOADED}. */
export interface LoadAhead {
  readonly parts: readonly string[];
}

/** What a root says once it is there, and once more when it has loaded something ahead. No frame: those are texts. */
export const LOADED = null;

/** Name of the root in the compiled program, from its main file. */
const COMPILED = "src/sandbox/worker_runtime/main.js";

/** Starts a worker that has exactly this grant. @throws {Error} when this process does not hold what it would give. */
export function startGuestWorker(grant: GuestGrant): GuestWorker {
  // typed by hand: the option is Deno's alone, and behind a flag
  const options = { type: "module", name: "guest", deno: { permissions: { ...grant } } } as WorkerOptions;
  const root = Deno.build.standalone
    ? new Worker(new URL(COMPILED, Deno.mainModule), options)
    : new Worker(new URL("../worker_runtime/main.ts", import.meta.url), options);
  const { port1, port2 } = new MessageChannel();
  root.postMessage({ port: port2 }, [port2]);
  return { worker: root, port: port1 };
}

/**
 * Resolves when the root is there. Until then it needs the permissions of whoever started it: what a worker is made of is read
 * with those.
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

/** Resolves when a root that is there has these parts of the SDK. */
export function loadAhead(root: GuestWorker, parts: readonly string[]): Promise<void> {
  root.port.postMessage({ parts } satisfies LoadAhead);
  return workerLoaded(root);
}
