import { SessionStatus } from "../../src/sdk/session_status.ts";
import type { JsonObject } from "../../src/sdk/json.ts";
import { assertEquals } from "../assert.ts";
import { hook, tool } from "../support/sessions.ts";
import { CALLER, service, type TestPlan } from "../support/runs.ts";
import { mock, runToEnd } from "./play.ts";

const call = (name: string, id: string) => ({ name, arguments: {}, id });

/** Returns a plan whose first response calls tools that succeed, fail, throw, are denied and do not exist. */
function busy(statuses: JsonObject[]): TestPlan {
  return {
    providers: [mock(
      { tool_calls: ["good", "bad", "throws", "denied", "nowhere"].map((name) => call(name, `c_${name}`)) },
      "First.",
      "Second.",
    )],
    tools: [
      tool("good"),
      tool("bad", () => ({ success: false, error: { message: "no" } })),
      tool("throws", () => {
        throw new Error("broken");
      }),
      tool("denied"),
    ],
    hooks: [
      hook("tool:pre", (_event, { tool_name }) => tool_name === "denied" ? { action: "deny" } : null),
      (coordinator) => {
        coordinator.hooks.register("orchestrator:complete", async () => {
          statuses.push((await coordinator.sessionStatus()).toDict());
        });
      },
    ],
  };
}

const numbers = (
  { status, total_messages, tool_invocations, tool_successes, tool_failures, ...rest }: JsonObject,
) => {
  const { total_input_tokens, total_output_tokens, ended_at } = rest;
  return [
    status,
    total_messages,
    tool_invocations,
    tool_successes,
    tool_failures,
    total_input_tokens,
    total_output_tokens,
    ended_at !== undefined,
  ];
};

Deno.test("the status of a session has correct counters over all of its runs", async () => {
  const statuses: JsonObject[] = [];
  const made = service({ plans: { plan: busy(statuses) } });
  const first = await runToEnd(made, (await made.post("plan")).id, { plan: {} });
  const { session_id } = first;
  const after = async () => (await made.runs.sessions.get(CALLER, session_id)).status;
  // user, assistant, five results, assistant; denied and unknown calls did not run
  const { input_tokens, output_tokens } = first.usage;
  assertEquals(numbers(await after()), ["completed", 8, 3, 1, 2, input_tokens, output_tokens, true]);
  const second = await runToEnd(made, (await made.post(null, { session_id })).id, { plan: {} });
  const input = input_tokens + second.usage.input_tokens;
  const output = output_tokens + second.usage.output_tokens;
  assertEquals(numbers(await after()), ["completed", 10, 3, 1, 2, input, output, true]);
  assertEquals(statuses.map(numbers), [
    ["running", 8, 3, 1, 2, input_tokens, output_tokens, false],
    ["running", 10, 3, 1, 2, input, output, false],
  ]);
  const [listed] = (await made.runs.sessions.list(CALLER, {})).data;
  assertEquals(listed?.status, await after());
  const fork = await made.runs.sessions.fork(CALLER, session_id);
  assertEquals(numbers(fork.status), ["completed", 10, 0, 0, 0, 0, 0, true]);
});

Deno.test("the status of a session has the outcome of its last run", async () => {
  const failing = mock({ error: { type: "AuthenticationError", message: "bad key", status_code: 401 } });
  const made = service({ plans: { plan: { providers: [failing] } } });
  const { session_id, error } = await runToEnd(made, (await made.post("plan")).id, { plan: {} });
  const { status } = await made.runs.sessions.get(CALLER, session_id);
  assertEquals([status.status, status.last_error], ["failed", { ...error }]);
  assertEquals(SessionStatus({ session_id, ...status }).toDict(), status);
});
