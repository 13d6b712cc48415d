/** `provider-mock`: a provider without a model. It plays a script, the same on every machine; needs no key and no network. */
import type { Coordinator, JsonObject, ModuleInfo } from "preamp";
import { CONFIG_SCHEMA, readConfig } from "./config.ts";
import { claimStateKey, Position } from "./script_position.ts";
import { createProvider } from "./provider.ts";

/** What the module says of itself. */
export const module: ModuleInfo = {
  id: "provider-mock",
  name: "Mock provider",
  version: "1.0.0",
  type: "provider",
  mount_point: "providers",
  description: "Answers from a script, or repeats the prompt; deterministic, needs no key",
  config_schema: CONFIG_SCHEMA,
};

/**
 * Mounts the provider as `mock`.
 *
 * @throws {PreampError} `module_invalid` when the config is wrong; every finding is in `details`.
 */
export async function mount(coordinator: Coordinator, config: JsonObject = {}): Promise<void> {
  const read = readConfig(config);
  const script = read.answers.kind === "script" ? read.answers.entries : [];
  const position = new Position(() => coordinator.session_state, claimStateKey(coordinator), script);
  const provider = createProvider(read, { clock: coordinator.clock, position });
  await coordinator.mount("providers", provider, { name: "mock" });
}
