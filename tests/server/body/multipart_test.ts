import { PNG as PNG_BASE64 } from "../../support/images.ts";
import { assertEquals } from "../../assert.ts";
import { problemOf, testApp } from "../../support/http.ts";

const PNG = Uint8Array.fromBase64(PNG_BASE64);
const PLAN_TEXT =
  "{session: {orchestrator: loop-basic, context: context-simple}, providers: [provider-prompted]}\n";

Deno.test("POST /v1/runs accepts a form with text fields and files", async () => {
  const { send, created, start } = testApp();
  const { session_id } = await start("answer");
  const form = new FormData();
  form.set("prompt", new File(["answer é"], "prompt.txt", { type: "text/plain" }));
  form.set("plan", new File([PLAN_TEXT], "plan.yaml", { type: "application/yaml" }));
  form.set("limits", '{"max_tool_calls": 3}');
  form.set("metadata", new File(['{"ticket": 7}'], "m.json", { type: "application/json" }));
  form.set("background", "true");
  form.set("session_id", session_id);
  assertEquals((await send("POST /v1/runs", { body: form })).status, 202);
  assertEquals(created[1]?.request, {
    prompt: "answer é",
    plan: PLAN_TEXT,
    limits: { max_tool_calls: 3 },
    metadata: { ticket: 7 },
    session_id,
  });
});

Deno.test("POST /v1/runs parses a JSON file as content blocks when it is the prompt", async () => {
  const { send, created } = testApp();
  const form = new FormData();
  form.set("prompt", new File(['[{"type":"text","text":"hi"}]'], "p.json", { type: "application/json" }));
  form.set("background", "true");
  await send("POST /v1/runs", { body: form });
  assertEquals(created[0]?.request.prompt, [{ type: "text", text: "hi" }]);
});

Deno.test("POST /v1/runs refuses a form with a syntax error, a duplicate or unknown field, or invalid UTF-8", async () => {
  const { send } = testApp();
  const doubled = new FormData();
  doubled.append("prompt", "a");
  doubled.append("prompt", "b");
  const unknown = new FormData();
  unknown.set("promt", "a");
  const proto = new FormData();
  proto.set("__proto__", "a");
  const badJson = new FormData();
  badJson.set("prompt", "a");
  badJson.set("limits", "{");
  const binary = new FormData();
  binary.set("prompt", new File([new Uint8Array([0xff, 0xfe])], "p.txt"));
  for (const body of [doubled, unknown, proto, badJson, binary]) {
    assertEquals(await problemOf(await send("POST /v1/runs", { body })), "400 request_invalid");
  }
  const headers = { "content-type": "multipart/form-data; boundary=x" };
  assertEquals(
    await problemOf(await send("POST /v1/runs", { body: "--y\r\n", headers })),
    "400 request_invalid",
  );
});

Deno.test("POST /v1/runs refuses a form with too many parts or without a boundary without parsing it", async () => {
  const { send } = testApp();
  const part = '--b\r\ncontent-disposition: form-data; name="a"\r\n\r\n1\r\n';
  for (
    const [type, parts] of [["; boundary=b", 1000], [`; boundary=${"b".repeat(71)}`, 1], ["", 1]] as const
  ) {
    const headers = { "content-type": `multipart/form-data${type}` };
    const response = await send("POST /v1/runs", { body: `${part.repeat(parts)}--b--\r\n`, headers });
    assertEquals(await problemOf(response), "400 request_invalid");
  }
});

Deno.test("POST /v1/runs makes files of the field image pictures of the prompt", async () => {
  const { send, created } = testApp();
  const form = new FormData();
  form.set("prompt", "answer");
  form.set("background", "true");
  for (const name of ["a.png", "b.png"]) form.append("image", new File([PNG], name, { type: "image/png" }));
  assertEquals((await send("POST /v1/runs", { body: form })).status, 202);
  const picture = {
    type: "image",
    source: { type: "base64", media_type: "image/png", data: PNG.toBase64() },
  };
  assertEquals(created[0]?.request.prompt, [{ type: "text", text: "answer" }, picture, picture]);
});

Deno.test("POST /v1/runs refuses a picture of another format, and one without a prompt", async () => {
  const { send } = testApp();
  const form = (image: BlobPart, prompt?: string) => {
    const data = new FormData();
    if (prompt !== undefined) data.set("prompt", prompt);
    data.set("image", new File([image], "notes.txt"));
    return data;
  };
  const refused = await send("POST /v1/runs", { body: form("words", "answer") });
  const { error } = await refused.json();
  assertEquals([refused.status, error.details[0].message], [
    400,
    'Cannot read field image: "notes.txt" is no PNG, JPEG, GIF or WebP',
  ]);
  assertEquals(await problemOf(await send("POST /v1/runs", { body: form(PNG) })), "400 request_invalid");
});
