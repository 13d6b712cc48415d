/** OpenAI Agents: a `Runner` with a model that returns the scripted answers; tracing is off. */
import {
  Agent,
  type AssistantMessageItem,
  type FunctionCallItem,
  type Model,
  Runner,
  setTracingDisabled,
  type StreamEvent,
  tool,
  Usage,
} from "@openai/agents";
import type { Script } from "../../modules/scripted.ts";
import { PROMPT } from "../../run_scenarios.ts";
import type { Contestant, Outcome } from "./contestant.ts";
import { createParts, type Parts, type Reply } from "./parts.ts";

/** Maximum turns; no script has as many. */
const TURNS = 10_000;

/** Creates the contestant. */
export function create(): Contestant {
  setTracingDisabled(true);
  const runner = new Runner({ tracingDisabled: true });
  return {
    name: "OpenAI Agents",
    run: (script) => script.deltas ? stream(runner, script) : complete(runner, script),
  };
}

async function complete(runner: Runner, script: Script): Promise<Outcome> {
  const parts = createParts(script);
  const { finalOutput } = await runner.run(agentOf(parts), PROMPT, { maxTurns: TURNS });
  return parts.outcome(finalOutput ?? "");
}

async function stream(runner: Runner, script: Script): Promise<Outcome> {
  const parts = createParts(script);
  const result = await runner.run(agentOf(parts), PROMPT, { maxTurns: TURNS, stream: true });
  let [deltas, text] = [0, ""];
  for await (const delta of result.toTextStream()) {
    deltas++;
    text += delta;
  }
  await result.completed;
  return parts.outcome(text, deltas);
}

function agentOf(parts: Parts) {
  const noop = tool({
    name: parts.tool.name,
    description: parts.tool.description,
    parameters: {
      type: "object",
      properties: {},
      required: [],
      additionalProperties: true,
      ...parts.tool.schema,
    },
    strict: false,
    execute: () => parts.tool.execute(),
  });
  return new Agent({ name: "bench", model: modelOf(parts), tools: [noop] });
}

function modelOf(parts: Parts): Model {
  return {
    async getResponse() {
      const reply = await parts.reply();
      return { usage: usageOf(reply), output: outputOf(reply) };
    },
    async *getStreamedResponse(): AsyncGenerator<StreamEvent> {
      const queue: string[] = [];
      let wake = () => {};
      let done = false;
      const replied = parts.reply((delta) => {
        queue.push(delta);
        wake();
      }).finally(() => {
        done = true;
        wake();
      });
      yield { type: "response_started" };
      while (!done || queue.length > 0) {
        const delta = queue.shift();
        if (delta !== undefined) yield { type: "output_text_delta", delta };
        else await new Promise<void>((resolve) => wake = resolve);
      }
      const reply = await replied;
      const { inputTokens, outputTokens, totalTokens } = usageOf(reply);
      yield {
        type: "response_done",
        response: { id: "resp", usage: { inputTokens, outputTokens, totalTokens }, output: outputOf(reply) },
      };
    },
  };
}

function usageOf({ input_tokens, output_tokens }: Reply): Usage {
  return new Usage({
    inputTokens: input_tokens,
    outputTokens: output_tokens,
    totalTokens: input_tokens + output_tokens,
  });
}

function outputOf({ text, calls }: Reply): (AssistantMessageItem | FunctionCallItem)[] {
  if (calls.length === 0) {
    return [{
      type: "message",
      role: "assistant",
      status: "completed",
      content: [{ type: "output_text", text }],
    }];
  }
  return calls.map(({ id, name, json }) => ({
    type: "function_call",
    callId: id,
    name,
    status: "completed",
    arguments: json,
  }));
}
