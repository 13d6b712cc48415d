/** `provider-mock`: a provider without a model. It answers from a script and needs no key and no network. */
import type { Coordinator, JsonObject, ModuleInfo } from "preamp/base";
import { CONFIG_SCHEMA, readMockConfig } from "./config.ts";
import { claimStateKey, Position } from "./script_position.ts";
import { createProvider } from "./provider.ts";

export const module: ModuleInfo = {
  id: "provider-mock",
  name: "Mock provider",
  version: "1.0.0",
  type: "provider",
  mount_point: "providers",
  description: "Answers from a script or by a fixed rule; deterministic, needs no key",
  config_schema: CONFIG_SCHEMA,
};

/**
 * Mounts the provider as `mock`.
 *
 * @throws {PreampError} `module_invalid` when the config is wrong; `details` has all problems.
 */
export async function mount(coordinator: Coordinator, config: JsonObject = {}): Promise<void> {
  const settings = readMockConfig(config);
  const script = settings.answers.kind === "script" ? settings.answers.entries : [];
  const position = new Position(() => coordinator.session_state, claimStateKey(coordinator), script);
  const provider = createProvider(settings, { clock: coordinator.clock, position });
  await coordinator.mount("providers", provider, { name: "mock" });
}
