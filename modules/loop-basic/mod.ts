/** `loop-basic`: the loop with one tool at a time and no steering. */
import type { Coordinator, JsonObject, ModuleInfo } from "preamp";
import { mountLoop } from "preamp/loop";

/** What this module says of itself. */
export const module: ModuleInfo = {
  id: "loop-basic",
  name: "Basic loop",
  version: "1.0.0",
  type: "orchestrator",
  mount_point: "orchestrator",
  description: "Calls the model and its tools in turn until there is an answer; one tool at a time.",
  config_schema: {
    type: "object",
    properties: {
      max_iterations: {
        type: "integer",
        minimum: -1,
        description: "Model calls of a turn; -1 = one less than the run's ceiling.",
      },
      max_parallel_tools: { type: "integer", minimum: 1, default: 1 },
      steering: { type: "boolean", default: false },
      default_provider: { type: "string", description: "Name of the provider to prefer." },
    },
  },
};

/** Mounts the loop. */
export async function mount(coordinator: Coordinator, config: JsonObject): Promise<void> {
  await mountLoop(coordinator, config, {
    orchestrator: "loop-basic",
    steering: false,
    max_parallel_tools: 1,
  });
}
