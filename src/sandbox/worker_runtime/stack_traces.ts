/** Removes our frames from the stack traces that a module sees: their paths belong to the server. */
import { cut, find, Object, push, Reflect } from "../../sdk/primordials.ts";

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
 * Removes our frames from every trace of this isolate. A function that the module assigns to `Error.prepareStackTrace` receives the
 * remaining frames. The property and the global `Error` become read-only, because the engine looks them up.
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

/** Returns the URL of a file. The `data:` URL of a module without a source map contains its code and is shortened. */
function urlOf(file: string): string {
  if (cut(file, 0, 1) === "/") return `file://${encodePath(file)}`; // Deno uses paths here
  if (file.length <= URL_START + URL_END || cut(file, 0, 5) !== "data:") return file;
  return `${cut(file, 0, URL_START)}......${cut(file, file.length - URL_END, file.length)}`;
}
