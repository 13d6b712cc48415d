/** Mounts the provider of a definition. */
import type { Coordinator, MountReturn } from "../contracts.ts";
import type { JsonObject } from "../json.ts";
import { needsKey, type ProviderDefinition } from "./definition.ts";
import { BackendProvider } from "./provider.ts";
import type { ProviderSettings } from "./definition.ts";
import { readSettings } from "./settings.ts";

/**
 * Mounts a provider with the settings of a plan, and contributes its cost to `session.cost`. Without a key
 * the provider is skipped, and the reason names the variable and the page where a key is created.
 *
 * @throws {PreampError} `module_invalid` when a setting is invalid.
 */
export async function mountProvider(
  coordinator: Coordinator,
  config: JsonObject,
  definition: ProviderDefinition,
): Promise<MountReturn> {
  const settings = readSettings(config, definition);
  if (settings.api_key === undefined && needsKey(definition, settings.config)) {
    return { skipped: missingKey(definition, settings) };
  }
  const provider = new BackendProvider(coordinator, definition, settings);
  coordinator.registerContributor(
    "session.cost",
    `provider:${definition.id}`,
    () => ({ cost_usd: provider.cost_usd }),
  );
  await coordinator.mount("providers", provider, definition.id);
}

function missingKey(definition: ProviderDefinition, { base_url }: ProviderSettings): string {
  const { env_vars, url } = definition.credential!; // a missing key implies a credential
  const fact = `Cannot use ${moduleOf(definition)} without a key`;
  if (base_url !== undefined) {
    return `${fact}: with base_url, state the key of that server as api_key in its config, such as \${${
      env_vars[0]
    }}; the variable alone is the key for the vendor's own address`;
  }
  return `${fact}: set the variable ${
    env_vars.join(" or ")
  }, or api_key in its config; keys are created at ${url}`;
}

function moduleOf({ module, id }: ProviderDefinition): string {
  return module ?? `provider-${id}`;
}
