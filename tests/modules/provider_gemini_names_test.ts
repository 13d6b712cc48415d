/** Names that the Gemini API refuses, and answers of servers that do not stream. */
import type { JsonObject, Message, StreamDelta } from "preamp";
import { TestCoordinator } from "preamp/testing";
import { mount } from "../../modules/provider-gemini/mod.ts";
import { assertEquals } from "../assert.ts";
import { fakeServer } from "./providers/fake_server.ts";
import { errorBody, event, response } from "./providers/gemini_wire.ts";

const USER: Message = { role: "user", content: "Hello" };
const TOOLS = ["21st_builder", "-x", "lookup"].map((name) => ({ name, parameters: { type: "object" } }));

/** Returns the names in a request; those in its functions as the API checks them. */
function namesIn({ contents, tools }: JsonObject): { declared: string[]; used: string[]; isValid: boolean } {
  const functions = (tools as { functionDeclarations: { name: string }[] }[]).flatMap((tool) =>
    tool.functionDeclarations
  );
  const declared = functions.map(({ name }) => name);
  const parts = (contents as { parts: Record<string, { name?: string }>[] }[]).flatMap(({ parts }) => parts);
  const used = parts.flatMap((part) => part.functionCall?.name ?? part.functionResponse?.name ?? []);
  const isValid = [...declared, ...used].every((name) => /^[a-zA-Z_][\w.:-]{0,63}$/.test(name));
  return { declared, used, isValid };
}

Deno.test("a tool whose name begins with a digit or a dash has another name in requests", async () => {
  const refusal = errorBody(
    400,
    "INVALID_ARGUMENT",
    "Invalid function name. Must start with a letter or an underscore.",
  );
  await using server = fakeServer(({ body }, count) => {
    if (!namesIn(body).isValid) return Response.json(refusal, { status: 400 });
    if (count > 1) return Response.json(response([{ text: "Done." }], "STOP"));
    if (count === 1) {
      const malformed = response([], "MALFORMED_FUNCTION_CALL");
      const finishMessage = "Malformed function call: print(default_api._21st_builder(key='a)";
      Object.assign((malformed.candidates as JsonObject[])[0]!, { finishMessage });
      return new Response(event(malformed), { headers: { "content-type": "text/event-stream" } });
    }
    const calls = ["_21st_builder", "_-x", "lookup", "unknown"].map((name, index) => ({
      functionCall: { id: `fc_${index}`, name, args: {} },
    }));
    return Response.json(response(calls, "STOP"));
  });
  const coordinator = new TestCoordinator();
  await mount(coordinator, { api_key: "k", base_url: server.url, max_retries: 0 });
  const provider = coordinator.providers.gemini!;
  const request = { messages: [USER], tools: TOOLS, tool_choice: "-x" };
  const answer = await provider.complete(request);
  assertEquals(answer.tool_calls!.map(({ name }) => name), ["21st_builder", "-x", "lookup", "unknown"]);
  const malformed = await provider.complete(request, { onDelta: () => {} });
  assertEquals(malformed.tool_calls!.map(({ name }) => name), ["21st_builder"]);
  const results = answer.tool_calls!.map(({ id, name }): Message => ({
    role: "tool",
    tool_call_id: id,
    name,
    content: "ok",
  }));
  await provider.complete({
    ...request,
    messages: [USER, { role: "assistant", content: answer.content }, ...results],
  });
  const names = ["_21st_builder", "_-x", "lookup"];
  const last = server.requests.at(-1)!.body;
  assertEquals(namesIn(last), {
    declared: names,
    used: [...names, "unknown", ...names, "unknown"],
    isValid: true,
  });
  assertEquals(last.toolConfig, { functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["_-x"] } });
});

Deno.test("tools whose names would become the same in requests have different ones", async () => {
  const long = `1${"a".repeat(62)}`;
  const names = ["2fa", "_2fa", `${long}b`, `${long}c`];
  const sent = ["_2fa_2", "_2fa", `_${long}`, `_${long.slice(0, 59)}_2`];
  await using server = fakeServer(() =>
    Response.json(response(sent.map((name) => ({ functionCall: { name, args: {} } })), "STOP"))
  );
  const coordinator = new TestCoordinator();
  await mount(coordinator, { api_key: "k", base_url: server.url, max_retries: 0 });
  const tools = names.map((name) => ({ name, parameters: { type: "object" } }));
  const request = { messages: [USER], tools, tool_choice: "2fa" };
  const { tool_calls } = await coordinator.providers.gemini!.complete(request);
  assertEquals(tool_calls!.map(({ name }) => name), names);
  const { body } = server.requests[0]!;
  assertEquals(namesIn(body).declared, sent);
  assertEquals(body.toolConfig, {
    functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["_2fa_2"] },
  });
});

const CHUNKS = [response([{ text: "Hel" }]), response([{ text: "lo" }], "STOP")];

for (
  const [form, body, deltas] of [
    ["an answer", response([{ text: "Hello" }], "STOP"), ["Hello"]],
    ["a list of chunks, as without alt=sse", CHUNKS, ["Hel", "lo"]],
  ] as const
) {
  Deno.test(`a streamed request that is answered with JSON is read: ${form}`, async () => {
    await using server = fakeServer(() => Response.json(body));
    const coordinator = new TestCoordinator();
    await mount(coordinator, { api_key: "k", base_url: server.url, max_retries: 0 });
    const received: StreamDelta[] = [];
    const answer = await coordinator.providers.gemini!.complete({ messages: [USER] }, {
      onDelta: (delta) => void received.push(delta),
    });
    assertEquals(answer.content, [{ type: "text", text: "Hello" }]);
    assertEquals(received.map(({ delta }) => delta), [...deltas]);
  });
}

Deno.test("a streamed request that is answered with JSON which breaks off is a StreamError", async () => {
  await using server = fakeServer(() => new Response(JSON.stringify(CHUNKS).slice(0, -20)));
  const coordinator = new TestCoordinator();
  await mount(coordinator, { api_key: "k", base_url: server.url, max_retries: 0 });
  const error = await coordinator.providers.gemini!.complete({ messages: [USER] }, { onDelta: () => {} })
    .catch((error) => error);
  assertEquals(error.type, "StreamError");
});
