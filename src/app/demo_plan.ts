/** The plan that runs when a request names none: no key, no account; a tool call and an approval to look at. */
import type { JsonObject } from "../sdk/types.ts";

/** The plan of requests that name none. It needs no key or account, and has a tool call and an approval. */
export const DEMO_PLAN: JsonObject = {
  session: { orchestrator: "loop-streaming", context: "context-simple" },
  system: "You are the demo agent of Preamp. Be brief.",
  providers: ["provider-mock"],
  tools: ["tool-calculator", "tool-todo"],
  hooks: [{ module: "hooks-approval", config: { rules: [{ tool: "calculator", action: "ask" }] } }],
};
