import fc from "fast-check";
import { checkPlan } from "../../../src/plan/check/check.ts";
import { policyFromData } from "../../../src/policy/parse_policy.ts";
import { checkBody, validateCommonRequest } from "../../../src/server/body/validation.ts";
import { assertEquals, assertMatch, assertStringIncludes, assertThrows } from "../../assert.ts";
import { bodyOf, PLAN, testApp } from "../../support/http.ts";

Deno.test("validateCommonRequest() accepts only what the schema accepts, with the same result", async () => {
  const names = ["prompt", "plan", "plan_ref", "session_id", "background", "metadata", "limits", "promt"];
  const value = fc.oneof(
    fc.constantFrom<unknown>("Hello", " ", "", true, 1, null, {}, { a: 1 }, [], [{
      type: "text",
      text: "Hi",
    }]),
    fc.string(),
  );
  const request = fc.uniqueArray(fc.constantFrom(...names), { maxLength: 4 }).chain((keys) =>
    fc.tuple(...keys.map((key) => fc.tuple(fc.constant(key), value))).map((fields) =>
      Object.fromEntries(fields)
    )
  );
  await fc.assert(fc.asyncProperty(request, async (fields) => {
    const data = validateCommonRequest(fields);
    if (data !== undefined) assertEquals(data, await checkBody("RunRequest", fields));
  }));
  const usual = {
    prompt: "Hello",
    plan: { session: {} },
    session_id: "ses_1",
    background: true,
    metadata: {},
  };
  assertEquals(validateCommonRequest(usual), usual as unknown as ReturnType<typeof validateCommonRequest>);
});

Deno.test("validateCommonRequest() returns undefined for invalid and uncommon bodies", () => {
  const left: unknown[] = [
    null,
    "Hello",
    [],
    {},
    { plan: {} },
    { prompt: "" },
    { prompt: " \n" },
    { prompt: [] },
    { prompt: "Hello", promt: "Hello" },
    { prompt: "Hello", limits: {} },
    { prompt: "Hello", plan: [] },
    { prompt: "Hello", plan: {}, plan_ref: "default" },
    { prompt: "Hello", session_id: "" },
    { prompt: "Hello", background: "yes" },
    { prompt: "Hello", metadata: null },
    { prompt: "Hello", toString: "x" },
  ];
  for (const value of left) assertEquals([value, validateCommonRequest(value)], [value, undefined]);
});

for (
  const [name, body, path] of [
    ["no prompt", {}, "prompt"],
    ["a blank prompt", { prompt: " \n" }, "prompt"],
    ["an empty list as prompt", { prompt: [] }, "prompt"],
    ["a block without type", { prompt: [{ text: "x" }] }, "prompt"],
    ["an unknown field", { prompt: "x", sesion_id: "y" }, "sesion_id"],
    ["an unknown limit", { prompt: "x", limits: { max_tool_call: 1 } }, "limits.max_tool_call"],
    ["money as a number", { prompt: "x", limits: { max_cost_usd: 0.5 } }, "limits.max_cost_usd"],
    ["a negative limit", { prompt: "x", limits: { max_tool_calls: -1 } }, "limits.max_tool_calls"],
    ["both plan and plan_ref", { prompt: "x", plan: PLAN, plan_ref: "y" }, "plan_ref"],
    ["a model without a provider", { prompt: "x", model: "gpt 5" }, "model"],
    ["a plan that is a list", { prompt: "x", plan: [] }, "plan"],
    ["a text block without text", { prompt: [{ type: "text" }] }, "prompt[0]"],
    ["a text block of another kind", { prompt: [{ type: "text", text: 5 }] }, "prompt[0]"],
    ["a wrong if_busy", { prompt: "x", if_busy: "wait" }, "if_busy"],
    ["a wrong on_disconnect", { prompt: "x", on_disconnect: true }, "on_disconnect"],
    ["a list", [], ""],
    ["null", "null", ""],
  ] as const
) {
  Deno.test(`POST /v1/runs refuses ${name} and reports its path`, async () => {
    const { send, created } = testApp();
    const response = await send("POST /v1/runs", { body });
    const problem = await bodyOf(response, "Problem");
    assertEquals([response.status, problem.error.code], [400, "request_invalid"]);
    assertEquals(problem.error.details[0].path, path);
    assertMatch(problem.error.details[0].message, /^Cannot [a-z]+ .+: /);
    assertEquals(created.length, 0);
  });
}

for (
  const [value, ok] of [[0.5, true], [0.001, true], [30, true], [0.0001, false], [0, false], ["5", false]]
) {
  Deno.test(`max_duration_s ${JSON.stringify(value)} is ${ok ? "accepted" : "refused"} by request, plan and policy`, async () => {
    const { send } = testApp();
    const limits = { max_duration_s: value };
    const response = await send("POST /v1/runs", { body: { prompt: "answer", limits } });
    await response.body?.cancel();
    const { findings } = checkPlan({ ...PLAN, limits });
    assertEquals([response.status, findings.errors.length === 0], [ok ? 200 : 400, ok]);
    if (ok) assertEquals(policyFromData({ limits }).limits.max_duration_s, value);
    else assertThrows(() => policyFromData({ limits }));
  });
}

Deno.test("POST /v1/runs suggests a field name for a misspelt one, and lists every finding", async () => {
  const { send } = testApp();
  const response = await send("POST /v1/runs", {
    body: { prompt: 1, sesion_id: "y", limits: { max_tool_call: 1 }, zzzzzz: 1 },
  });
  const { error } = await bodyOf(response, "Problem");
  assertEquals(error.details.map(({ path, hint }: { path: string; hint?: string }) => [path, hint]).sort(), [
    ["limits.max_tool_call", 'did you mean "max_tool_calls"?'],
    ["prompt", undefined],
    ["sesion_id", 'did you mean "session_id"?'],
    ["zzzzzz", undefined],
  ]);
});

Deno.test("POST /v1/runs says what to send in place of fields of other APIs", async () => {
  const { send } = testApp();
  for (
    const [body, path, hint] of [
      [{ prompt: "x", stream: true }, "stream", "send the header Accept: text/event-stream"],
      [{ messages: [{ role: "user", content: "x" }] }, "messages", "send the new message as prompt;"],
      [{ input: "x" }, "input", "send it as prompt"],
      [{ promt: "x" }, "promt", 'did you mean "prompt"?'],
    ] as const
  ) {
    const { detail, error } = await bodyOf(await send("POST /v1/runs", { body }), "Problem");
    assertEquals(error.details[0].path, path);
    assertStringIncludes(hint.startsWith("did") ? error.details[0].hint : detail, hint);
  }
});
