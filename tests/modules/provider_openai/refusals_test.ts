/** Requests that servers refuse, in the words of the servers: each is sent again in a form that they take. */
import type { ChatRequest, JsonObject, Message, ResponseFormat } from "preamp";
import { assertEquals } from "../../assert.ts";
import { mounted } from "./kit.ts";
import { chatChunks, chunk, completion, outputMessage, response } from "./wire.ts";

interface WireMessage {
  role: string;
  content: unknown;
  reasoning?: string;
  reasoning_content?: string;
}

const TOOLS = [{ name: "lookup", parameters: { type: "object" } }];
const CALL: Message = {
  role: "assistant",
  content: [{ type: "tool_call", id: "call_1", name: "lookup", input: {} }],
};
const RESULT: Message = { role: "tool", tool_call_id: "call_1", content: "a" };

/** Server → parameter, further fields of the request, status and body of the refusal. */
const REFUSED: Readonly<
  Record<string, readonly [string, Partial<ChatRequest>, number, JsonObject | string]>
> = {
  "Mistral": ["stream_options", {}, 422, {
    object: "error",
    message: {
      detail: [{
        type: "extra_forbidden",
        loc: ["body", "stream_options", "include_usage"],
        msg: "Extra inputs are not permitted",
        input: true,
      }],
    },
    type: "invalid_request_error",
    param: null,
    code: null,
  }],
  "Azure AI Foundry": ["stream_options", {}, 422, {
    error: {
      code: "Invalid input",
      status: 422,
      message: "invalid input error",
      details: [{
        type: "extra_forbidden",
        loc: ["body", "stream_options"],
        msg: "Extra inputs are not permitted",
        input: { include_usage: true },
      }],
    },
  }],
  "a gateway that answers with text": ["stream_options", {}, 400, '"stream_options" is not allowed'],
  "LM Studio": ["response_format", { response_format: { type: "json" } }, 400, {
    error: "'response_format.type' must be 'json_schema' or 'text'",
  }],
  "Groq, a format beside tools": [
    "response_format",
    { response_format: { type: "json" }, tools: TOOLS },
    400,
    {
      error: {
        message: "json mode cannot be combined with tool/function calling",
        type: "invalid_request_error",
      },
    },
  ],
  "Groq, an effort": ["reasoning_effort", { reasoning_effort: "low" }, 400, {
    error: {
      message: "`reasoning_effort` must be one of `none` or `default`",
      type: "invalid_request_error",
      param: "reasoning_effort",
    },
  }],
  "Moonshot": ["temperature", { temperature: 0.6 }, 400, {
    error: {
      message: "invalid temperature: only 1 is allowed for this model",
      type: "invalid_request_error",
    },
  }],
  "Cerebras": ["parallel_tool_calls", { tools: TOOLS }, 400, {
    message: "body.parallel_tool_calls: property 'parallel_tool_calls' is unsupported",
    type: "invalid_request_error",
    param: "validation_error",
    code: "wrong_api_format",
  }],
};

for (const [server, [parameter, request, status, refusal]] of Object.entries(REFUSED)) {
  Deno.test(`a parameter that a server refuses in its own words is left out: ${server}`, async () => {
    await using local = await mounted(({ body }) => {
      if (body[parameter] === undefined) {
        return new Response(chatChunks([chunk({ content: "Hi" }, "stop")]), {
          headers: { "content-type": "text/event-stream" },
        });
      }
      return typeof refusal === "string"
        ? new Response(refusal, { status })
        : Response.json(refusal, { status });
    }, { model: "local", parallel_tool_calls: false });
    const { answer } = await local.stream("Hi", request);
    assertEquals(answer.content, [{ type: "text", text: "Hi" }]);
    await local.stream("Hi", request);
    assertEquals(local.requests.map(({ body }) => body[parameter] !== undefined), [true, false, false]);
  });
}

/** Mounts a server that refuses requests with a message for which `refuses` is true. */
function refusing(
  refuses: (message: WireMessage, before: WireMessage | undefined) => boolean,
  refusal: JsonObject,
) {
  return mounted(({ body }) => {
    const messages = body.messages as WireMessage[];
    const is_refused = messages.some((message, index) => refuses(message, messages[index - 1]));
    return is_refused
      ? Response.json(refusal, { status: 400 })
      : Response.json(completion({ content: "Hi" }));
  });
}

