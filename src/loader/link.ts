/**
 * Links a bundle in this process as a `data:` import, which works under `deno run` and in the compiled
 * program. Many runs share a linked module, so its bundle gets a `console` of its own, which writes to the
 * run that called the module.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { within } from "../process/system_clock.ts";
import { consoleMethods, type ConsoleWriter } from "../sdk/console.ts";
import { errorMessage, PreampError, readField, readText } from "../sdk/errors.ts";
import type { JsonObject } from "../sdk/json.ts";
import { installSdk, moduleOf } from "../sdk/sdk_global.ts";
import { splitMap } from "./bundler/source_map.ts";
import { displayUrl } from "./module_errors.ts";
import type { ModuleBundle } from "./types.ts";

/** Options of {@link linkModule}. */
export interface LinkOptions {
  /** Modules of one instance share their state; another instance runs the same code again. */
  instance: string;
  /** Timeout of the module's top level in seconds. */
  timeout_s: number;
  /** Name of the module in messages. */
  name: string;
  /** Module id in lines of its own console; absent: it uses the console of the process. */
  module?: string;
  base_url?: string;
}

/**
 * Runs the module's top level; resolves to its exports.
 * @throws {PreampError} `module_load_failed` if the top level throws or times out.
 */
export async function linkModule(bundle: ModuleBundle, options: LinkOptions): Promise<JsonObject> {
  const { timeout_s, name, base_url } = options;
  await installSdk(bundle.uses);
  try {
    const late = `its top level was not done within ${timeout_s} s`;
    return moduleOf(await within(timeout_s * 1000, link(bundle, options), late));
  } catch (error) {
    const at = displayErrorLocation(error, bundle.files, base_url);
    const place = at === undefined ? "" : `${at}: `;
    const fact = error instanceof Error ? `${error.name}: ${error.message}` : errorMessage(error);
    throw new PreampError("module_load_failed", `Cannot load ${name}: ${place}${fact.slice(0, 1000)}`, {
      cause: error,
      ...(at === undefined ? {} : { facts: { at } }),
    });
  }
}

async function link({ code }: ModuleBundle, { instance, module }: LinkOptions): Promise<JsonObject> {
  try {
    return await import(dataUrl(module === undefined ? code : withOwnConsole(code, module), instance));
  } catch (error) {
    if (!hasConsole(error)) throw error;
    return await import(dataUrl(code, instance));
  }
}

/** Returns a data: URL. Different fragments make separate modules of the same code. */
function dataUrl(code: string, instance: string): string {
  return `data:text/javascript;charset=utf-8;base64,${new TextEncoder().encode(code).toBase64()}#${instance}`;
}

/** Most causes of an error whose stacks are read for a location. */
const MAX_CAUSES = 3;

/**
 * Returns where in the module's files an error was thrown, as `<url>:<line>:<column>` with the URL in display
 * form; undefined if elsewhere. Reads the innermost frame that lies in one of the files, of its stack or else
 * of its cause's: Deno applies the bundle's source map to stacks itself, under `deno run` and in the compiled
 * program alike.
 */
export function displayErrorLocation(
  error: unknown,
  files: readonly { url: string }[],
  base_url?: string,
): string | undefined {
  const urls = new Set(files.map(({ url }) => url));
  let thrown = error;
  for (let causes = 0; causes <= MAX_CAUSES; causes++) {
    for (const frame of readText(thrown, "stack")?.slice(0, 20_000).split("\n") ?? []) {
      const place = placeOf(frame.trim());
      if (place && urls.has(place.url)) return displayUrl(place.url, base_url) + place.position;
    }
    thrown = readField(thrown, "cause");
  }
  return undefined;
}

/** Parses `at NAME (URL:LINE:COLUMN)` or `at URL:LINE:COLUMN`; a URL may contain colons and parentheses. */
function placeOf(frame: string): { url: string; position: string } | undefined {
  const [, place = "", position = ""] = /^at (.*?)(:[1-9]\d*:\d+)\)?$/.exec(frame) ?? [];
  if (position === "") return undefined;
  const open = frame.endsWith(")") ? place.indexOf(" (") : -1;
  const url = open === -1 ? place : place.slice(open + 2);
  return { url: url.startsWith("async ") ? url.slice("async ".length) : url, position };
}

/** Writes a line of a module's console, with the module's id. */
type ModuleConsoleWriter = (...line: [...Parameters<ConsoleWriter>, module: string]) => void;

const KEY = Symbol.for("preamp.console");

/** Writer of the current asynchronous context. */
const current = new AsyncLocalStorage<ModuleConsoleWriter>();

/**
 * Calls `body` and returns its result. Console lines of modules go to `write`, also in asynchronous work that
 * `body` starts.
 */
export function withModuleConsole<T>(write: ModuleConsoleWriter, body: () => T): T {
  return current.run(write, body);
}

/** Returns a bundle with a `console` of its own, appended so that no line moves. */
function withOwnConsole(bundle: string, module: string): string {
  Reflect.set(globalThis, KEY, consoleOf);
  const source = `export const console=globalThis[Symbol.for("preamp.console")](${JSON.stringify(module)})`;
  const statement = `\nimport{console}from"data:text/javascript,${encodeURIComponent(source)}";\n`;
  const { code, comment } = splitMap(bundle);
  return code + statement + comment;
}

/** Returns whether linking failed because the bundle already declares `console`. */
function hasConsole(error: unknown): boolean {
  return error instanceof SyntaxError && error.message.includes("'console' has already been declared");
}

function consoleOf(module: string): Record<string, unknown> {
  const { console: outside } = globalThis; // for lines outside of runs
  const methods = consoleMethods((level, text) => {
    const write = current.getStore();
    if (write) write(level, text, module);
    else outside[level === "warning" ? "warn" : level](`${module}: ${text}`);
  }, Deno.inspect);
  return { ...outside, ...methods };
}
