/** `provider-ollama`: local models through the API of an Ollama server. */
import type { Coordinator, JsonObject, ModuleInfo, MountReturn } from "preamp/base";
import { mountProvider, providerConfigSchema, type ProviderDefinition } from "preamp/provider";
import type { RequestSettings } from "./request.ts";

/** Tokens of the window unless the plan states others; the server's own default may be 4,096. */
const WINDOW = 16_384;
const LOCAL = "http://127.0.0.1:11434";

const DEFINITION: ProviderDefinition = {
  id: "ollama",
  display_name: "Ollama",
  credential: {
    env_vars: ["OLLAMA_API_KEY"],
    url: "https://ollama.com/settings/keys",
    optional: true,
  },
  capabilities: ["vision", "thinking", "json_schema"],
  // loading a model takes minutes, and a tool call arrives in one piece
  defaults: {
    model: "qwen3:8b",
    context_window: WINDOW,
    max_output_tokens: 4_096,
    first_byte_timeout_s: 300,
    idle_timeout_s: 120,
  },
  models: [],
  settings: {
    base_url: {
      type: "string",
      minLength: 1,
      env_vars: ["OLLAMA_HOST"],
      vendor_url: LOCAL,
      description: `Address of the server; default: the variable OLLAMA_HOST, else ${LOCAL}.`,
    },
    keep_alive: {
      type: ["string", "number"],
      description: "How long the server keeps the model in memory, such as 10m; -1 = always.",
    },
    options: { type: "object", description: "Further options of the API, such as seed, top_k, num_gpu." },
  },
  async load({ api_key, base_url, model, context_window, models, config }) {
    const { keep_alive, options = {} } = config as Partial<RequestSettings>; // checked by the schema
    const { createBackend } = await import("./backend.ts");
    const windowOf = (id: string) =>
      models.find((known) => known.id === id)?.context_window ??
        (id === model ? context_window : undefined) ?? WINDOW;
    // the key in the variable is for another server than the local one
    const server = base_url === undefined ? { base_url: LOCAL } : { base_url, api_key };
    return createBackend(server, { windowOf, options, ...(keep_alive === undefined ? {} : { keep_alive }) });
  },
};

export const module: ModuleInfo = {
  id: "provider-ollama",
  name: "Ollama",
  version: "1.0.0",
  type: "provider",
  mount_point: "providers",
  description: "Local models through the API of an Ollama server.",
  config_schema: providerConfigSchema(DEFINITION),
};

/** Mounts the provider as `ollama`. */
export function mount(coordinator: Coordinator, config: JsonObject = {}): Promise<MountReturn> {
  const { base_url } = config;
  const url = typeof base_url === "string" ? { base_url: urlOf(base_url.trim()) } : {};
  return mountProvider(coordinator, { ...config, ...url }, DEFINITION);
}

/**
 * Returns the URL of a server. `OLLAMA_HOST` may be a host alone, have no port, or be the address on which
 * the server listens, such as `0.0.0.0`; a URL may end with the path of an API.
 */
function urlOf(host: string): string {
  const has_scheme = host.includes("://");
  const text = has_scheme ? host : `http://${host.startsWith(":") ? `127.0.0.1${host}` : host}`;
  if (!URL.canParse(text)) return host; // reported as it is
  const url = new URL(text);
  if (!has_scheme && !/:\d+$/.test(url.origin) && !/:80$/.test(host)) url.port = "11434";
  if (url.hostname === "0.0.0.0") url.hostname = "127.0.0.1";
  if (url.hostname === "[::]") url.hostname = "[::1]";
  return url.href.replace(/\/+$/, "").replace(/\/(api|v1)$/, ""); // of Ollama's own and of OpenAI's API
}
