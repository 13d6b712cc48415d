/**
 * A request that is too long, in each vendor's own form: the run compacts, sends it once more, and replays.
 */
import { createRuntime } from "../../src/app/runtime.ts";
import type { Caller } from "../../src/runs/types.ts";
import type { Coordinator, JsonObject } from "../../src/sdk/types.ts";
import { type Wire, WIRES } from "../e2e/provider_wires.ts";
import { fakeServer } from "../modules/providers/fake_server.ts";
import type { FakeAnswer } from "../modules/providers/faults.ts";
import { assert, assertEquals, assertMatch } from "../assert.ts";

const CALLER: Caller = { name: "key:a", namespace: "a", origin: "operator" };

/** What each vendor answers to a request that is too long, and the numbers in it. */
const REFUSALS: Readonly<Record<string, { status: number; body: JsonObject; numbers: [number?, number?] }>> =
  {
    "Anthropic": {
      status: 400,
      body: {
        type: "error",
        error: { type: "invalid_request_error", message: "prompt is too long: 12900 tokens > 8000 maximum" },
      },
      numbers: [8000, 12_900],
    },
    "Chat Completions": {
      status: 400,
      body: {
        error: {
          message:
            "This model's maximum context length is 8000 tokens. However, your messages resulted in 12900 tokens. Please reduce the length of the messages.",
          type: "invalid_request_error",
          param: "messages",
          code: "context_length_exceeded",
        },
      },
      numbers: [8000, 12_900],
    },
    "Responses": {
      status: 400,
      body: {
        error: {
          message:
            "Your input exceeds the context window of this model. Please adjust your input and try again.",
          type: "invalid_request_error",
          param: "input",
          code: "context_length_exceeded",
        },
      },
      numbers: [],
    },
    "Gemini": {
      status: 400,
      body: {
        error: {
          code: 400,
          message: "The input token count (12900) exceeds the maximum number of tokens allowed (8000).",
          status: "INVALID_ARGUMENT",
        },
      },
      numbers: [8000, 12_900],
    },
    "Ollama": {
      status: 400,
      body: {
        error: {
          code: 400,
          message: "the request exceeds the available context size, try increasing it",
          type: "exceed_context_size_error",
          n_prompt_tokens: 12_900,
          n_ctx: 8000,
        },
      },
      numbers: [8000, 12_900],
    },
  };

const CALLS: FakeAnswer = {
  calls: ["a", "b", "c"].map((id) => ({ id: `call_${id}`, name: "big", arguments: ["{}"] })),
};

/** A server that answers in order; `refused` is a request that is too long. */
function vendorServer({ vendor }: Wire, name: string, replies: readonly (FakeAnswer | "refused")[]) {
  return fakeServer((request, count) => {
    const reply = replies[Math.min(count, replies.length - 1)]!; // a test gives at least one
    const { status, body } = REFUSALS[name]!;
    if (reply === "refused") return Response.json(body, { status });
    const streamed = request.body?.stream === true || request.path.includes(":streamGenerateContent");
    return streamed
      ? new Response(vendor.events(reply).join(""), { headers: { "content-type": vendor.stream_type } })
      : Response.json(vendor.whole(reply));
  });
}

/** Runs the tool's plan on a model and returns the run with its log, after its replay. */
async function runOn(wire: Wire, url: string, plan: JsonObject = {}) {
  const env = wire.env(url);
  const model = wire.model.slice(wire.provider.length + 1);
  const runtime = createRuntime({
    env: (name) => env[name],
    modules: {
      "tool-big": (coordinator: Coordinator) =>
        coordinator.mount("tools", {
          name: "big",
          description: "Returns a long text.",
          execute: () => Promise.resolve("some words of a result ".repeat(800)),
        }),
    },
  });
  try {
    const whole: JsonObject = {
      session: { orchestrator: "loop-streaming", context: "context-simple" },
      // a larger window than the model has: the estimate alone does not compact
      providers: [
        wire.entry ?? { module: `provider-${wire.provider}`, config: { model, context_window: 100_000 } },
      ],
      tools: ["tool-big", "tool-task"],
      ...plan,
    };
    const handle = await runtime.runs.create(
      { prompt: "Read it.", plan: whole, model: wire.model },
      CALLER,
      {},
    );
    const run = await handle.settled("end");
    const entries = await runtime.runs.events(CALLER, run.id, { limit: 10_000 });
    assertEquals(await runtime.runs.replay(CALLER, run.id), { equal: true });
    return { run, entries };
  } finally {
    await runtime.close();
  }
}

const RECOVERY = ["provider:retry", "context:pre_compact", "context:compaction", "context:post_compact"];

for (const [name, wire] of Object.entries(WIRES)) {
  const { numbers: [limit_tokens, requested_tokens] } = REFUSALS[name]!;

  Deno.test(`${name}: a request that is too long is compacted and sent once more`, async () => {
    await using server = vendorServer(wire, name, [CALLS, "refused", { text: ["Read."] }]);
    const { run, entries } = await runOn(wire, server.url);
    assertEquals([run.status, run.error, run.output_text], ["completed", null, "Read."]);
    assertEquals(entries.map(({ event }) => event).filter((event) => RECOVERY.includes(event)), RECOVERY);
    const { data } = entries.find(({ event }) => event === "provider:retry")!;
    assertEquals(
      [data.error_type, data.limit_tokens, data.requested_tokens],
      ["ContextLengthError", limit_tokens, requested_tokens],
    );
    const [, refused, sent] = server.requests.map(({ body }) => JSON.stringify(body).length);
    assert(sent! < refused! * 0.8, `${sent} characters after ${refused}`);
  });

  Deno.test(`${name}: a second refusal ends the run with context_overflow and the numbers`, async () => {
    await using server = vendorServer(wire, name, [CALLS, "refused"]);
    const { run } = await runOn(wire, server.url);
    assertEquals([run.status, run.error?.code], ["failed", "context_overflow"]);
    const counted = limit_tokens === undefined
      ? /received about \d+ tokens, after a compaction/
      : /it takes 8000 tokens\): received about \d+ tokens, counted as 12900, after a compaction/;
    assertMatch(run.error?.message ?? "", counted);
    assertEquals(server.requests.length, 3);
  });
}

Deno.test("a sub-agent's request that is too long is compacted in its own session", async () => {
  const wire = WIRES["Anthropic"]!;
  const task = { agent: "reader", instruction: "Read it." };
  await using server = vendorServer(wire, "Anthropic", [
    { calls: [{ id: "call_t", name: "task", arguments: [JSON.stringify(task)] }] },
    CALLS,
    "refused",
    { text: ["Read by the reader."] },
    { text: ["It was read."] },
  ]);
  const agents = { reader: { description: "Reads.", agents: "none" } };
  const { run, entries } = await runOn(wire, server.url, { agents });
  assertEquals([run.status, run.output_text], ["completed", "It was read."]);
  const recovery = entries.filter(({ event }) => RECOVERY.includes(event));
  assertEquals(recovery.map(({ event }) => event), RECOVERY);
  assert(recovery.every(({ parent_id }) => parent_id === run.session_id));
});
