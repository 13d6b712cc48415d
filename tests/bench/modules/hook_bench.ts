/**
 * Registers `config.handlers` typical hooks for each event: asynchronous, read a field, let the event pass.
 */
import type { Coordinator, HookHandler, JsonObject, ModuleInfo } from "preamp";

/** Describes the module. */
export const module: ModuleInfo = { id: "hook-bench", type: "hook", version: "1.0.0" };

/** Events of an iteration with one tool call. */
const EVENTS = [
  "provider:request",
  "content_block:start",
  "content_block:delta",
  "content_block:end",
  "provider:response",
  "tool:pre",
  "tool:post",
];

/** Registers the handlers. */
export function mount(coordinator: Coordinator, { handlers }: JsonObject): void {
  let seen = 0;
  const handler: HookHandler = (_event, data) => {
    if (typeof data.session_id === "string") seen++;
    return Promise.resolve({ action: "continue" });
  };
  for (const event of EVENTS) {
    for (let index = 0; index < Number(handlers); index++) {
      coordinator.hooks.register(event, handler, { name: `hook-${index}` });
    }
  }
  coordinator.registerContributor("hook-bench.seen", module.id, () => [seen]);
}
