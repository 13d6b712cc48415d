/** `provider-gemini`: models of Google through the Gemini API. */
import type { Coordinator, JsonObject, ModuleInfo, MountReturn, Prices } from "preamp/base";
import {
  type KnownModel,
  mountProvider,
  providerConfigSchema,
  type ProviderDefinition,
} from "preamp/provider";
import { thinkingOf } from "../ai-sdk/google_traits.ts";

/** A model with prices by the first day on which they hold, such as `2026-12-01`, oldest first. */
interface PricedModel extends Omit<KnownModel, "prices"> {
  /** Last day of the model: later, requests are answered by another one at its prices. */
  readonly until?: string;
  readonly prices: readonly (readonly [from: string, prices: Prices])[];
}

/** Prices of the paid tier for text and images, as of 2026-11-22: input, cached input and output. */
const MODELS: readonly PricedModel[] = [
  {
    id: "gemini-4-carbon",
    display_name: "Gemini 4 Carbon",
    ...priced("2 0.10 10", "2026-12-01", "4 0.20 20"),
  },
  { id: "gemini-4-argon", display_name: "Gemini 4 Argon", ...priced("2 0.10 10", "2026-12-01", "4 0.20 20") },
  { id: "gemini-3.8-flash", display_name: "Gemini 3.8 Flash", ...flash() },
  { id: "gemini-3.7-flash", display_name: "Gemini 3.7 Flash", ...flash() },
  { id: "gemini-3.6-flash", display_name: "Gemini 3.6 Flash", ...flash() },
  { id: "gemini-3.5-flash", display_name: "Gemini 3.5 Flash", ...priced("1.50 0.15 9") },
  { id: "gemini-3.5-flash-lite", display_name: "Gemini 3.5 Flash-Lite", ...priced("0.30 0.03 2.50") },
  {
    id: "gemini-3.1-pro",
    display_name: "Gemini 3.1 Pro",
    ...priced("2 0.20 12"),
    long_prices: { above_tokens: 200_000, prices: pricesOf("4 0.40 18") },
  },
  { id: "gemini-3.1-flash-lite", display_name: "Gemini 3.1 Flash-Lite", ...priced("0.25 0.025 1.50") },
  { id: "gemini-3-flash", display_name: "Gemini 3 Flash", ...priced("0.50 0.05 3") },
  {
    id: "gemini-2.5-pro",
    display_name: "Gemini 2.5 Pro",
    ...priced("1.25 0.125 10"),
    until: "2026-11-30",
    long_prices: { above_tokens: 200_000, prices: pricesOf("2.50 0.25 15") },
  },
  {
    id: "gemini-2.5-flash",
    display_name: "Gemini 2.5 Flash",
    ...priced("0.30 0.03 2.50"),
    until: "2026-11-30",
  },
  { id: "gemini-2.5-flash-lite", display_name: "Gemini 2.5 Flash-Lite", ...priced("0.10 0.01 0.40") },
];

/** Returns the known models with the prices of a day. */
export function knownModels(now: Date): KnownModel[] {
  const day = now.toISOString().slice(0, 10);
  return MODELS.filter(({ until = day }) => day <= until).map(({ prices, until: _, ...model }) => {
    const [, current] = prices.findLast(([from]) => from <= day)!; // the first is without a day
    return { ...model, capabilities: thinkingOf(model.id) === "none" ? [] : ["thinking"], prices: current };
  });
}

function flash() {
  return priced("0.75 0.075 3.75", "2027-01-01", "1.50 0.15 7.50");
}

/** Returns sizes and prices of a model; `later` are its prices from a day on. */
function priced(now: string, from = "", later = now): Omit<PricedModel, "id"> {
  return {
    context_window: 1_048_576,
    max_output_tokens: 65_536,
    prices: [["", pricesOf(now)], [from, pricesOf(later)]],
  };
}

function pricesOf(text: string): Prices {
  const [input = "", cache_read = "", output = ""] = text.split(" ");
  return { input, cache_read, output };
}

const DEFINITION: ProviderDefinition = {
  id: "gemini",
  display_name: "Google Gemini",
  credential: {
    env_vars: ["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    url: "https://aistudio.google.com/apikey",
  },
  vendor_url: "https://generativelanguage.googleapis.com",
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
  load: async (settings) => (await import("../ai-sdk/google.ts")).createBackend(settings),
};

export const module: ModuleInfo = {
  id: "provider-gemini",
  name: "Google Gemini",
  version: "1.0.0",
  type: "provider",
  mount_point: "providers",
  description: "Models of Google through the Gemini API.",
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
