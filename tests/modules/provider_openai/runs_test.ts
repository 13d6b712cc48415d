/** Whole runs on `provider-openai`: what the loop and the context make of its answers and errors. */
import { createRuntime } from "../../../src/app/runtime.ts";
import type { Caller } from "../../../src/runs/types.ts";
import { assert, assertEquals, assertStringIncludes } from "../../assert.ts";
import type { JsonObject } from "preamp";
import { type Answer, fakeServer, type ReceivedRequest } from "../providers/fake_server.ts";
import { functionCall, outputMessage, response, sse, streamOf } from "./wire.ts";

const CALLER: Caller = { name: "cli", namespace: "test", origin: "operator" };

/** Runs prompts in one session on a server that gives `answer`; resolves to the runs and their requests. */
async function run(
  prompts: readonly string[],
  answer: Answer,
  plan: JsonObject = {},
  config: JsonObject = {},
) {
  await using server = fakeServer(answer);
  const runtime = createRuntime({ env: () => undefined });
  try {
    const provider = {
      base_url: `${server.url}/v1`,
      api: "responses",
      model: "gpt-5",
      max_retries: 0,
      ...config,
    };
    const request = {
      plan: {
        session: { orchestrator: "loop-streaming", context: "context-simple" },
        providers: [{ module: "provider-openai", config: provider }],
        ...plan,
      },
    };
    const runs = [];
    let session_id: string | undefined;
    for (const prompt of prompts) {
      const session = session_id === undefined ? {} : { session_id };
      const handle = await runtime.runs.create({ ...request, ...session, prompt }, CALLER);
      const ended = await handle.settled("end");
      session_id = ended.session_id;
      runs.push({ run: ended, events: await runtime.runs.events(CALLER, ended.id, { limit: 1000 }) });
    }
    return { runs, requests: server.requests };
  } finally {
    await runtime.close();
  }
}

function inputOf({ body }: ReceivedRequest): JsonObject[] {
  return body.input as JsonObject[];
}

Deno.test("a call with invalid JSON is answered with an error that the model corrects", async () => {
  const { runs: [first], requests } = await run(["What is 6 × 7?"], (_, count) =>
    sse(streamOf([
      count === 0
        ? functionCall("call_a", "calculator", '{"expression": "6*7"')
        : count === 1
        ? functionCall("call_b", "calculator", '{"expression": "6*7"}')
        : outputMessage("42"),
    ])), { tools: ["tool-calculator"] });
  assertEquals([first!.run.status, first!.run.output_text], ["completed", "42"]);
  const error = first!.events.find(({ event }) => event === "tool:error");
  assertEquals((error?.data.error as JsonObject).type, "tool_input_invalid");
  const output = inputOf(requests[1]!).find(({ type }) => type === "function_call_output");
  assertEquals(output?.call_id, "call_a");
  assertStringIncludes(String(output?.output), "JSON");
});

Deno.test("a history that is too long is compacted to what the server takes, and sent again", async () => {
  const limit = 3000;
  const message =
    `This model's maximum context length is ${limit} tokens. However, your messages resulted in 4000 tokens.`;
  const long = "Tell me more about every single thing that we talked about. ".repeat(40);
  let refusals = 0;
  const { runs } = await run(
    Array.from({ length: 8 }, () => long),
    ({ body }) => {
      const tokens = JSON.stringify(body.input).length / 5;
      if (tokens > limit && ++refusals <= 1) {
        return Response.json({
          error: { message, type: "invalid_request_error", code: "context_length_exceeded" },
        }, { status: 400 });
      }
      return sse(streamOf([outputMessage("Well. ".repeat(200))]));
    },
    {},
    { context_window: 100_000 },
  );
  assertEquals(refusals, 1);
  assertEquals(runs.map(({ run }) => run.status), Array.from({ length: 8 }, () => "completed"));
  const compacted = runs.flatMap(({ events }) =>
    events.filter(({ event }) => event === "context:compaction")
  );
  assert(compacted.length > 0, "no compaction");
});

Deno.test("structured output is strict for OpenAI's schema subset, and checked by the loop", async () => {
  const schema = { type: "object", properties: { sum: { type: "integer" } }, required: ["sum"] };
  const session = {
    orchestrator: { module: "loop-streaming", config: { response_format: { type: "json_schema", schema } } },
    context: "context-simple",
  };
  const { runs: [first], requests } = await run(
    ["6 + 7?"],
    (_, count) => Response.json(response([outputMessage(count === 0 ? '{"sum": "13"}' : '{"sum": 13}')])),
    { session },
  );
  assertEquals([first!.run.status, first!.run.output_text], ["completed", '{"sum": 13}']);
  assertEquals((requests[0]!.body.text as JsonObject).format, {
    type: "json_schema",
    name: "answer",
    schema: { ...schema, additionalProperties: false },
    strict: true,
  });
});
