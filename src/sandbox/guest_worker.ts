/** Starts the worker in which a child process runs a module, with the permissions of a grant. */
import { type LoadAhead, LOADED } from "./protocol.ts";
import { PERMISSION_KINDS, type PermissionKind } from "../sdk/plan.ts";

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
    : new Worker(new URL("./worker_runtime/main.ts", import.meta.url), options);
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
