/** pi: an `Agent` whose stream function returns the scripted answers. */
import { Agent, type AgentTool } from "@earendil-works/pi-agent-core";
import {
  type AssistantMessage,
  type AssistantMessageEventStream,
  createAssistantMessageEventStream,
  type Model,
  type ToolCall,
  type TSchema,
} from "@earendil-works/pi-ai";
import { PROMPT } from "../../run_scenarios.ts";
import type { Script } from "../../modules/scripted.ts";
import type { Contestant, Outcome } from "./contestant.ts";
import { createParts, type Parts, type Reply } from "./parts.ts";

const COST = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
const MODEL: Model<"scripted"> = {
  id: "scripted",
  name: "Scripted",
  api: "scripted",
  provider: "scripted",
  baseUrl: "",
  reasoning: false,
  input: ["text"],
  cost: COST,
  contextWindow: 100_000_000,
  maxTokens: 1_000,
};

/** Creates the contestant. */
export function create(): Contestant {
  return { name: "pi", run };
}

async function run(script: Script): Promise<Outcome> {
  const parts = createParts(script);
  const agent = new Agent({
    initialState: { model: MODEL, tools: [toolOf(parts)] },
    streamFn: () => streamOf(parts),
  });
  let deltas = 0;
  agent.subscribe((event) => {
    if (event.type === "message_update" && event.assistantMessageEvent.type === "text_delta") deltas++;
  });
  await agent.prompt(PROMPT);
  const last = agent.state.messages.at(-1) as AssistantMessage;
  if (last.errorMessage) throw new Error(`Cannot measure: ${last.errorMessage}`);
  return parts.outcome(textIn(last), deltas);
}

function toolOf({ tool }: Parts): AgentTool {
  return {
    name: tool.name,
    label: tool.name,
    description: tool.description,
    parameters: tool.schema as unknown as TSchema, // a JSON schema, which pi takes too
    execute: async () => ({ content: [{ type: "text", text: await tool.execute() }], details: {} }),
  };
}

function streamOf(parts: Parts): AssistantMessageEventStream {
  const stream = createAssistantMessageEventStream();
  const partial = messageOf({ text: "", calls: [], input_tokens: 0, output_tokens: 0 });
  stream.push({ type: "start", partial });
  parts.reply((delta) => stream.push({ type: "text_delta", contentIndex: 0, delta, partial })).then(
    (reply) => {
      const message = messageOf(reply);
      stream.push({ type: "done", reason: reply.calls.length > 0 ? "toolUse" : "stop", message });
    },
  );
  return stream;
}

function messageOf({ text, calls, input_tokens, output_tokens }: Reply): AssistantMessage {
  return {
    role: "assistant",
    content: calls.length > 0
      ? calls.map(({ id, name, input }) => ({
        type: "toolCall",
        id,
        name,
        arguments: input as ToolCall["arguments"],
      }))
      : [{ type: "text", text }],
    api: MODEL.api,
    provider: MODEL.provider,
    model: MODEL.id,
    usage: {
      input: input_tokens,
      output: output_tokens,
      cacheRead: 0,
      cacheWrite: 0,
      totalTokens: input_tokens + output_tokens,
      cost: { ...COST, total: 0 },
    },
    stopReason: calls.length > 0 ? "toolUse" : "stop",
    timestamp: Date.now(),
  };
}

function textIn({ content }: AssistantMessage): string {
  return content.map((block) => block.type === "text" ? block.text : "").join("");
}
