/** `loop-streaming`: the agent loop with eight parallel tool calls and with steering. */
import type { Coordinator, JsonObject, ModuleInfo } from "preamp/base";
import { loopConfigSchema, type LoopDefaults, mountLoop } from "preamp/loop";

const DEFAULTS: LoopDefaults = {
  orchestrator: "loop-streaming",
  steering: true,
  max_parallel_tools: 8,
};

export const module: ModuleInfo = {
  id: "loop-streaming",
  name: "Streaming loop",
  version: "1.0.0",
  type: "orchestrator",
  mount_point: "orchestrator",
  description:
    "Calls the model and its tools in turn until there is an answer; tools in parallel, steerable.",
  config_schema: loopConfigSchema(DEFAULTS),
};

export async function mount(coordinator: Coordinator, config: JsonObject): Promise<void> {
  await mountLoop(coordinator, config, DEFAULTS);
}
