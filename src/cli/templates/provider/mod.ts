/** `__ID__`: answers with the last message. */
import {
  type ChatRequest,
  type ChatResponse,
  type Coordinator,
  defineProvider,
  estimateTokens,
  type JsonObject,
  LLMError,
  ModelInfo,
  type ModuleInfo,
  type MountReturn,
  ProviderInfo,
  readConfig,
  textOf,
  Usage,
} from "preamp";

const CONFIG_SCHEMA = {
  type: "object",
  properties: { prefix: { type: "string", default: "", description: "Text before the echo" } },
};

/** The metadata of this module. */
export const module: ModuleInfo = {
  id: "__ID__",
  type: "provider",
  version: "0.1.0",
  description: "Answers with the last message.",
  config_schema: CONFIG_SCHEMA,
  permissions: {}, // a provider with a backend needs { net: ["api.example.com"] }
};

const WINDOW = { context_window: 100_000, max_output_tokens: 4096 };

/** Mounts the provider `__NAME__`. Without its API key a provider returns null and is skipped. */
export async function mount(coordinator: Coordinator, config: JsonObject): Promise<MountReturn> {
  const { prefix } = readConfig<{ prefix: string }>(CONFIG_SCHEMA, config);

  const provider = defineProvider({
    name: "__NAME__",
    getInfo: () => ProviderInfo({ id: "__NAME__", capabilities: ["streaming"], defaults: WINDOW }),
    listModels: () => Promise.resolve([ModelInfo({ id: "echo-1", ...WINDOW })]),
    async complete(request, { signal, onDelta } = {}) {
      const text = prefix + await ask(request, signal);
      onDelta?.({ block_index: 0, block_type: "text", delta: text });
      return answer(request, text);
    },
    parseToolCalls: (response) => response.tool_calls ?? [],
  });

  await coordinator.mount("providers", provider, provider.name);
  return { name: module.id, version: module.version, provides: [provider.name] };
}

/** Calls the backend. Replace it with `fetch(url, { signal })`; throw an LLMError of a fitting type. */
function ask({ messages }: ChatRequest, signal?: AbortSignal): Promise<string> {
  if (signal?.aborted) {
    throw new LLMError("AbortError", "The call was cancelled", { cause: signal.reason });
  }
  return Promise.resolve(textOf(messages.at(-1)?.content));
}

function answer(request: ChatRequest, text: string): ChatResponse {
  const input_tokens = estimateTokens(request.messages.map(({ content }) => textOf(content)).join(" "));
  const output_tokens = estimateTokens(text);
  return {
    content: [{ type: "text", text }],
    finish_reason: "stop",
    usage: Usage({ input_tokens, output_tokens }),
  };
}
