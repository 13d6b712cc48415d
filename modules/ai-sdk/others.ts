/** Modules of further vendors, each a few facts beside its package. */
import type { LanguageModelV4 } from "@ai-sdk/provider";
import type { Coordinator, JsonObject, Module, ModuleInfo, Prices } from "preamp/base";
import {
  type Backend,
  type KnownModel,
  mountProvider,
  providerConfigSchema,
  type ProviderDefinition,
  type ProviderSettings,
} from "preamp/provider";

/** Creates the models of a vendor's package. */
export type CreateModels = (options: {
  apiKey: string;
  baseURL: string;
  headers: Record<string, string>;
  fetch: typeof fetch;
}) => (id: string) => LanguageModelV4;

/** Facts about a vendor. */
export interface OtherVendor
  extends Pick<ProviderDefinition, "id" | "display_name" | "models" | "base_url_env_vars" | "capabilities"> {
  readonly env_vars: readonly string[];
  /** Page on which a key is created. */
  readonly keys: string;
  /** Model of requests that do not name one. */
  readonly model: string;
  /** Imports the vendor's package and returns its backend. */
  load(settings: ProviderSettings, session_id: string): Promise<Backend>;
}

/** Returns the module of a vendor. */
export function moduleOf(vendor: OtherVendor): Required<Pick<Module, "module" | "mount">> {
  const { id, display_name, env_vars, keys, model, models, base_url_env_vars = [], load } = vendor;
  const { capabilities = ["vision", "thinking"] } = vendor;
  const known = models.find((one) => one.id === model);
  const definition: ProviderDefinition = {
    id,
    display_name,
    credential: { env_vars, url: keys },
    base_url_env_vars,
    capabilities,
    // a model may reason for minutes without sending anything
    defaults: {
      model,
      context_window: known?.context_window ?? 128_000,
      max_output_tokens: 16_384,
      idle_timeout_s: 300,
    },
    models,
    settings: { headers: { type: "object", description: "Further headers of each request." } },
    load: (settings) => load(settings, ""),
  };
  const module: ModuleInfo = {
    id: `provider-${id}`,
    name: display_name,
    version: "1.0.0",
    type: "provider",
    mount_point: "providers",
    description: `Models of ${display_name}.`,
    config_schema: providerConfigSchema(definition),
  };
  return {
    module,
    mount: (coordinator: Coordinator, config: JsonObject = {}) =>
      mountProvider(coordinator, config, {
        ...definition,
        load: (settings) => load(settings, coordinator.session_id),
      }),
  };
}

/**
 * Returns known models, one a row: id, window in tokens, and prices of input, output and cached input in US
 * dollars per million tokens. The vendors state no maximum of an answer.
 */
export function modelsOf(...rows: readonly string[]): KnownModel[] {
  return rows.map((row) => {
    const [id = "", window, input = "", output = "", cache_read] = row.split(" ");
    const prices: Prices = { input, output, ...(cache_read === undefined ? {} : { cache_read }) };
    return { id, context_window: Number(window), max_output_tokens: Number(window), prices };
  });
}