const MISTRAL = {
  object: "error",
  message: "Unexpected role 'user' after role 'tool'",
  type: "invalid_request_message_order",
  param: null,
  code: "3230",
};
const OPENROUTER = {
  error: {
    message: "Provider returned error",
    code: 400,
    metadata: { raw: JSON.stringify(MISTRAL), provider_name: "Mistral" },
  },
};

for (const refusal of [MISTRAL, OPENROUTER]) {
  const server = refusal === MISTRAL ? "Mistral" : "OpenRouter";
  Deno.test(`a message of the model is between results and a question when the server wants it: ${server}`, async () => {
    const rolesOf = ({ messages }: JsonObject) =>
      (messages as WireMessage[]).map(({ role }) => role).join(" ");
    await using local = await refusing(
      ({ role, content }, before) =>
        role === "user" && before?.role === "tool" || role === "assistant" && content === "",
      refusal,
    );
    const history: Message[] = [{ role: "user", content: "Look" }, CALL, RESULT];
    await local.ask(history);
    await local.ask([...history, { role: "user", content: "Stop" }]);
    await local.ask([...history, { role: "user", content: "Stop" }]);
    assertEquals(local.requests.map(({ body }) => rolesOf(body)), [
      "user assistant tool",
      "user assistant tool user",
      "user assistant tool assistant user",
      "user assistant tool assistant user",
    ]);
  });
}

for (
  const [server, error] of Object.entries({
    "LM Studio": "Invalid 'content': 'content' field must be a string or an array of objects.",
    "Ollama": { message: "invalid message content type: <nil>", type: "invalid_request_error" },
  })
) {
  Deno.test(`a call has empty content when the server refuses null: ${server}`, async () => {
    await using local = await refusing(({ content }) => content === null, { error });
    await local.ask([{ role: "user", content: "Look" }, CALL, RESULT]);
    const contents = local.requests.map(({ body }) => (body.messages as WireMessage[])[1]!.content);
    assertEquals(contents, [null, ""]);
  });
}

Deno.test("reasoning is left out of the history when the server refuses its field, such as Groq's", async () => {
  await using local = await refusing(({ reasoning_content }) => reasoning_content !== undefined, {
    error: {
      message: "'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : " +
        "property 'reasoning_content' is unsupported)]",
      type: "invalid_request_error",
    },
  });
  const provider = `openai@${new URL(local.url).host}`;
  const thinking = { type: "thinking", thinking: "Hm", field: "reasoning_content", provider };
  const content = [thinking, ...CALL.content as []];
  await local.ask([{ role: "user", content: "Look" }, { role: "assistant", content }, RESULT]);
  const kept = local.requests.map(({ body }) => (body.messages as WireMessage[])[1]!.reasoning_content);
  assertEquals(kept, ["Hm", undefined]);
});

Deno.test("a model that takes no functions beside reasoning gets them without it, such as GPT-5.6 on Azure", async () => {
  const message = "Function tools with reasoning_effort are not supported for gpt-5.6-terra in " +
    "/v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.";
  const error = { message, type: "invalid_request_error", param: "reasoning_effort", code: null };
  for (const reasoning_effort of ["high", undefined]) {
    await using local = await mounted(
      ({ body }) =>
        body.tools !== undefined && body.reasoning_effort !== "none"
          ? Response.json({ error }, { status: 400 })
          : Response.json(completion({ content: "Hi" })),
      { model: "gpt-5.6-terra" },
    );
    const request = reasoning_effort === undefined ? {} : { reasoning_effort };
    const { degradation } = await local.ask("Hi", { ...request, tools: TOOLS });
    assertEquals([degradation?.requested, degradation?.actual], ["reasoning", "none"]);
    await local.ask("Hi", request);
    const efforts = local.requests.map(({ body }) => body.reasoning_effort);
    assertEquals(efforts, [reasoning_effort, "none", reasoning_effort]);
    const both = await local.ask("Hi", { ...request, tools: TOOLS, thinking_budget: 2000 });
    assertEquals(both.degradation?.requested, "reasoning; thinking_budget 2000");
  }
});

