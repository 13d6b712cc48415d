/** JSON Schemas of answers: what Anthropic's API enforces, what it would change, and what it refuses. */
import type { Degradation, JsonObject, Message } from "preamp";
import { TestCoordinator } from "preamp/testing";
import { createBackend } from "../../modules/ai-sdk/anthropic.ts";
import { mount } from "../../modules/provider-anthropic/mod.ts";
import { assertEquals } from "../assert.ts";
import { ANTHROPIC, message } from "./providers/anthropic_wire.ts";
import { fakeServer } from "./providers/fake_server.ts";
import { callOf, sentRequest, SETTINGS } from "./providers/sent_request.ts";

const TEXT = { type: "string" };
const USER: Message = { role: "user", content: "Hello" };

/** Resolves to the schema that the API gets for one of the plan, or why it gets none. */
async function sent(schema: JsonObject): Promise<unknown> {
  const fields = { model: "claude-sonnet-5-5", response_format: { type: "json_schema" as const, schema } };
  const call = callOf(fields, [USER], "anthropic");
  const { body, degradation } = await sentRequest(createBackend(SETTINGS), call, ANTHROPIC);
  const { format } = (body.output_config ?? {}) as { format?: JsonObject };
  return format?.schema ?? degradation?.reason;
}

Deno.test("a request sends schemas of closed objects", async () => {
  const place = { type: "object", properties: { x: TEXT }, additionalProperties: true };
  const closed = { type: "object", properties: { x: TEXT }, additionalProperties: false };
  assertEquals(await sent(place), closed);
  assertEquals(await sent({ anyOf: [place, { type: "null" }] }), { anyOf: [closed, { type: "null" }] });
  assertEquals(await sent({ $ref: "#/$defs/place", $defs: { place } }), {
    $ref: "#/$defs/place",
    $defs: { place: closed },
  });
});

Deno.test("a request leaves out schemas to which the API would give another sense", async () => {
  const map = { type: "object", additionalProperties: TEXT };
  const open = "the API cannot enforce objects with properties of any name";
  assertEquals(await sent(map), open);
  assertEquals(await sent({ type: "object" }), open);
  assertEquals(await sent({ type: "object", properties: {} }), open);
  assertEquals(await sent({ type: "object", properties: {}, additionalProperties: true }), open);
  assertEquals(await sent({ type: "array", items: { type: "object", properties: { map } } }), open);
  assertEquals(await sent({ anyOf: [TEXT, { $ref: "#/$defs/map" }], $defs: { map } }), open);
  assertEquals(
    await sent({ type: "object", properties: { x: TEXT }, patternProperties: { "^y": TEXT } }),
    open,
  );
  const several = "the API cannot enforce several schemas of one object";
  const [a, b] = ["a", "b"].map((name) => ({ type: "object", properties: { [name]: TEXT } }));
  assertEquals(await sent({ allOf: [a, b] }), several);
  assertEquals(await sent({ ...a, anyOf: [b] }), several);
});

for (
  const text of [
    "output_config.format.schema: Circular reference detected in schema definitions: node -> node.",
    "The compiled grammar is too large, which would cause performance issues.",
    "Schema is too complex for compilation.",
  ]
) {
  Deno.test(`complete() asks without a format that the API refuses: ${text}`, async () => {
    await using server = fakeServer(({ body }) => {
      if (!body.output_config) return Response.json(message([{ type: "text", text: "{}" }]));
      const error = { type: "invalid_request_error", message: text };
      return Response.json({ type: "error", error }, { status: 400 });
    });
    const coordinator = new TestCoordinator();
    await mount(coordinator, { api_key: "k", base_url: server.url, max_retries: 0 });
    const schema = { type: "object", properties: { x: TEXT } };
    const response_format = { type: "json_schema" as const, schema };
    const request = { messages: [USER], response_format };
    const { degradation } = await coordinator.providers.anthropic!.complete(request);
    const expected: Degradation = {
      requested: "response_format json_schema",
      actual: "response_format text",
      reason: "the API refuses its schema",
    };
    assertEquals([degradation, server.requests.length], [expected, 2]);
    assertEquals(coordinator.hooks.getEvents("provider:retry").length, 1);
    const again = await coordinator.providers.anthropic!.complete(request);
    assertEquals([again.degradation, server.requests.length], [expected, 3]);
    const other = { ...request, response_format: { ...response_format, schema: { type: "string" } } };
    await coordinator.providers.anthropic!.complete(other);
    assertEquals(server.requests.length, 5, "another schema is sent");
  });
}

Deno.test("complete() reports other refusals of a request with a format", async () => {
  await using server = fakeServer(() => {
    const error = { type: "invalid_request_error", message: "messages: too many images" };
    return Response.json({ type: "error", error }, { status: 400 });
  });
  const coordinator = new TestCoordinator();
  await mount(coordinator, { api_key: "k", base_url: server.url, max_retries: 0 });
  const response_format = { type: "json_schema" as const, schema: { enum: ["a"] } };
  const asked = coordinator.providers.anthropic!.complete({ messages: [USER], response_format });
  assertEquals(await asked.catch(({ type }) => type), "InvalidRequestError");
  assertEquals(server.requests.length, 1);
});
