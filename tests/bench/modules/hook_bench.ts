/** Hooks as people write them: asynchronous, reading a field, letting the event pass. `config.handlers` of them on each event. */
import type { Coordinator, HookHandler, JsonObject, ModuleInfo } from "preamp";

/** What this module is. */
export const module: ModuleInfo = { id: "hook-bench", type: "hook", version: "1.0.0" };

/** What an iteration with one tool call emits. */
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
  let named = 0;
  const handler: HookHandler = (_event, data) => {
    if (typeof data.session_id === "string") named++;
    return Promise.resolve({ action: "continue" });
  };
  for (const event of EVENTS) {
    for (let index = 0; index < Number(handlers); index++) {
      coordinator.hooks.register(event, handler, { name: `hook-${index}` });
    }
  }
  coordinator.registerContributor("hook-bench.seen", module.id, () => [named]);
}
