/** AI SDK: `generateText` and `streamText` with a tool. */
import { generateText, isStepCount, jsonSchema, type LanguageModel, streamText, tool } from "ai";
import type { JsonObject } from "../../../../src/sdk/types.ts";
import type { Script } from "../../modules/scripted.ts";
import { PROMPT } from "../../run_scenarios.ts";
import type { Contestant, Outcome } from "./contestant.ts";
import { createParts, type Parts, type Reply } from "./parts.ts";

type Model = Extract<LanguageModel, { specificationVersion: "v4" }>;
type Generated = Awaited<ReturnType<Model["doGenerate"]>>;
type StreamPart = Awaited<ReturnType<Model["doStream"]>>["stream"] extends ReadableStream<infer Part> ? Part
  : never;

/** Maximum steps; no script has as many. */
const STEPS = 10_000;

/** Creates the contestant. */
export function create(): Contestant {
  return { name: "AI SDK", run: (script) => script.deltas ? stream(script) : generate(script) };
}

async function generate(script: Script): Promise<Outcome> {
  const parts = createParts(script);
  const { text } = await generateText({ ...settingsOf(parts), prompt: PROMPT });
  return parts.outcome(text);
}

async function stream(script: Script): Promise<Outcome> {
  const parts = createParts(script);
  let [deltas, text] = [0, ""];
  for await (const delta of streamText({ ...settingsOf(parts), prompt: PROMPT }).textStream) {
    deltas++;
    text += delta;
  }
  return parts.outcome(text, deltas);
}

function settingsOf(parts: Parts) {
  const noop = tool({
    description: parts.tool.description,
    inputSchema: jsonSchema<JsonObject>(parts.tool.schema),
    execute: () => parts.tool.execute(),
  });
  return { model: modelOf(parts), tools: { noop }, stopWhen: isStepCount(STEPS), maxRetries: 0 };
}

function modelOf(parts: Parts): Model {
  return {
    specificationVersion: "v4",
    provider: "mock",
    modelId: "mock-model",
    supportedUrls: {},
    async doGenerate() {
      const reply = await parts.reply();
      return { content: contentOf(reply), ...endOf(reply), warnings: [] };
    },
    doStream: () => Promise.resolve({ stream: streamOf(parts) }),
  };
}

function streamOf(parts: Parts): ReadableStream<StreamPart> {
  return new ReadableStream<StreamPart>({
    async start(controller) {
      controller.enqueue({ type: "stream-start", warnings: [] });
      controller.enqueue({ type: "text-start", id: "0" });
      const reply = await parts.reply((delta) => controller.enqueue({ type: "text-delta", id: "0", delta }));
      controller.enqueue({ type: "text-end", id: "0" });
      controller.enqueue({ type: "finish", ...endOf(reply) });
      controller.close();
    },
  });
}

function contentOf({ text, calls }: Reply): Generated["content"] {
  if (calls.length === 0) return [{ type: "text", text }];
  return calls.map(({ id, name, json }) => ({
    type: "tool-call",
    toolCallId: id,
    toolName: name,
    input: json,
  }));
}

function endOf({ calls, input_tokens, output_tokens }: Reply): Pick<Generated, "finishReason" | "usage"> {
  return {
    finishReason: { unified: calls.length > 0 ? "tool-calls" : "stop", raw: undefined },
    usage: {
      inputTokens: { total: input_tokens, noCache: input_tokens, cacheRead: 0, cacheWrite: 0 },
      outputTokens: { total: output_tokens, text: output_tokens, reasoning: 0 },
    },
  };
}
