/** `loop-events`: the agent loop in which hooks of `tool:selecting` can replace or deny each tool call. */
import type { Coordinator, JsonObject, ModuleInfo } from "preamp/base";
import { loopConfigSchema, type LoopDefaults, mountLoop } from "preamp/loop";

const DEFAULTS: LoopDefaults = {
  orchestrator: "loop-events",
  steering: false,
  max_parallel_tools: 1,
  selects_tools: true,
};

export const module: ModuleInfo = {
  id: "loop-events",
  name: "Event loop",
  version: "1.0.0",
  type: "orchestrator",
  mount_point: "orchestrator",
  description:
    "Calls the model and its tools in turn; hooks can replace or deny each call. One tool at a time.",
  config_schema: loopConfigSchema(DEFAULTS),
};

export async function mount(coordinator: Coordinator, config: JsonObject): Promise<void> {
  await mountLoop(coordinator, config, DEFAULTS);
}
