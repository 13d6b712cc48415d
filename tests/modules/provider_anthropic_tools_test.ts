/** Rules of the Messages API about tools: names of properties, and the container of the API's own tools. */
import { isObject, type JsonObject, type Message, type ToolSpec } from "preamp";
import { TestCoordinator } from "preamp/testing";
import { mount } from "../../modules/provider-anthropic/mod.ts";
import { assertEquals } from "../assert.ts";
import { blockEvents, message, messageEvents } from "./providers/anthropic_wire.ts";
import { fakeServer } from "./providers/fake_server.ts";

const USER: Message = { role: "user", content: "Hello" };
const LONG = `${"settings__".repeat(7)}list`;

const LIST: ToolSpec = {
  name: "list",
  parameters: {
    type: "object",
    properties: {
      "filter[id]": { type: "string" },
      "filter_id_": { type: "string" },
      "$top": { type: "integer" },
      [LONG]: {},
      "名": {},
      "plain.key-1": {},
    },
    required: ["filter[id]", "plain.key-1"],
  },
};

/** Answers as the API does: a tool with another name of a property is refused with the whole request. */
function checked({ body }: { body: JsonObject }, answer: () => Response): Response {
  for (const [index, tool] of (body.tools as JsonObject[]).entries()) {
    const { properties } = tool.input_schema as JsonObject;
    const names = isObject(properties) ? Object.keys(properties) : [];
    if (names.every((name) => /^[a-zA-Z0-9_.-]{1,64}$/.test(name))) continue;
    const text = `tools.${index}.custom.input_schema.properties: Property keys should match pattern ` +
      "'^[a-zA-Z0-9_.-]{1,64}$'";
    const error = { type: "invalid_request_error", message: text };
    return Response.json({ type: "error", error }, { status: 400 });
  }
  return answer();
}

for (const stream of [true, false]) {
  Deno.test(`complete() sends valid names of properties, and returns the tool's own: stream ${stream}`, async () => {
    const input = { "filter_id__2": "a", "filter_id_": "b", "_top": 1, "plain.key-1": 2, "other": 3 };
    const call = { type: "tool_use", id: "toolu_1", name: "list", input: stream ? {} : input };
    const partial_json = JSON.stringify(input);
    const events = messageEvents(
      blockEvents(0, call, [{ type: "input_json_delta", partial_json }]),
      "tool_use",
    );
    await using server = fakeServer((request) =>
      checked(
        request,
        () =>
          stream
            ? new Response(events.join(""), { headers: { "content-type": "text/event-stream" } })
            : Response.json(message([call])),
      )
    );
    const coordinator = new TestCoordinator();
    await mount(coordinator, { api_key: "k", base_url: server.url });
    const options = stream ? { onDelta: () => {} } : {};
    const request = { messages: [USER], tools: [LIST] };
    const answer = await coordinator.providers.anthropic!.complete(request, options);
    const own = { "filter[id]": "a", "filter_id_": "b", "$top": 1, "plain.key-1": 2, "other": 3 };
    assertEquals(answer.tool_calls!.map(({ id, name, arguments: args }) => [id, name, args]), [
      ["toolu_1", "list", own],
    ]);
    assertEquals(answer.content, [{ type: "tool_call", id: "toolu_1", name: "list", input: own }]);
    const [tool] = server.requests[0]!.body.tools as { input_schema: JsonObject }[];
    assertEquals(tool!.input_schema, {
      type: "object",
      properties: {
        "filter_id__2": { type: "string" },
        "filter_id_": { type: "string" },
        "_top": { type: "integer" },
        [LONG.slice(0, 64)]: {},
        "_": {},
        "plain.key-1": {},
      },
      required: ["filter_id__2", "plain.key-1"],
    });
  });
}

Deno.test("complete() offers the properties of alternatives with valid names, and returns the tool's own", async () => {
  const call = { type: "tool_use", id: "toolu_1", name: "find", input: { filter_id_: "a" } };
  await using server = fakeServer((request) => checked(request, () => Response.json(message([call]))));
  const coordinator = new TestCoordinator();
  await mount(coordinator, { api_key: "k", base_url: server.url });
  const parameters = {
    type: "object",
    oneOf: [{ properties: { "filter[id]": {} } }, { properties: { name: {} } }],
  };
  const request = { messages: [USER], tools: [{ name: "find", parameters }] };
  const { tool_calls } = await coordinator.providers.anthropic!.complete(request);
  assertEquals(tool_calls!.map(({ arguments: args }) => args), [{ "filter[id]": "a" }]);
  const [tool] = server.requests[0]!.body.tools as { input_schema: JsonObject }[];
  assertEquals(tool!.input_schema, { type: "object", properties: { filter_id_: {}, name: {} } });
});

