/** A provider that echoes: metadata, streaming, usage, cancellation, and the place where a backend is asked. */
import type { Template } from "./template.ts";

/** The template. */
export const template: Template = {
  about: "Answers with the last message; put your backend in its place.",
  plan: `providers:
  - module: __ID__
    source: ./__ID__/mod.ts
    config: { prefix: "You said: " }`,
  config: [["prefix", "text", "what comes before the echo, default none"]],
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
  textOf,
  Usage,
} from "preamp";

/** What this module says of itself. */
export const module: ModuleInfo = {
  id: "__ID__",
  type: "provider",
  version: "0.1.0",
  description: "Answers with the last message.",
  config_schema: {
    type: "object",
    properties: { prefix: { type: "string", default: "", description: "Comes before the echo" } },
  },
  permissions: {}, // a wish list: a provider with a backend asks for { net: ["api.example.com"] }
};

const WINDOW = { context_window: 100_000, max_output_tokens: 4096 };

/** Mounts the provider \`__NAME__\`. One that lacks its key returns null: it is skipped as not configured. */
export async function mount(coordinator: Coordinator, config: JsonObject): Promise<MountReturn> {
  const { prefix = "" } = config;
  if (typeof prefix !== "string") {
    throw new TypeError(
      \`Cannot mount "\${module.id}": config.prefix must be text: received \${typeof prefix}\`,
    );
  }

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

/** Asks the backend. Yours calls \`fetch(url, { signal })\` and throws an LLMError of the type that its answer means. */
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
