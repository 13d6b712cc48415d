/** `provider-gemini`: models of Google through the Gemini API. */
import type { Coordinator, JsonObject, ModuleInfo, MountReturn } from "preamp/base";
import { mountProvider, providerConfigSchema, type ProviderDefinition } from "preamp/provider";
import { knownModels } from "./models.ts";

const DEFINITION: ProviderDefinition = {
  id: "gemini",
  display_name: "Google Gemini",
  credential: {
    env_vars: ["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    url: "https://aistudio.google.com/apikey",
  },
  base_url_env_vars: ["GOOGLE_GEMINI_BASE_URL"],
  capabilities: ["vision", "pdf", "json_schema"],
  // a model may think for minutes without sending anything
  defaults: {
    model: "gemini-3.8-flash",
    context_window: 1_048_576,
    max_output_tokens: 65_536,
    first_byte_timeout_s: 300,
    idle_timeout_s: 120,
  },
  models: [], // their prices depend on the date: see mount
  settings: {
    include_thoughts: {
      type: "boolean",
      default: true,
      description: "Whether answers contain summaries of the model's thoughts.",
    },
    api_version: { type: "string", default: "v1beta", description: "Version in the path of the API." },
    safety_settings: {
      type: "array",
      items: { type: "object", required: ["category", "threshold"] },
      description: "safetySettings of the API: [{category, threshold}].",
    },
  },
  load: async (settings) => (await import("./backend.ts")).createBackend(settings),
};

export const module: ModuleInfo = {
  id: "provider-gemini",
  name: "Google Gemini",
  version: "1.0.0",
  type: "provider",
  mount_point: "providers",
  description: "Models of Google through the Gemini API",
  config_schema: providerConfigSchema(DEFINITION),
};

/**
 * Mounts the provider as `gemini`; skipped without a key.
 *
 * @throws {PreampError} `module_invalid` when a setting is invalid.
 */
export function mount(coordinator: Coordinator, config: JsonObject = {}): Promise<MountReturn> {
  const models = knownModels(new Date(coordinator.clock.now()));
  return mountProvider(coordinator, config, { ...DEFINITION, models });
}
