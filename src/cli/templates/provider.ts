/**
 * Template of a provider that echoes: metadata, streaming, usage, cancellation, and a function to replace.
 */
import type { Template } from "../commands/module_new.ts";

export const template: Template = {
  about: "Answers with the last message. Replace `ask` with a call of your backend.",
  plan: `providers:
  - module: __ID__
    source: ./__ID__/mod.ts
    config: { prefix: "You said: " }`,
  config: [["prefix", "text", "text before the echo, default none"]],
  module: `/** \`__ID__\`: answers with the last message. */
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

/** Mounts the provider \`__NAME__\`. Without its API key a provider returns null and is skipped. */
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

/** Calls the backend. Replace it with \`fetch(url, { signal })\`; throw an LLMError of a fitting type. */
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
`,
  test: `import assert from "node:assert/strict";
import { TestCoordinator, testProvider } from "preamp/testing";
import * as module from "./mod.ts";

testProvider("__ID__", () => module);

Deno.test("mount() mounts the provider __NAME__", async () => {
  const coordinator = new TestCoordinator();
  await module.mount(coordinator, {});
  const [mounted] = coordinator.mount_history;
  assert.equal(mounted?.mount_point, "providers");
  assert.equal(mounted?.name, "__NAME__");
});

Deno.test("__NAME__ answers with the last message", async () => {
  const coordinator = new TestCoordinator();
  await module.mount(coordinator, { prefix: "You said: " });
  const response = await coordinator.providers.__NAME__!.complete({
    messages: [{ role: "user", content: "Good morning" }],
  });
  assert.deepEqual(response.content, [{ type: "text", text: "You said: Good morning" }]);
});
`,
};
