/** Limits that pause: a person is asked to raise the limit of the run, and the step is tried again. */
import { Usage } from "../../src/sdk/messages.ts";
import type { Provider, RunLimits } from "../../src/sdk/types.ts";
import { assertEquals, assertStringIncludes } from "../assert.ts";
import { type Answer, calls, type Kit, kit, type KitOptions, tool } from "../support/sessions.ts";

const CALLS = [calls(["t", { n: 1 }]), calls(["t", { n: 2 }]), calls(["t", { n: 3 }]), "done"];

/** Creates a session whose answers are "allow", each with the limits that it raises, or "deny". */
function pausing(
  limits: Partial<RunLimits>,
  answers: (Partial<RunLimits> | "deny")[],
  more: KitOptions = {},
) {
  const left = [...answers];
  const answer: Answer = () => {
    const next = left.shift() ?? "deny";
    if (next === "deny") return { decision: "deny" };
    made.run_limits.raise(next);
    return { decision: "allow", decided_by: "key:ci" };
  };
  const made: Kit = kit({
    providers: [CALLS],
    tools: [tool("t", () => "ran")],
    limits: { on_limit: "pause", ...limits },
    raisable: true,
    answers: [answer],
    ...more,
  });
  return made;
}

Deno.test("a run waits at max_tool_calls, and continues with the limit that a person raised", async () => {
  const made = pausing({ max_tool_calls: 1 }, [{ max_tool_calls: 2 }, { max_tool_calls: 9 }]);
  const outcome = await made.run();
  assertEquals([outcome.status, outcome.output_text], ["completed", "done"]);
  assertEquals(made.asked.map(({ action, limit }) => [action, limit]), [
    ["raise_limit", { name: "max_tool_calls", value: 1, used: 1, next: null }],
    ["raise_limit", { name: "max_tool_calls", value: 2, used: 2, next: null }],
  ]);
  assertEquals(made.data("tool:post").length, 3);
  assertEquals(made.data("approval:granted").length, 2);
});

Deno.test("the loop keeps no call for a wrap-up where max_iterations can be raised", async () => {
  const made = pausing({ max_iterations: 2 }, [{ max_iterations: 10 }]);
  assertEquals((await made.run()).output_text, "done");
  assertEquals(made.asked[0]?.limit?.name, "max_iterations");
  assertEquals(made.asked[0]?.limit?.used, 2);
});

Deno.test("a question about dollars says what the next call costs at most", async () => {
  let answered = 0;
  const priced = {
    name: "priced",
    getInfo: () => ({
      id: "priced",
      display_name: "Priced",
      credential_env_vars: [],
      capabilities: [],
      defaults: { max_output_tokens: 1000 },
      config_fields: [],
    }),
    getModelInfo: () => ({ id: "m", prices: { input: "0", output: "2" } }),
    listModels: () => Promise.resolve([]),
    parseToolCalls: ({ tool_calls = [] }) => tool_calls,
    complete: () => {
      const usage = Usage({ input_tokens: 10, output_tokens: 10, cost_usd: "0.4" });
      const call = { id: `call_${answered}`, name: "t", arguments: { n: answered } };
      return Promise.resolve(
        answered++ < 2
          ? { content: [], tool_calls: [call], usage }
          : { content: [{ type: "text", text: "done" }], usage },
      );
    },
  } as Partial<Provider> as Provider;
  const made = pausing({ max_cost_usd: "0.5" }, [{ max_cost_usd: "2" }], { providers: [priced] });
  assertEquals((await made.run()).output_text, "done");
  const { limit, prompt } = made.asked[0]!;
  assertEquals([limit?.value, limit?.used, limit?.next?.cost_usd], ["0.5", "0.8", "0.002"]);
  assertStringIncludes(prompt, "0.8 of 0.5 US dollars are used");
  assertStringIncludes(prompt, "0.002 US dollars");
});

Deno.test("calls at once that reach a limit ask one question", async () => {
  const made = pausing({ max_tool_calls: 1 }, [{ max_tool_calls: 3 }], {
    providers: [[calls(["t", { n: 1 }], ["t", { n: 2 }], ["t", { n: 3 }]), "done"]],
  });
  assertEquals((await made.run()).output_text, "done");
  assertEquals([made.asked.length, made.data("tool:post").length], [1, 3]);
});

for (
  const [why, options] of [
    ["a person denies", {}],
    ["no one can be asked", { answers: ["unavailable"] }],
    ["no one answers in time", { answers: ["never"] }],
    ["the policy allows no more", { raisable: false }],
    ["the plan does not say pause", { limits: { max_tool_calls: 1 } }],
  ] as [string, KitOptions][]
) {
  Deno.test(`a run ends at its limit as before when ${why}`, async () => {
    const made = pausing({ max_tool_calls: 1 }, [], options);
    const running = made.run();
    for (let tick = 0; tick < 4; tick++) await made.clock.advance(100_000);
    const outcome = await running;
    assertEquals([outcome.status, outcome.stop_reason], ["incomplete", "limit:max_tool_calls"]);
    assertEquals(made.data("tool:post").length, 1);
  });
}

Deno.test("waiting at a limit does not count for max_duration_s, and a cancelled run ends", async () => {
  const made = pausing({ max_tool_calls: 1, max_duration_s: 60 }, [], { answers: ["never"] });
  const running = made.run();
  await made.clock.advance(200_000);
  assertEquals([made.asked.length, made.data("approval:denied").length], [1, 0]);
  await made.session.cancel("immediate");
  assertEquals((await running).status, "cancelled");
});
