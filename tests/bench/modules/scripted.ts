/**
 * The model, the tool and the hook of `run_bench.ts`. They do nothing, so that a measurement is the cost of
 * the runtime alone: each answer is made of constants, and the tool returns one.
 */
import type {
  ChatResponse,
  CompleteOptions,
  Coordinator,
  JsonObject,
  Module,
  Provider,
  Tool,
  ToolCall,
} from "preamp";

/** Argument of each call: 200 bytes with its name. */
export const ARGUMENTS = { query: "a".repeat(180) };
/** Result of each call: 1 KB. */
export const RESULT = { success: true, output: "r".repeat(1_000), error: null };
const NOOP = { name: "noop", arguments: ARGUMENTS };
const USAGE = { input_tokens: 10, output_tokens: 5, total_tokens: 15, cost_usd: null };

/** What the model does in one run. */
export interface Script {
  /** Answers with tool calls before the last answer. */
  readonly turns?: number;
  /** Calls of each of those answers. Default 1. */
  readonly calls?: number;
  /** What each call asks for. Default: {@link noop} with {@link ARGUMENTS}. */
  readonly call?: Pick<ToolCall, "name" | "arguments">;
  /** Deltas of 20 characters of the last answer; 0: it is not streamed. */
  readonly deltas?: number;
}

const DELTA = "A delta of 20 chars ";

/** Returns the text of a script's last answer. */
export function answerOf({ deltas = 0 }: Script): string {
  return deltas === 0 ? "It is 42." : DELTA.repeat(deltas);
}

/** Returns the model of one run. */
export function scriptedProvider(script: Script): Provider {
  const { turns = 0, deltas = 0 } = script;
  let answered = 0;
  const text = answerOf(script);
  return {
    name: "scripted",
    getInfo: () => ({
      id: "scripted",
      display_name: "Scripted",
      credential_env_vars: [],
      capabilities: ["streaming"],
      config_fields: [],
      defaults: { context_window: 100_000_000, max_output_tokens: 1_000 },
    }),
    listModels: () => Promise.resolve([]),
    parseToolCalls: (response: ChatResponse) => response.tool_calls ?? [],
    complete(_request, options?: CompleteOptions): Promise<ChatResponse> {
      const index = answered++;
      if (index < turns) return Promise.resolve(callingAnswer(index, script));
      for (let count = 0; count < deltas; count++) {
        options?.onDelta?.({ block_index: 0, block_type: "text", delta: DELTA });
      }
      return Promise.resolve({
        content: [{ type: "text", text }],
        usage: { ...USAGE },
        finish_reason: "stop",
      });
    },
  } as Provider;
}

function callingAnswer(index: number, { calls = 1, call = NOOP }: Script): ChatResponse {
  const tool_calls = Array.from({ length: calls }, (_, at) => ({
    id: `call_${index}_${at}`,
    name: call.name,
    arguments: { ...call.arguments },
  }));
  const content = tool_calls.map(({ id, name, arguments: input }) => ({
    type: "tool_call",
    id,
    name,
    input,
  }));
  return { content, tool_calls, usage: { ...USAGE }, finish_reason: "tool_calls" } as unknown as ChatResponse;
}

/** A tool that does nothing. */
export const noop: Tool = {
  name: "noop",
  description: "Does nothing",
  input_schema: { type: "object", properties: { query: { type: "string" } } },
  execute: () => Promise.resolve(RESULT),
};

/** The modules by id. The hook lets every event pass. */
export const SCRIPTED_MODULES: Readonly<Record<string, Module>> = {
  "provider-scripted": {
    mount: (coordinator: Coordinator, config: JsonObject) =>
      coordinator.mount("providers", scriptedProvider(config as Script)),
  },
  "tool-noop": { mount: (coordinator: Coordinator) => coordinator.mount("tools", noop) },
  "hooks-every": {
    mount(coordinator: Coordinator, { events }: JsonObject) {
      for (const event of events as string[]) {
        coordinator.hooks.register(event, () => Promise.resolve({ action: "continue" }));
      }
      return Promise.resolve();
    },
  },
} as unknown as Record<string, Module>;
