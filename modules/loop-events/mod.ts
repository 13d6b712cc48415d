/** `loop-events`: the loop whose hooks choose, at `tool:selecting`, what becomes of each tool call. */
import type { Coordinator, JsonObject, ModuleInfo } from "preamp";
import { LOOP_CONFIG_PROPERTIES, mountLoop } from "preamp/loop";

/** What this module says of itself. */
export const module: ModuleInfo = {
  id: "loop-events",
  name: "Event loop",
  version: "1.0.0",
  type: "orchestrator",
  mount_point: "orchestrator",
  description:
    "Calls the model and its tools in turn; hooks choose what becomes of each call. One tool at a time.",
  config_schema: {
    type: "object",
    properties: {
      ...LOOP_CONFIG_PROPERTIES,
      max_parallel_tools: { type: "integer", minimum: 1, default: 1 },
      steering: { type: "boolean", default: false },
    },
  },
};

/** Mounts the loop. */
export async function mount(coordinator: Coordinator, config: JsonObject): Promise<void> {
  await mountLoop(coordinator, config, {
    orchestrator: "loop-events",
    steering: false,
    max_parallel_tools: 1,
    selects_tools: true,
  });
}
