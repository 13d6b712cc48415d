import fc from "fast-check";
import { parseJsonData, parseSimpleJson } from "../../../src/server/body/json.ts";
import { checkBody, validateCommonRequest } from "../../../src/server/body/validation.ts";
import { assertEquals } from "../../assert.ts";

Deno.test("parseSimpleJson() returns the data of the full parser for text of JSON.stringify", () => {
  fc.assert(fc.property(fc.json({ maxDepth: 5 }), (text) => {
    const data = parseSimpleJson(text);
    if (data !== undefined) assertEquals(data, parseJsonData(text, "the text"));
  }));
  const text = JSON.stringify({
    prompt: "Hello",
    plan: { tools: ["tool-todo"] },
    metadata: { n: 1.5, on: true },
  });
  assertEquals(parseSimpleJson(text), JSON.parse(text));
});

Deno.test("parseSimpleJson() returns undefined for text that the full parser must check", () => {
  const left = [
    '{"a":1,"a":2}',
    '{"__proto__":{}}',
    '{"a":{"constructor":1}}',
    '{"\\u005f_proto__":1}',
    '{"a":"\\ud800"}',
    '{"\\udfff":1}',
    "[1e999]",
    "[-0]",
    "[12345678901234567890]",
    '{ "a": 1 }',
    '{"a":1}]',
    '{"a":',
    "",
    `${"[".repeat(65)}1${"]".repeat(65)}`,
    `${"[".repeat(100_000)}`,
    JSON.stringify(new Array(20_001).fill(1)),
  ];
  for (const text of left.slice(0, -2)) assertEquals([text, parseSimpleJson(text)], [text, undefined]);
  for (const text of left.slice(-2)) assertEquals(parseSimpleJson(text), undefined);
});

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
