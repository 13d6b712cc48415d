/** The module's console: lines of the log of the process, never bytes on its output. */
import { consoleMethods } from "../../sdk/console.ts";
import type { GuestRpc } from "./rpc.ts";

/** Makes the console of this isolate write to the host's log. */
export function redirectConsole(rpc: GuestRpc): void {
  const { inspect } = Deno;
  Object.assign(console, consoleMethods((level, text) => rpc.log(level, text), (value) => inspect(value)));
}
