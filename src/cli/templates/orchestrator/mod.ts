/** `__ID__`: a loop that reminds the model of a rule in each request. */
import {
  type Coordinator,
  type JsonObject,
  type ModuleInfo,
  type MountReturn,
  type Orchestrator,
  readConfig,
} from "preamp";
import { createLoop } from "preamp/loop";

const CONFIG_SCHEMA = {
  type: "object",
  properties: { rule: { type: "string", default: "", description: "Text that the model is reminded of" } },
};

/** The metadata of this module. */
export const module: ModuleInfo = {
  id: "__ID__",
  type: "orchestrator",
  version: "0.1.0",
  description: "Runs turns like the built-in loops, and reminds the model of a rule in each request.",
  config_schema: CONFIG_SCHEMA,
  permissions: {}, // a loop needs none: providers and tools have their own
};

/** Mounts the loop. */
export async function mount(coordinator: Coordinator, config: JsonObject): Promise<MountReturn> {
  const { rule } = readConfig<{ rule: string }>(CONFIG_SCHEMA, config);
  await coordinator.mount("orchestrator", remindingLoop(rule));
  return { name: module.id, version: module.version, provides: ["orchestrator"] };
}

/** Returns a loop. `createLoop` calls the model and its tools, emits the events and keeps the limits. */
function remindingLoop(rule: string): Orchestrator {
  const loop = createLoop({
    orchestrator: module.id,
    max_iterations: -1, // one less than the limit of the run
    max_parallel_tools: 4,
    steering: false,
    request: {}, // such as { temperature: 0 }
  });
  return {
    async execute(prompt, context, providers, tools, hooks, options) {
      const reminder = hooks.register("provider:request", () =>
        rule === "" ? null : {
          action: "inject_context",
          context_injection: rule,
          context_injection_role: "user",
          ephemeral: true, // for this request only
        }, { name: module.id });
      try {
        return await loop.execute(prompt, context, providers, tools, hooks, options);
      } finally {
        reminder(); // removes the handler
      }
    },
  };
}
