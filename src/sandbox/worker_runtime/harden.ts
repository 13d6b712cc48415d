/**
 * Restricts the globals of a guest to the language, web APIs and members of `Deno` that Deno's permissions
 * guard. Everything else is removed, or throws when it is used. Removes our frames from the stack traces
 * that a module sees: their paths belong to the server. Not the security boundary: those are the worker's
 * permissions and the process. This closes gaps between them: files through
 * `caches`, other guests through broadcast channels, internals of Deno.
 */
import { cut, find, Object, push, Reflect } from "../../sdk/primordials.ts";

/** Functions of `Deno` for files; each has a synchronous version. */
const FILES = [
  ...["readFile", "readTextFile", "writeFile", "writeTextFile", "stat", "lstat", "mkdir", "readDir"],
  ...["readLink", "realPath", "remove", "rename", "copyFile", "truncate", "open", "create"],
  ...["makeTempDir", "makeTempFile", "chmod", "chown", "utime", "link", "symlink"],
];

/** Members of `Deno` that its permissions guard, or that reach nothing outside. */
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

/**
 * Functions and classes that reach other isolates or the disk without a permission, or that end the worker.
 */
const REFUSED_FUNCTIONS = [
  ...["Worker", "BroadcastChannel", "Cache", "CacheStorage", "close", "postMessage"],
  ...["OffscreenCanvas", "createImageBitmap"],
];

/** Objects that do the same. */
const REFUSED_OBJECTS = ["caches", "localStorage", "sessionStorage"];

/** Globals that are removed, so that libraries which test for them use an alternative. */
const REMOVED = [
  ...["process", "SharedArrayBuffer", "Lock", "LockManager", "location", "WorkerLocation", "name", "global"],
  ...["onmessage", "onerror", "onunhandledrejection", "WorkerGlobalScope", "DedicatedWorkerGlobalScope"],
  ...["importScripts", "ImageBitmapRenderingContext", "setImmediate", "clearImmediate"],
];

/** Hardens the globals of this worker. The caller must read what it needs before. */
export function harden(): void {
  const scope = globalThis as unknown as Record<string, unknown>;
  const { NotCapable } = Deno.errors;
  const refuse = (name: string) => () => {
    throw new NotCapable(`${name} is not available to modules`);
  };
  hardenDeno(scope, refuse);
  for (const name of REFUSED_FUNCTIONS) if (name in scope) fix(scope, name, refusedFunction(refuse(name)));
  for (const name of REFUSED_OBJECTS) if (name in scope) fix(scope, name, refusedObject(refuse(name)));
  const graphics = Object.getOwnPropertyNames(scope).filter((name) => name.startsWith("GPU"));
  for (const name of [...REMOVED, ...graphics]) remove(scope, name);
  fix(scope, "navigator", Object.freeze({ userAgent: navigator.userAgent, language: navigator.language }));
  coarsenClock();
  // Deno's message ports (2.9) use it, so a module that replaced it would receive nothing
  Object.defineProperty(Function.prototype, "call", { writable: false, configurable: false });
}

function hardenDeno(scope: Record<string, unknown>, refuse: (name: string) => () => never): void {
  const original = Deno as unknown as Record<string, unknown>;
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
  for (const name of Object.getOwnPropertyNames(original)) {
    if (Object.hasOwn(own, name)) continue;
    const read = () => {
      if (DENO_KEPT.has(name)) return original[name];
      return typeof original[name] === "function" ? refusedFunction(refuse(`Deno.${name}`)) : undefined;
    };
    // perf: reading those that are created when they are first read took half the time of the hardening
    const is_lazy = Object.getOwnPropertyDescriptor(original, name)?.get !== undefined;
    if (is_lazy) Object.defineProperty(deno, name, { get: read, enumerable: true });
    else deno[name] = read();
  }
  fix(scope, "Deno", Object.freeze(deno));
}

/** Returns a function that throws when it is called. */
function refusedFunction(refuse: () => never): unknown {
  return Object.freeze(function unavailable() {
    refuse();
  });
}

/** Returns an object that throws when a member is accessed. */
function refusedObject(refuse: () => never): unknown {
  return new Proxy(Object.freeze({}), { get: refuse, has: refuse, ownKeys: refuse });
}

function fix(scope: Record<string, unknown>, name: string, value: unknown): void {
  Object.defineProperty(scope, name, { value, configurable: false, enumerable: true, writable: false });
}

