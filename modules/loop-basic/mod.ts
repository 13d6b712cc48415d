/** `loop-basic`: the agent loop with one tool call at a time and without steering. */
import type { Coordinator, JsonObject, ModuleInfo } from "preamp/base";
import { loopConfigSchema, type LoopDefaults, mountLoop } from "preamp/loop";

const DEFAULTS: LoopDefaults = {
  orchestrator: "loop-basic",
  steering: false,
  max_parallel_tools: 1,
};

export const module: ModuleInfo = {
  id: "loop-basic",
  name: "Basic loop",
  version: "1.0.0",
  type: "orchestrator",
  mount_point: "orchestrator",
  description: "Calls the model and its tools in turn until there is an answer; one tool at a time.",
  config_schema: loopConfigSchema(DEFAULTS),
};

export async function mount(coordinator: Coordinator, config: JsonObject): Promise<void> {
  await mountLoop(coordinator, config, DEFAULTS);
}
