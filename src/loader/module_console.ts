/**
 * Console of modules in this process. Many runs share a linked module, so its bundle gets a `console` of its own, which writes to
 * the run that called the module. The console of the process is unchanged.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { consoleMethods, type ConsoleWriter } from "../sdk/console.ts";

/** Writes a line of a module's console, with the module's id. */
export type ModuleConsoleWriter = (...line: [...Parameters<ConsoleWriter>, module: string]) => void;

const KEY = Symbol.for("preamp.console");

/** Writer of the current asynchronous context. */
const current = new AsyncLocalStorage<ModuleConsoleWriter>();

/** Calls `body` and returns its result. Console lines of modules go to `write`, also in asynchronous work that `body` starts. */
export function withModuleConsole<T>(write: ModuleConsoleWriter, body: () => T): T {
  return current.run(write, body);
}

/** Returns the code of a bundle with a `console` of its own, appended so that no line moves. */
export function withOwnConsole(code: string, module: string): string {
  Reflect.set(globalThis, KEY, consoleOf);
  const source = `export const console=globalThis[Symbol.for("preamp.console")](${JSON.stringify(module)})`;
  const statement = `\nimport{console}from"data:text/javascript,${encodeURIComponent(source)}";\n`;
  const map = code.lastIndexOf("\n//# sourceMappingURL=");
  return map < 0 ? code + statement : code.slice(0, map) + statement + code.slice(map);
}

/** Returns whether linking failed because the bundle already declares `console`. */
export function hasConsole(error: unknown): boolean {
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
