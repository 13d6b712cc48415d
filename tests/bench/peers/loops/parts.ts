/** The model and the tool of every loop: provider-mock and the calculator, called directly. */
import { mountParts } from "../../bare_loop.ts";
import type { ProbeClock } from "../../loop_scripts.ts";
import type { ChatResponse, JsonObject, JsonSchema } from "../../../../src/sdk/types.ts";
import { toToolResult } from "../../../../src/sdk/tools.ts";

/** One answer of the model, in a form that suits every library. */
export interface Reply {
  readonly text: string;
  readonly calls: readonly { readonly id: string; readonly name: string; readonly input: JsonObject }[];
  readonly input_tokens: number;
  readonly output_tokens: number;
}

/** The model and the tool of one run. */
export interface Parts {
  /** Resolves to the next scripted answer; `onDelta` receives its text deltas. */
  reply(onDelta?: (delta: string) => void): Promise<Reply>;
  /** Returns the outcome. @throws {Error} when the tool did not run once after each model call but the last. */
  outcome(text: string): { iterations: number; text: string };
  readonly tool: {
    readonly name: string;
    readonly description: string;
    readonly schema: JsonSchema;
    execute(input: JsonObject): Promise<string>;
  };
}

/** Creates the model and the tool of one run. The model gets no history, because the script does not depend on it. */
export async function createParts(config: JsonObject, clock: ProbeClock): Promise<Parts> {
  const { provider, tool } = await mountParts(config, clock);
  let [calls, executed] = [0, 0];
  return {
    async reply(onDelta) {
      calls++;
      const response = await provider.complete({ messages: [] }, {
        onDelta: ({ block_type, delta }) => {
          if (block_type === "text" && delta !== undefined) onDelta?.(delta);
        },
      });
      return replyOf(response);
    },
    outcome(text) {
      if (executed === calls - 1) return { iterations: calls, text };
      throw new Error(`Cannot measure: the tool must run ${calls - 1} times: received ${executed}`);
    },
    tool: {
      name: tool.name,
      description: tool.description,
      schema: tool.input_schema ?? {},
      async execute(input) {
        executed++;
        return toToolResult(await tool.execute(input)).getSerializedOutput();
      },
    },
  };
}

function replyOf({ content, tool_calls, usage }: ChatResponse): Reply {
  const [block] = content;
  return {
    text: block?.type === "text" ? String(block.text) : "",
    calls: (tool_calls ?? []).map(({ id, name, arguments: input }) => ({ id, name, input })),
    input_tokens: usage?.input_tokens ?? 0,
    output_tokens: usage?.output_tokens ?? 0,
  };
}
