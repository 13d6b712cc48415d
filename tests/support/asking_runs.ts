/** Runs that ask a person before their tool call. */
import type { PreampError } from "../../src/sdk/errors.ts";
import type { HookResult, JsonObject } from "../../src/sdk/types.ts";
import { assertRejects } from "../assert.ts";
import { CALLER, service, type ServiceOptions, type TestPlan } from "./runs.ts";
import { calls, hook, tool } from "./sessions.ts";

/** Resolves to the code of the error with which `run` rejects. */
export async function codeOf(run: () => Promise<unknown>): Promise<string> {
  return (await assertRejects(run) as PreampError).code;
}

/** Returns a plan whose one tool call asks first; `result` changes the question. */
export const asking = (result: Partial<HookResult> & JsonObject = {}): TestPlan => ({
  providers: [[calls(["t", { a: 1 }]), "done"]],
  tools: [tool("t")],
  hooks: [
    hook("tool:pre", () => ({ action: "ask_user", approval_prompt: "Allow t?", ...result }) as HookResult),
  ],
});

/** Returns a value as JSON has it. */
export const plain = (value: unknown) => JSON.parse(JSON.stringify(value));

/** Starts a run; resolves to it, and its approval, once it awaits the approval. */
export async function waiting(plan: TestPlan = asking(), options: ServiceOptions = {}) {
  const made = service({ plans: { asking: plan }, ...options });
  const handle = await made.post("asking");
  const { approvals: [approval] } = await handle.settled("attention");
  const decide = (decision: string, more: { reason?: string; args_hash?: string } = {}, id = approval!.id) =>
    made.runs.decide(CALLER, handle.id, id, { decision, ...more });
  return { ...made, handle, approval: approval!, decide };
}