for (const stop_reason of ["tool_use", "max_tokens"]) {
  Deno.test(`complete() returns no input of an unreadable call of a tool with other names: ${stop_reason}`, async () => {
    const call = { type: "tool_use", id: "toolu_1", name: "list", input: {} };
    const partial_json = '{"filter_id_": "ab';
    const events = messageEvents(
      blockEvents(0, call, [{ type: "input_json_delta", partial_json }]),
      stop_reason,
    );
    await using server = fakeServer(() =>
      new Response(events.join(""), { headers: { "content-type": "text/event-stream" } })
    );
    const coordinator = new TestCoordinator();
    await mount(coordinator, { api_key: "k", base_url: server.url });
    const request = { messages: [USER], tools: [LIST] };
    const answer = await coordinator.providers.anthropic!.complete(request, { onDelta: () => {} });
    const calls = answer.tool_calls!.map((call) => [call.name, call.arguments, call.invalid_arguments]);
    assertEquals(calls, [["list", {}, partial_json]]);
  });
}

const SEARCH: ToolSpec = { name: "web_search", parameters: {}, type: "web_search_20260318" };
const LOOKUP: ToolSpec = { name: "lookup", parameters: { type: "object", properties: {} } };
const PENDING = { type: "server_tool_use", id: "srvtoolu_1", name: "code_execution", input: { code: "x" } };
const CALLER = { type: "code_execution_20260120", tool_id: "srvtoolu_1" };

/** Returns the answer of a server that wants the container back, in the words of the API. */
function wantsContainer(body: JsonObject, answer: () => Response): Response {
  const { content } = (body.messages as Message[]).at(-1)!;
  const isPending = Array.isArray(content) && content.at(-1)!.type !== "text"; // of the assistant, or a result
  if (!isPending || body.container === "container_1") return answer();
  const text =
    "container_id is required when there are pending tool uses generated by code execution with tools.";
  return Response.json({ type: "error", error: { type: "invalid_request_error", message: text } }, {
    status: 400,
  });
}

for (const stream of [true, false]) {
  Deno.test(`complete() sends the container of an answer back with the results of its calls: stream ${stream}`, async () => {
    const call = { type: "tool_use", id: "toolu_1", name: "lookup", input: {}, caller: CALLER };
    const container = { id: "container_1", expires_at: "2026-11-23T15:00:00Z" };
    const first = (): Response => {
      if (!stream) return Response.json(message([PENDING, call], { container }));
      const events = messageEvents([...blockEvents(0, PENDING, []), ...blockEvents(1, call, [])], "tool_use");
      const text = events.join("").replace(
        '"stop_sequence":null}',
        `"stop_sequence":null,"container":${JSON.stringify(container)}}`,
      );
      return new Response(text, { headers: { "content-type": "text/event-stream" } });
    };
    await using server = fakeServer(({ body }, count) =>
      wantsContainer(
        body,
        () => count === 0 ? first() : Response.json(message([{ type: "text", text: "Done." }])),
      )
    );
    const coordinator = new TestCoordinator();
    await mount(coordinator, { api_key: "k", base_url: server.url });
    const provider = coordinator.providers.anthropic!;
    const tools = [SEARCH, LOOKUP];
    const { content } = await provider.complete(
      { messages: [USER], tools },
      stream ? { onDelta: () => {} } : {},
    );
    const history: Message[] = [
      USER,
      { role: "assistant", content },
      { role: "tool", tool_call_id: "toolu_1", content: "found" },
    ];
    const answer = await provider.complete({ messages: history, tools });
    assertEquals(answer.content, [{ type: "text", text: "Done." }]);
    const { messages } = server.requests.at(-1)!.body;
    assertEquals((messages as Message[])[1]!.content, [PENDING, call]);
    await provider.complete({
      messages: [...history, { role: "assistant", content: answer.content }, USER],
      tools,
    });
    assertEquals(server.requests.at(-1)!.body.container, undefined); // nothing is pending any more
  });
}

const CONTAINER = { id: "container_1", expires_at: "2026-11-22T12:00:00Z" };

Deno.test("complete() continues a paused turn in its container", async () => {
  await using server = fakeServer(({ body }, count) =>
    wantsContainer(body, () =>
      Response.json(
        count === 0
          ? message([PENDING], { stop_reason: "pause_turn", container: CONTAINER })
          : message([{ type: "text", text: "Done." }]),
      ))
  );
  const coordinator = new TestCoordinator();
  await mount(coordinator, { api_key: "k", base_url: server.url });
  const { content } = await coordinator.providers.anthropic!.complete({ messages: [USER], tools: [SEARCH] });
  assertEquals(content.at(-1), { type: "text", text: "Done." });
});

Deno.test("complete() returns a call that was cut off as unreadable, also in a container", async () => {
  await using server = fakeServer(() =>
    Response.json(
      message([{ type: "tool_use", id: "toolu_1", name: "lookup", input: {} }], {
        stop_reason: "max_tokens",
        container: CONTAINER,
      }),
    )
  );
  const coordinator = new TestCoordinator();
  await mount(coordinator, { api_key: "k", base_url: server.url });
  const { tool_calls } = await coordinator.providers.anthropic!.complete({
    messages: [USER],
    tools: [LOOKUP],
  });
  assertEquals(tool_calls!.map(({ name, invalid_arguments }) => [name, invalid_arguments]), [["lookup", ""]]);
});
