/** A session with one tool call that needs approval. */
import type { HookResult, JsonObject } from "../../src/sdk/types.ts";
import { type Answer, calls, hook, type Kit, kit, type KitOptions, tool } from "../support/sessions.ts";

/** Result of a hook that asks for approval of the call. */
export const ASK = { action: "ask_user", approval_prompt: "Allow t?" } satisfies HookResult;

/** Its kit, with the inputs that the tool ran with, and the last result in the history. */
export interface AskingSession extends Kit {
  inputs: JsonObject[];
  lastResult(): unknown;
}

/** Creates a session with one tool call that needs approval. */
export function asking(
  answers: readonly Answer[],
  result: HookResult = ASK,
  more: KitOptions = {},
): AskingSession {
  const inputs: JsonObject[] = [];
  const made = kit({
    providers: [[calls(["t", { a: 1 }]), "done"]],
    tools: [tool("t", (input) => {
      inputs.push(input);
      return "ran";
    }, { risk: "high" })],
    hooks: [hook("tool:pre", () => result)],
    answers,
    ...more,
  });
  const lastResult = () => made.messages().findLast((message) => message.role === "tool")?.content;
  return { ...made, inputs, lastResult };
}