/** Removes a global, which may be defined on a prototype of the scope. */
function remove(scope: Record<string, unknown>, name: string): void {
  for (let level: object | null = scope; level !== null; level = Object.getPrototypeOf(level)) {
    if (!Object.hasOwn(level, name)) continue;
    if (!Reflect.deleteProperty(level, name)) {
      Reflect.defineProperty(level, name, { value: undefined, writable: false });
    }
  }
}

/** Rounds `performance.now()` to 0.1 ms, too coarse for timing attacks on other guests. */
function coarsenClock(): void {
  const now = performance.now.bind(performance);
  Object.defineProperty(Performance.prototype, "now", {
    value: () => Math.floor(now() * 10) / 10,
    configurable: false,
    writable: false,
  });
}

/** Type of `Error.prepareStackTrace`, with which a module formats traces. */
type Prepare = (error: Error, frames: unknown[]) => unknown;

/** V8's interface of a stack frame. */
interface Frame {
  getFileName(): unknown;
  getLineNumber(): unknown;
  getColumnNumber(): unknown;
  getScriptNameOrSourceURL?(): unknown;
  getEvalOrigin?(): unknown;
}

const describeError = Error.prototype.toString;
const encodePath = encodeURI;

/** Characters at the start and end of a `data:` URL in a trace, as in Deno. */
const URL_START = 60;
const URL_END = 20;

/**
 * Removes our frames from every trace of this isolate. A function that the module assigns to
 * `Error.prepareStackTrace` receives the remaining frames. The property and the global `Error` become
 * read-only, because the engine looks them up.
 */
export function hideOwnFrames(): void {
  let own: Prepare | undefined;
  const prepare: Prepare = (error, frames) => {
    const visible: Frame[] = [];
    for (let at = 0; at < frames.length; at++) {
      const frame = frames[at] as Frame; // from V8
      if (isVisible(frame)) push(visible, frame);
    }
    return own === undefined ? format(error, visible) : own(error, visible);
  };
  Object.defineProperty(Error, "prepareStackTrace", {
    get: () => prepare,
    set: (value: unknown) =>
      own = typeof value === "function" && value !== prepare ? value as Prepare : undefined,
    configurable: false,
    enumerable: false,
  });
  Object.defineProperty(globalThis, "Error", { writable: false, configurable: false });
}

function isVisible(frame: Frame): boolean {
  return !isOurs(frame.getFileName()) && !isOurs(frame.getScriptNameOrSourceURL?.()) &&
    !isOurs(frame.getEvalOrigin?.());
}

/** Folder of our code: the whole bundle in the compiled program, `src` under `deno run`. */
const OURS = new URL(Deno.build.standalone ? "../../../" : "../../", import.meta.url).pathname;
/** Part of the paths of packages in Deno's cache. */
const PACKAGES = "/npm/";

/** Returns whether a frame is ours. A module in a local file keeps its own frames. */
function isOurs(place: unknown): boolean {
  if (typeof place !== "string") return false;
  return find(place, OURS, 0) >= 0 || cut(place, 0, 5) === "file:" && find(place, PACKAGES, 0) >= 0;
}

function format(error: Error, frames: readonly Frame[]): string {
  let text = headOf(error);
  for (let at = 0; at < frames.length; at++) text += `\n    at ${lineOf(frames[at]!)}`;
  return text;
}

function headOf(error: Error): string {
  try {
    return Reflect.apply(describeError, error, []);
  } catch {
    return "Error"; // its name or message throws
  }
}

/** Formats a frame like V8, but with the URL of the file, by which the host finds the author's line. */
function lineOf(frame: Frame): string {
  const text = `${frame}`;
  const file = frame.getFileName();
  if (typeof file !== "string") return text;
  const place = `${urlOf(file)}:${frame.getLineNumber()}:${frame.getColumnNumber()}`;
  const open = find(text, " (", 0);
  if (open >= 0 && cut(text, text.length - 1, text.length) === ")") return `${cut(text, 0, open)} (${place})`;
  return find(text, "async ", 0) === 0 ? `async ${place}` : place;
}

/**
 * Returns the URL of a file. The `data:` URL of a module without a source map contains its code and is
 * shortened.
 */
function urlOf(file: string): string {
  if (cut(file, 0, 1) === "/") return `file://${encodePath(file)}`; // Deno uses paths here
  if (file.length <= URL_START + URL_END || cut(file, 0, 5) !== "data:") return file;
  return `${cut(file, 0, URL_START)}......${cut(file, file.length - URL_END, file.length)}`;
}
