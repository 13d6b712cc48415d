/** The model and the tool of every library: those of the scenarios, which do nothing, in a form that suits them all. */
import type { JsonObject } from "../../../../src/sdk/types.ts";
import { ARGUMENTS, noop, RESULT, type Script, scriptedProvider } from "../../modules/scripted.ts";
import type { Outcome } from "./contestant.ts";

/** One answer of the model. */
export interface Reply {
  readonly text: string;
  readonly calls: readonly {
    readonly id: string;
    readonly name: string;
    readonly input: JsonObject;
    /** `input` as JSON, the form in which vendors send it. */
    readonly json: string;
  }[];
  readonly input_tokens: number;
  readonly output_tokens: number;
}

/** The model and the tool of one run. */
export interface Parts {
  /** Resolves to the next scripted answer; `onDelta` receives its text deltas. */
  reply(onDelta?: (delta: string) => void): Promise<Reply>;
  /** Returns what the run did. */
  outcome(text: string, deltas?: number): Outcome;
  readonly tool: {
    readonly name: string;
    readonly description: string;
    readonly schema: JsonObject;
    execute(): Promise<string>;
  };
}

const ARGUMENTS_JSON = JSON.stringify(ARGUMENTS);

/** Creates the model and the tool of one run. */
export function createParts(script: Script): Parts {
  const provider = scriptedProvider(script);
  let [answers, executed] = [0, 0];
  return {
    async reply(onDelta) {
      answers++;
      const { content, tool_calls = [], usage } = await provider.complete({ messages: [] }, {
        onDelta: ({ delta }) => onDelta?.(delta ?? ""),
      });
      const [block] = content;
      return {
        text: block?.type === "text" ? String(block.text) : "",
        calls: tool_calls.map(({ id, name, arguments: input }) => ({
          id,
          name,
          input,
          json: ARGUMENTS_JSON,
        })),
        input_tokens: usage?.input_tokens ?? 0,
        output_tokens: usage?.output_tokens ?? 0,
      };
    },
    outcome: (text, deltas = 0) => ({ answers, executed, deltas, text }),
    tool: {
      name: noop.name,
      description: noop.description,
      schema: noop.input_schema as JsonObject,
      execute() {
        executed++;
        return Promise.resolve(RESULT.output);
      },
    },
  };
}
