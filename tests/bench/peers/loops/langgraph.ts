/** LangGraph: `createReactAgent` with a chat model that returns the scripted answers. */
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, AIMessageChunk, type BaseMessage } from "@langchain/core/messages";
import { ChatGenerationChunk, type ChatResult } from "@langchain/core/outputs";
import type { CallbackManagerForLLMRun } from "@langchain/core/callbacks/manager";
import { tool } from "@langchain/core/tools";
import { createReactAgent } from "@langchain/langgraph/prebuilt";
import type { Script } from "../../modules/scripted.ts";
import { PROMPT } from "../../run_scenarios.ts";
import type { Contestant, Outcome } from "./contestant.ts";
import { createParts, type Parts, type Reply } from "./parts.ts";

/** Maximum supersteps, two for each iteration; no script has as many. */
const RECURSION_LIMIT = 20_000;

const INPUT = { messages: [{ role: "user", content: PROMPT }] };

/** Creates the contestant. */
export function create(): Contestant {
  return { name: "LangGraph", run: (script) => script.deltas ? stream(script) : invoke(script) };
}

async function invoke(script: Script): Promise<Outcome> {
  const parts = createParts(script);
  const { messages } = await agentOf(parts).invoke(INPUT, { recursionLimit: RECURSION_LIMIT });
  return parts.outcome(messages.at(-1)?.text ?? "");
}

async function stream(script: Script): Promise<Outcome> {
  const parts = createParts(script);
  const options = { recursionLimit: RECURSION_LIMIT, streamMode: "messages" as const };
  let [deltas, text] = [0, ""];
  for await (const [message] of await agentOf(parts).stream(INPUT, options)) {
    deltas++;
    text += message.text;
  }
  return parts.outcome(text, deltas);
}

function agentOf(parts: Parts) {
  const noop = tool(() => parts.tool.execute(), {
    name: parts.tool.name,
    description: parts.tool.description,
    schema: parts.tool.schema,
  });
  return createReactAgent({ llm: new ScriptedModel(parts), tools: [noop] });
}

class ScriptedModel extends BaseChatModel {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    super({ maxRetries: 0 });
    this.#parts = parts;
  }

  override _llmType(): string {
    return "mock";
  }

  /** Does nothing: the script does not depend on the tools. */
  override bindTools(): this {
    return this;
  }

  override async _generate(): Promise<ChatResult> {
    const reply = await this.#parts.reply();
    return { generations: [{ text: reply.text, message: new AIMessage(messageOf(reply)) }] };
  }

  override async *_streamResponseChunks(
    _messages: BaseMessage[],
    _options: this["ParsedCallOptions"],
    runManager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    const queue: string[] = [];
    let wake = () => {};
    let done = false;
    const reply = this.#parts.reply((delta) => {
      queue.push(delta);
      wake();
    }).finally(() => {
      done = true;
      wake();
    });
    while (!done || queue.length > 0) {
      const text = queue.shift();
      if (text === undefined) {
        await new Promise<void>((resolve) => wake = resolve);
        continue;
      }
      yield new ChatGenerationChunk({ text, message: new AIMessageChunk(text) });
      await runManager?.handleLLMNewToken(text);
    }
    await reply;
  }
}

function messageOf({ text, calls, input_tokens, output_tokens }: Reply) {
  return {
    content: text,
    tool_calls: calls.map(({ id, name, input }) => ({ id, name, args: input, type: "tool_call" as const })),
    usage_metadata: { input_tokens, output_tokens, total_tokens: input_tokens + output_tokens },
  };
}