Deno.test("an effort that a model does not have becomes the nearest one, and others stay", async () => {
  const efforts = ({ body }: { body: JsonObject }) => (body.reasoning as { effort?: string }).effort;
  await using local = await mounted((request) => {
    const effort = efforts(request) ?? "";
    if (["low", "medium", "high"].includes(effort)) return Response.json(response([outputMessage("Hi")]));
    const message = `Unsupported value: '${effort}' is not supported with the 'local' model. ` +
      "Supported values are: 'low', 'medium', and 'high'.";
    const error = {
      message,
      type: "invalid_request_error",
      param: "reasoning.effort",
      code: "unsupported_value",
    };
    return Response.json({ error }, { status: 400 });
  }, { api: "responses", model: "local" });
  const { degradation } = await local.ask("Hi", { reasoning_effort: "none" });
  assertEquals([degradation?.requested, degradation?.actual], ["reasoning_effort none", "low"]);
  for (const reasoning_effort of ["none", "medium", "max"]) {
    await local.ask("Hi", { reasoning_effort }).catch(() => {});
  }
  assertEquals(local.requests.map(efforts).slice(0, 6), [
    "none",
    "low",
    "low",
    "medium",
    "max",
    "high",
  ]);
});

/** Model's efforts, requested effort → the effort of its answer; undefined: left out. */
const ONLY: readonly (readonly [has: string, requested: string, taken: string | undefined])[] = [
  ["high", "none", "high"],
  ["high", "low", "high"],
  ["medium", "minimal", "medium"],
  ["medium", "high", "medium"],
  ["medium", "max", "medium"],
  ["low", "medium", "low"],
  ["unheard", "none", undefined],
];

for (const [has, requested, taken] of ONLY) {
  Deno.test(`an effort becomes the only one of a model: ${requested} where it has ${has}`, async () => {
    const effortOf = ({ reasoning_effort }: JsonObject) => reasoning_effort as string | undefined;
    await using local = await mounted(({ body }) => {
      const effort = effortOf(body);
      if (effort === undefined || effort === has) return Response.json(completion({ content: "Hi" }));
      const message = `Unsupported value: '${effort}' is not supported with the 'm' model. ` +
        `Supported values are: '${has}'.`;
      const error = { message, param: "reasoning_effort", code: "unsupported_value" };
      return Response.json({ error }, { status: 400 });
    }, { model: "m" });
    const { degradation } = await local.ask("Hi", { reasoning_effort: requested });
    assertEquals(effortOf(local.requests.at(-1)!.body), taken);
    assertEquals(degradation!.actual, taken ?? "left out");
    const count = local.requests.length;
    await local.ask("Hi", { reasoning_effort: requested });
    assertEquals(local.requests.slice(count).map(({ body }) => effortOf(body)), [taken]);
  });
}

for (
  const [api, param, code] of [
    ["responses", "text.format.schema", "invalid_json_schema"],
    ["responses", "text.format.schema", null],
    ["chat", "response_format", "invalid_json_schema"],
    ["chat", "response_format.json_schema.schema", null],
  ] as const
) {
  Deno.test(`a schema that the server refuses is not a format that it refuses: ${api}, ${param}, ${code}`, async () => {
    await using local = await mounted(({ body }) => {
      if (JSON.stringify(body.text ?? body.response_format ?? "").includes('"bad"')) {
        const about = code === null
          ? "The schema is not supported"
          : "Invalid schema for response_format 'answer'";
        const message = `${about}: In context=('properties', 'bad'), 'oneOf' is not permitted.`;
        const error = { message, type: "invalid_request_error", param, code };
        return Response.json({ error }, { status: 400 });
      }
      return Response.json(
        api === "chat" ? completion({ content: "{}" }) : response([outputMessage("{}")]),
      );
    }, { api, model: "gpt-6.2-sol" });
    const formatOf = (name: string): ResponseFormat => ({
      type: "json_schema",
      schema: { type: "object", properties: { [name]: {} }, required: [name], additionalProperties: false },
    });
    const { degradation } = await local.ask("Hi", { response_format: formatOf("bad") });
    assertEquals(degradation?.requested, "response_format json_schema");
    await local.ask("Hi", { response_format: formatOf("good") });
    const sent = local.requests.map(({ body }) =>
      JSON.stringify(body.text ?? body.response_format ?? "").includes("schema")
    );
    assertEquals(sent, [true, false, true]); // the second one describes the schema in words
  });
}
