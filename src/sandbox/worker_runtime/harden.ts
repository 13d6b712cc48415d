/**
 * What a module finds in the globals of a guest: the language, the web's APIs that Deno's permissions guard, and of `Deno` what
 * they guard. Everything else is taken away before the module's code is there, or says that it is not to be had (threats T16).
 *
 * Not the boundary itself: that is the permissions of the worker and, in the process tier, the process around it. It closes
 * what they leave open: files by way of `caches`, other guests by way of channels, doors to Deno's inner parts.
 */

/** Functions of `Deno` for files, each of which has a synchronous twin. */
const FILES = [
  ...["readFile", "readTextFile", "writeFile", "writeTextFile", "stat", "lstat", "mkdir", "readDir"],
  ...["readLink", "realPath", "remove", "rename", "copyFile", "truncate", "open", "create"],
  ...["makeTempDir", "makeTempFile", "chmod", "chown", "utime", "link", "symlink"],
];

/** Members of `Deno` that its permissions guard, and those that reach nothing. */
const DENO_KEPT: ReadonlySet<string> = new Set([
  ...FILES.flatMap((name) => [name, `${name}Sync`]),
  ...["FsFile", "SeekMode", "watchFs", "cwd"],
  ...["connect", "connectTls", "startTls", "listen", "listenTls", "resolveDns"],
  ...["createHttpClient", "HttpClient", "serve", "upgradeWebSocket"],
  ...["Command", "ChildProcess"],
  ...["hostname", "osRelease", "osUptime", "loadavg", "networkInterfaces", "systemMemoryInfo", "gid", "uid"],
  ...["dlopen", "UnsafePointer", "UnsafePointerView", "UnsafeFnPointer", "UnsafeCallback"],
  ...["env", "errors", "inspect", "noColor", "refTimer", "unrefTimer"],
]);

/** Functions and classes that reach other isolates, the disk behind Deno's back, or the worker's own end. */
const REFUSED_FUNCTIONS = [
  ...["Worker", "BroadcastChannel", "Cache", "CacheStorage", "close", "postMessage"],
  ...["OffscreenCanvas", "createImageBitmap"],
];

/** Objects of the same kind. */
const REFUSED_OBJECTS = ["caches", "localStorage", "sessionStorage"];

/** Globals that are simply not there: a library that asks for them takes another way. */
const REMOVED = [
  ...["process", "SharedArrayBuffer", "Lock", "LockManager", "location", "WorkerLocation", "name", "global"],
  ...["onmessage", "onerror", "onunhandledrejection", "WorkerGlobalScope", "DedicatedWorkerGlobalScope"],
  ...["importScripts", "ImageBitmapRenderingContext", "setImmediate", "clearImmediate"],
];

/** Hardens the globals of this worker. The caller keeps what it needs before. */
export function harden(): void {
  const scope = globalThis as unknown as Record<string, unknown>;
  const { NotCapable } = Deno.errors;
  const refuse = (name: string) => () => {
    throw new NotCapable(`${name} is not available to modules`);
  };
  hardenDeno(scope, refuse);
  for (const name of REFUSED_FUNCTIONS) if (name in scope) fix(scope, name, refusedFunction(refuse(name)));
  for (const name of REFUSED_OBJECTS) if (name in scope) fix(scope, name, refusedObject(refuse(name)));
  for (const name of [...REMOVED, ...Object.getOwnPropertyNames(scope).filter(isGraphics)]) {
    remove(scope, name);
  }
  fix(scope, "navigator", Object.freeze({ userAgent: navigator.userAgent, language: navigator.language }));
  coarsenClock();
  keepCall();
}

/**
 * Deno's own message ports (2.9) call through this one: a module that replaced it would be deaf. An assignment throws at once, with
 * the place in the module.
 */
function keepCall(): void {
  Object.defineProperty(Function.prototype, "call", { writable: false, configurable: false });
}

function isGraphics(name: string): boolean {
  return name.startsWith("GPU");
}

function hardenDeno(scope: Record<string, unknown>, refuse: (name: string) => () => never): void {
  const given = Deno as unknown as Record<string, unknown>;
  const { query, querySync } = Deno.permissions;
  const own = {
    args: Object.freeze([]),
    version: Object.freeze({ ...Deno.version }),
    build: Object.freeze({ ...Deno.build }),
    permissions: Object.freeze({
      query: query.bind(Deno.permissions),
      querySync: querySync.bind(Deno.permissions),
      request: refuse("Deno.permissions.request"),
      revoke: refuse("Deno.permissions.revoke"),
    }),
  };
  const deno: Record<string, unknown> = Object.assign(Object.create(null), own);
  for (const name of Object.getOwnPropertyNames(given)) {
    if (Object.hasOwn(own, name)) continue;
    const read = DENO_KEPT.has(name) ? () => given[name] : () => refused(given[name], refuse(`Deno.${name}`));
    if (isLazy(given, name)) Object.defineProperty(deno, name, { get: read, enumerable: true });
    else deno[name] = read();
  }
  fix(scope, "Deno", Object.freeze(deno));
}

/**
 * Whether a member is made when it is first read. Then it stays so: to read all of them would load Deno's HTTP server, processes
 * and more into every guest, half of what the hardening took.
 */
function isLazy(object: object, name: string): boolean {
  return Object.getOwnPropertyDescriptor(object, name)?.get !== undefined;
}

/** What is no function is not there. */
function refused(value: unknown, refuse: () => never): unknown {
  return typeof value === "function" ? refusedFunction(refuse) : undefined;
}

/** Refused when it is called. */
function refusedFunction(refuse: () => never): unknown {
  return Object.freeze(function unavailable() {
    refuse();
  });
}

/** Refused as soon as something of it is asked for. */
function refusedObject(refuse: () => never): unknown {
  return new Proxy(Object.freeze({}), { get: refuse, has: refuse, ownKeys: refuse });
}

function fix(scope: Record<string, unknown>, name: string, value: unknown): void {
  Object.defineProperty(scope, name, { value, configurable: false, enumerable: true, writable: false });
}

/** Some of these are on the prototypes of the scope, not on itself. */
function remove(scope: Record<string, unknown>, name: string): void {
  for (let level: object | null = scope; level !== null; level = Object.getPrototypeOf(level)) {
    if (!Object.hasOwn(level, name)) continue;
    if (!Reflect.deleteProperty(level, name)) {
      Reflect.defineProperty(level, name, { value: undefined, writable: false });
    }
  }
}

/** Tenths of a millisecond: enough to measure with, too coarse to listen to neighbours (threats T43). */
function coarsenClock(): void {
  const now = performance.now.bind(performance);
  Object.defineProperty(Performance.prototype, "now", {
    value: () => Math.floor(now() * 10) / 10,
    configurable: false,
    writable: false,
  });
}
