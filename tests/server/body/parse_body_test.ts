import { assert, assertEquals, assertRejects, assertStrictEquals } from "../../assert.ts";
import { DOCUMENT_LIMITS } from "../../../src/plan/parse/document_limits.ts";
import { parsePlanText } from "../../../src/plan/parse/parse.ts";
import { readYaml } from "../../../src/plan/parse/yaml_tree.ts";
import { readDocument } from "../../../src/server/body/parse_body.ts";
import { systemClock } from "../../../src/process/system_clock.ts";
import { bodyOf, PLAN, problemOf, testApp } from "../../support/http.ts";

const PLAN_TEXT =
  "{session: {orchestrator: loop-basic, context: context-simple}, providers: [provider-prompted]}\n";
const LIMITS = { max_bytes: 1_000_000, deadline_ms: 1000, plan: DOCUMENT_LIMITS };

function documentOf(text: string): Promise<{ kind: string; text?: string }> {
  const headers = { "content-type": "application/yaml" };
  const request = new Request("http://localhost/", { method: "POST", body: text, headers });
  return readDocument({
    request,
    body: LIMITS,
    server: { clock: systemClock() },
  });
}

Deno.test("readDocument() and the plan's reader parse the YAML of one body once", async () => {
  const written = `session: {orchestrator: loop-basic, context: context-simple}\ndescription: ${
    "long ".repeat(20_000)
  }\n`;
  const tree = await readYaml(written, DOCUMENT_LIMITS);
  const document = await documentOf(written);
  assertEquals(document.kind, "plan");
  await parsePlanText(document.text ?? "");
  // a second parse would have replaced the cached tree
  assertStrictEquals(await readYaml(written, DOCUMENT_LIMITS), tree);
});

Deno.test("readYaml() parses again for another text and for other limits", async () => {
  const tree = await readYaml("a: 1", DOCUMENT_LIMITS);
  assert(await readYaml("a: 1", { ...DOCUMENT_LIMITS, max_nodes: 2 }) !== tree);
  assert(await readYaml("a: 2", DOCUMENT_LIMITS) !== tree);
});

Deno.test("readDocument() returns invalid YAML as a plan, and the plan's reader reports the error", async () => {
  const document = await documentOf("session: [\n");
  assertEquals(document, { kind: "plan", text: "session: [\n" });
  const error = await assertRejects(() => parsePlanText("session: [\n")) as { details?: { line?: number }[] };
  assertEquals(error.details?.[0]?.line, 1);
});

Deno.test("POST /v1/runs accepts JSON whose plan is text", async () => {
  const { send, created } = testApp();
  await send("POST /v1/runs", { body: { prompt: "answer", plan: PLAN_TEXT } });
  assertEquals(created[0]?.request.plan, PLAN_TEXT);
});

Deno.test("POST /v1/runs accepts a prompt of content blocks and keeps their unknown fields", async () => {
  const { send, created } = testApp();
  const prompt = [{ type: "text", text: "hi", cache: true }, { type: "image", source: { kind: "x" } }];
  assertEquals((await send("POST /v1/runs", { body: { prompt, background: true } })).status, 202);
  assertEquals(created[0]?.request.prompt, prompt);
});

Deno.test("POST /v1/runs accepts a request in YAML", async () => {
  const { send, created } = testApp();
  const response = await send("POST /v1/runs", {
    body: `prompt: answer yes\nplan:\n  ${PLAN_TEXT}limits: {max_tool_calls: 3}\n`,
    headers: { "content-type": "application/yaml; charset=UTF-8" },
  });
  assertEquals(response.status, 200);
  assertEquals(created[0]?.request, {
    prompt: "answer yes",
    plan: PLAN,
    limits: { max_tool_calls: 3 },
  });
});

for (
  const [type, body] of [["application/yaml", PLAN_TEXT], ["application/json", JSON.stringify(PLAN)]] as const
) {
  Deno.test(`POST /v1/runs accepts a plan of type ${type} as the body, and keeps its text`, async () => {
    const { send, created } = testApp();
    const options = { body, headers: { "content-type": type } };
    const response = await send("POST /v1/runs?prompt=answer+6%20%C3%97%207", options);
    assertEquals((await bodyOf(response, "Run")).output_text, "6 × 7");
    assertEquals(created[0]?.request, { prompt: "answer 6 × 7", plan: body });
    assertEquals(await problemOf(await send("POST /v1/runs", options)), "400 request_invalid");
  });
}

