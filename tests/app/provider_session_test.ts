/**
 * Sessions on real providers: what goes back to a vendor, cache breakpoints, and a change of the provider.
 */
import { createRuntime } from "../../src/app/runtime.ts";
import type { Runtime } from "../../src/app/types.ts";
import type { Caller } from "../../src/runs/types.ts";
import type { JsonObject } from "../../src/sdk/json.ts";
import { assert, assertEquals } from "../assert.ts";
import { blockEvents, messageEvents } from "../modules/providers/anthropic_wire.ts";
import { type FakeServer, fakeServer } from "../modules/providers/fake_server.ts";
import { fakeVendor, VENDORS } from "../modules/providers/fake_vendor.ts";

const OPERATOR: Caller = { name: "cli", namespace: "test", origin: "operator" };
const KEY = { api_key: "sk-session-0123456789", prices: { input: "1", output: "1" } };

function planOf(...providers: unknown[]): JsonObject {
  return {
    session: { orchestrator: "loop-streaming", context: "context-simple" },
    system: "Be brief. ".repeat(20),
    providers,
    tools: ["tool-calculator"],
  };
}

async function run(runtime: Runtime, prompt: string, request: JsonObject) {
  const handle = await runtime.runs.create({ prompt, ...request }, OPERATOR);
  const result = await handle.settled("end");
  const warnings = result.warnings.filter(({ code }) => code !== "secret_literal"); // KEY is in the plan
  assertEquals([result.status, result.error, warnings], ["completed", null, []]);
  return result;
}

/** Claude thinks, calls a tool and answers. */
function thinkingServer(): FakeServer {
  const answers = [
    messageEvents([
      ...blockEvents(0, { type: "thinking", thinking: "", signature: "" }, [
        { type: "thinking_delta", thinking: "Multiply." },
        { type: "signature_delta", signature: "sig==" },
      ]),
      ...blockEvents(1, { type: "redacted_thinking", data: "opaque==" }, []),
      ...blockEvents(2, { type: "tool_use", id: "toolu_1", name: "calculator", input: {} }, [
        { type: "input_json_delta", partial_json: '{"expression":"6*7"}' },
      ]),
    ], "tool_use"),
    messageEvents(
      blockEvents(0, { type: "text", text: "" }, [{ type: "text_delta", text: "42" }]),
      "end_turn",
    ),
  ];
  return fakeServer((_request, count) =>
    new Response(answers[Math.min(count, 1)]!.join(""), { headers: { "content-type": "text/event-stream" } })
  );
}

const THINKING = [
  { type: "thinking", thinking: "Multiply.", signature: "sig==" },
  { type: "redacted_thinking", data: "opaque==" },
  { type: "tool_use", id: "toolu_1", name: "calculator", input: { expression: "6*7" } },
];

/** Returns the blocks of the assistant's first turn without cache breakpoints. */
function firstTurn({ body }: FakeServer["requests"][number]): JsonObject[] {
  const turn = (body.messages as { role: string; content: JsonObject[] }[]).find(({ role }) =>
    role === "assistant"
  );
  return turn!.content.map(({ cache_control: _, ...block }) => block);
}

Deno.test("thinking goes back to its vendor unchanged, also in the next run of the session", async () => {
  await using server = thinkingServer();
  const runtime = createRuntime({});
  try {
    const plan = planOf({ module: "provider-anthropic", config: { ...KEY, base_url: server.url } });
    const { session_id } = await run(runtime, "What is 6 × 7?", { plan });
    await run(runtime, "Sure?", { session_id });
    assertEquals(server.requests.length, 3);
    assertEquals(firstTurn(server.requests[1]!), THINKING);
    assertEquals(firstTurn(server.requests[2]!), THINKING);
  } finally {
    await runtime.close();
  }
});

Deno.test("requests have cache breakpoints, at most four, and keep those of earlier requests", async () => {
  await using server = thinkingServer();
  const runtime = createRuntime({});
  try {
    const plan = planOf({ module: "provider-anthropic", config: { ...KEY, base_url: server.url } });
    let session: JsonObject = { plan };
    for (let turn = 0; turn < 4; turn++) {
      const { session_id } = await run(runtime, `Question ${turn}: ${"word ".repeat(400)}`, session);
      session = { session_id };
    }
    const marks = server.requests.map(({ body }) => JSON.stringify(body).split('"cache_control"').length - 1);
    assert(marks.every((count) => count >= 1 && count <= 4), `breakpoints: ${marks}`);
  } finally {
    await runtime.close();
  }
});

Deno.test("a session continues with each other provider, and with the first again", async () => {
  await using claude = thinkingServer();
  const runtime = createRuntime({});
  const others = Object.entries(VENDORS).filter(([module]) => module !== "provider-anthropic");
  const servers = others.map(([, vendor]) => fakeVendor(vendor, [{ text: ["I agree."] }]));
  try {
    const own = { module: "provider-anthropic", config: { ...KEY, base_url: claude.url } };
    const { session_id } = await run(runtime, "What is 6 × 7?", { plan: planOf(own) });
    for (const [index, [module, vendor]] of others.entries()) {
      const base_url = servers[index]!.url + (vendor.base_path ?? "");
      const plan = planOf({ module, config: { ...KEY, ...vendor.config, base_url } });
      const { output_text } = await run(runtime, "Do you agree?", { session_id, plan });
      assertEquals(output_text, "I agree.");
      const sent = JSON.stringify(servers[index]!.requests[0]!.body);
      assert(!/Multiply|opaque|sig==/.test(sent), `${module} received thinking of Claude`);
      assert(sent.includes("6*7") && sent.includes("42"), `${module} received no tool call`);
    }
    await run(runtime, "And you?", { session_id, plan: planOf(own) });
    assertEquals(firstTurn(claude.requests[2]!), THINKING);
  } finally {
    await runtime.close();
    for (const server of servers) await server[Symbol.asyncDispose]();
  }
});

Deno.test("two entries of one provider are two providers", async () => {
  await using server = thinkingServer();
  const runtime = createRuntime({});
  try {
    const entry = (fields: JsonObject, config: JsonObject) => ({
      module: "provider-anthropic",
      ...fields,
      config: { ...KEY, base_url: server.url, ...config },
    });
    const plan = planOf(
      entry({}, {}),
      entry({ instance_id: "cheap" }, { model: "claude-haiku-4-5", priority: 1 }),
    );
    await run(runtime, "What is 6 × 7?", { plan });
    assertEquals(server.requests.map(({ body }) => body.model), ["claude-haiku-4-5", "claude-haiku-4-5"]);
  } finally {
    await runtime.close();
  }
});
