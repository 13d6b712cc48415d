/** Schemas that the Gemini API refuses, because they are too large for it. */
import type { JsonObject, Message } from "preamp";
import { TestCoordinator } from "preamp/testing";
import { mount } from "../../modules/provider-gemini/mod.ts";
import { assertEquals } from "../assert.ts";
import { fakeServer } from "./providers/fake_server.ts";
import { errorBody, event, response } from "./providers/gemini_wire.ts";

const USER: Message = { role: "user", content: "Hello" };
const LIST = { type: "array", items: { type: "string" }, maxItems: 5 };
const FORMAT = {
  type: "json_schema" as const,
  schema: { type: "object", properties: { list: LIST }, required: ["list"] },
};

async function mounted(url: string) {
  const coordinator = new TestCoordinator();
  await mount(coordinator, { api_key: "k", base_url: url, max_retries: 0 });
  return { coordinator, provider: coordinator.providers.gemini! };
}

for (
  const text of [
    "A schema in GenerationConfig in the request exceeds the maximum allowed nesting depth.",
    "The specified schema produces a constraint that has too many states for serving.",
    "Request contains an invalid argument.",
  ]
) {
  for (const stream of [true, false]) {
    Deno.test(`complete() asks for JSON alone when the API refuses a schema (stream: ${stream}): ${text}`, async () => {
      await using server = fakeServer(({ body }) => {
        const { responseJsonSchema } = body.generationConfig as JsonObject;
        const refusal = errorBody(400, "INVALID_ARGUMENT", text);
        if (responseJsonSchema) return Response.json(refusal, { status: 400 });
        const answer = response([{ text: '{"list":[]}' }], "STOP");
        return stream
          ? new Response(event(answer), { headers: { "content-type": "text/event-stream" } })
          : Response.json(answer);
      });
      const { coordinator, provider } = await mounted(server.url);
      const request = { messages: [USER], response_format: FORMAT };
      const { content, degradation } = await provider.complete(request, stream ? { onDelta() {} } : {});
      assertEquals(content, [{ type: "text", text: '{"list":[]}' }]);
      assertEquals([degradation?.requested, degradation?.actual, degradation?.reason], [
        "response_format json_schema",
        "response_format json",
        "the API refuses its schema",
      ]);
      const types = server.requests.map(({ body }) => (body.generationConfig as JsonObject).responseMimeType);
      assertEquals(types, ["application/json", "application/json"]);
      assertEquals(coordinator.hooks.getEvents("provider:retry").length, 1);
      const again = await provider.complete(request, stream ? { onDelta() {} } : {});
      assertEquals([again.degradation, server.requests.length], [degradation, 3]);
    });
  }
}

Deno.test("complete() reports a refusal that stays without the schema", async () => {
  const refusal = errorBody(400, "INVALID_ARGUMENT", "Request contains an invalid argument.");
  await using server = fakeServer(() => Response.json(refusal, { status: 400 }));
  const { provider } = await mounted(server.url);
  for (const [request, requests] of [[{ response_format: FORMAT }, 2], [{}, 3]] as const) {
    const error = await provider.complete({ messages: [USER], ...request }).catch((error) => error);
    assertEquals([error.type, error.message], [
      "InvalidRequestError",
      "Request contains an invalid argument.",
    ]);
    assertEquals(server.requests.length, requests);
  }
});

Deno.test("requests have no maxItems of answers and functions", async () => {
  await using server = fakeServer(() => Response.json(response([{ text: "{}" }], "STOP")));
  const { provider } = await mounted(server.url);
  const parameters = { type: "object", properties: { list: LIST } };
  const tools = [{ name: "t", parameters }];
  await provider.complete({ messages: [USER], tools, response_format: FORMAT });
  const { tools: [tool], generationConfig } = server.requests[0]!.body as {
    tools: [{ functionDeclarations: [{ parametersJsonSchema: JsonObject }] }];
    generationConfig: { responseJsonSchema: JsonObject };
  };
  const { maxItems: _, ...open } = LIST;
  const properties = { list: open };
  assertEquals(generationConfig.responseJsonSchema, { ...FORMAT.schema, properties });
  assertEquals(tool.functionDeclarations[0].parametersJsonSchema, { ...parameters, properties });
});
