/**
 * The console of modules that run in this process. A module is linked once and used by many runs: a bundle gets a `console` of
 * its own, which finds the run that called it. The console of the process stays as it is.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { consoleMethods, type ConsoleWriter } from "../sdk/console.ts";

/** Takes a line that a module wrote, with the module's name. */
export type ModuleConsoleWriter = (...line: [...Parameters<ConsoleWriter>, module: string]) => void;

const KEY = Symbol.for("preamp.console");

/** Who takes the lines, for everything that is called while a body runs. */
const current = new AsyncLocalStorage<ModuleConsoleWriter>();

/** Returns what a body returns; lines that modules of this process write meanwhile, or later on its behalf, go to `write`. */
export function withModuleConsole<T>(write: ModuleConsoleWriter, body: () => T): T {
  return current.run(write, body);
}

/** Returns the code of a bundle with a `console` of its own. Behind the code, so that no place in it moves. */
export function withOwnConsole(code: string, module: string): string {
  Reflect.set(globalThis, KEY, consoleOf);
  const source = `export const console=globalThis[Symbol.for("preamp.console")](${JSON.stringify(module)})`;
  const statement = `\nimport{console}from"data:text/javascript,${encodeURIComponent(source)}";\n`;
  const map = code.lastIndexOf("\n//# sourceMappingURL=");
  return map < 0 ? code + statement : code.slice(0, map) + statement + code.slice(map);
}

/** Returns whether an error says that a bundle has a `console` at its top level already. */
export function hasConsole(error: unknown): boolean {
  return error instanceof SyntaxError && error.message.includes("'console' has already been declared");
}

function consoleOf(module: string): Record<string, unknown> {
  const { console: outside } = globalThis; // for what belongs to no run
  const methods = consoleMethods((level, text) => {
    const write = current.getStore();
    if (write) write(level, text, module);
    else outside[level === "warning" ? "warn" : level](`${module}: ${text}`);
  }, Deno.inspect);
  return { ...outside, ...methods };
}
