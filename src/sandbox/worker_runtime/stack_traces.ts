/** Stack traces as a module may see them: frames of its own code and of the runtime, none of ours, whose places are the server's. */
import { cut, find, Object, push, Reflect } from "../../sdk/primordials.ts";

/** How a module formats its own traces: `Error.prepareStackTrace`. */
type Prepare = (error: Error, frames: unknown[]) => unknown;

/** What V8 tells of one frame. */
interface Frame {
  getFileName(): unknown;
  getLineNumber(): unknown;
  getColumnNumber(): unknown;
  getScriptNameOrSourceURL?(): unknown;
  getEvalOrigin?(): unknown;
}

const describeError = Error.prototype.toString;
const encodePath = encodeURI;

/** Characters at the beginning and the end of a `data:` URL that a trace shows, as Deno has it. */
const SHOWN_START = 60;
const SHOWN_END = 20;

/**
 * Takes our frames out of every trace of this isolate, also of those that a module formats itself. What it assigns to
 * `Error.prepareStackTrace` is called with the frames that are left. Neither that nor the global `Error` can be taken away: the
 * engine asks them.
 */
export function hideOwnFrames(): void {
  let own: Prepare | undefined;
  const prepare: Prepare = (error, frames) => {
    const shown: Frame[] = [];
    for (let at = 0; at < frames.length; at++) {
      const frame = frames[at] as Frame; // V8's
      if (isShown(frame)) push(shown, frame);
    }
    return own === undefined ? format(error, shown) : own(error, shown);
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

function isShown(frame: Frame): boolean {
  return !isOurs(frame.getFileName()) && !isOurs(frame.getScriptNameOrSourceURL?.()) &&
    !isOurs(frame.getEvalOrigin?.());
}

/** Where our own code is: in the compiled program all there is, under `deno run` the sources. */
const OURS = new URL(Deno.build.standalone ? "../../../" : "../../", import.meta.url).pathname;
/** Where Deno keeps the packages that our code uses. */
const PACKAGES = "/npm/";

/** A module of the operator's is a file too: its own frames stay. */
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
    return "Error"; // its name or message cannot be read
  }
}

/** As V8 writes it, with the URL of the file in place of its path: that is what the host looks for. */
function lineOf(frame: Frame): string {
  const text = `${frame}`;
  const file = frame.getFileName();
  if (typeof file !== "string") return text;
  const place = `${urlOf(file)}:${frame.getLineNumber()}:${frame.getColumnNumber()}`;
  const open = find(text, " (", 0);
  if (open >= 0 && cut(text, text.length - 1, text.length) === ")") return `${cut(text, 0, open)} (${place})`;
  return find(text, "async ", 0) === 0 ? `async ${place}` : place;
}

/** The URL of a module without a map is its whole code. */
function urlOf(file: string): string {
  if (cut(file, 0, 1) === "/") return `file://${encodePath(file)}`; // Deno names files by their paths here
  if (file.length <= SHOWN_START + SHOWN_END || cut(file, 0, 5) !== "data:") return file;
  return `${cut(file, 0, SHOWN_START)}......${cut(file, file.length - SHOWN_END, file.length)}`;
}