Deno.test("POST /v1/runs forwards invalid YAML to the plan's reader", async () => {
  const { send, created } = testApp();
  const body = "session: [\n";
  await send("POST /v1/runs?prompt=answer", { body, headers: { "content-type": "application/yaml" } });
  assertEquals(created[0]?.request.plan, body);
});

Deno.test("POST /v1/runs answers invalid YAML without a prompt with the place of the error, and a plan with what is missing", async () => {
  const { send } = testApp();
  const headers = { "content-type": "application/yaml" };
  const answerTo = async (body: string) => {
    const response = await send("POST /v1/runs", { body, headers });
    const { error: { code, details: [detail] } } = await response.json();
    return [response.status, code, detail.line ?? detail.path];
  };
  assertEquals(await answerTo("prompt: hi\nplan_ref: [\n"), [400, "plan_invalid", 2]);
  assertEquals(await answerTo(""), [400, "plan_invalid", 1]);
  assertEquals(await answerTo(PLAN_TEXT), [400, "request_invalid", "prompt"]);
});

Deno.test("POST /v1/runs reads the prompt from the query if the body has none, and refuses both", async () => {
  const { send, created } = testApp();
  assertEquals((await send("POST /v1/runs?prompt=answer", { body: { plan: PLAN } })).status, 200);
  assertEquals(created[0]?.request.prompt, "answer");
  assertEquals(
    await problemOf(await send("POST /v1/runs?prompt=a", { body: { prompt: "b" } })),
    "400 request_invalid",
  );
});

Deno.test("POST /v1/runs refuses bytes that are not UTF-8", async () => {
  const { send } = testApp();
  const body = new Uint8Array([...new TextEncoder().encode('{"prompt":"'), 0xc3, 0x28, 0x22, 0x7d]);
  assertEquals(await problemOf(await send("POST /v1/runs", { body })), "400 request_invalid");
});

for (
  const headers of [
    { "content-type": "text/plain" },
    { "content-type": "application/json; charset=iso-8859-1" },
    { "content-type": "" },
    { "content-encoding": "gzip" },
  ] as Record<string, string>[]
) {
  Deno.test(`POST /v1/runs answers 415 for ${JSON.stringify(headers)}`, async () => {
    const { send } = testApp();
    const response = await send("POST /v1/runs", { body: '{"prompt":"answer"}', headers });
    assertEquals(await problemOf(response), "415 unsupported_media_type");
  });
}

const CURL = { "content-type": "application/x-www-form-urlencoded" }; // what curl states for -d

for (
  const [body, request] of [
    ['{"prompt": "answer"}', { prompt: "answer" }],
    ["prompt=answer", { prompt: "answer" }],
    ["prompt=What+is+6+%C3%97+7%3F&limits=%7B%22max_tool_calls%22%3A3%7D", {
      prompt: "What is 6 × 7?",
      limits: { max_tool_calls: 3 },
    }],
    [`prompt: answer\nplan: ${PLAN_TEXT}`, { prompt: "answer" }],
  ] as const
) {
  Deno.test(`POST /v1/runs accepts what curl -d sends: ${body.slice(0, 40)}`, async () => {
    const { send, created } = testApp();
    assertEquals((await send("POST /v1/runs", { body, headers: CURL })).status, 200);
    const { plan: _, ...rest } = created[0]!.request;
    assertEquals(rest, request);
  });
}

Deno.test("POST /v1/runs accepts a plan that curl --data-binary sends, with the prompt in the query", async () => {
  const { send, created } = testApp();
  const response = await send("POST /v1/runs?prompt=answer", { body: PLAN_TEXT, headers: CURL });
  assertEquals([response.status, created[0]?.request], [200, { prompt: "answer", plan: PLAN_TEXT }]);
});

Deno.test("a body of curl -d that is nothing of these is refused with what to write", async () => {
  const { send } = testApp();
  for (const body of ["hello", "session: [", "prompt=%FF", "prompt=a&prompt=b", "__proto__=1"]) {
    assertEquals(
      await problemOf(await send("POST /v1/runs", { body, headers: CURL })),
      "400 request_invalid",
    );
  }
  const { error } = await (await send("POST /v1/runs", { body: "hello", headers: CURL })).json();
  assert(error.message.includes('--json \'{"prompt": "Hello"}\''), error.message);
  const { send: ask, start } = testApp();
  const { id } = await start("answer");
  const cancel = (body: string) => ask(`POST /v1/runs/${id}/cancel`, { body, headers: CURL });
  assertEquals(await problemOf(await cancel("mode=graceful")), "400 request_invalid");
  assertEquals((await cancel('{"mode": "graceful"}')).status < 300, true);
});
