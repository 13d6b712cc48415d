/**
 * The same agent over each vendor's wire format and over provider-mock: the same transcript and the same
 * events, on the command line, over HTTP, and as a sub-agent of another vendor's model. The vendors are
 * servers on loopback.
 */
import type { JsonObject } from "preamp";
import { assert, assertEquals } from "../assert.ts";
import type { FakeAnswer, Vendor } from "../modules/providers/faults.ts";
import { fakeVendor, VENDORS } from "../modules/providers/fake_vendor.ts";
import { CHAT } from "../modules/provider_openai/vendors.ts";
import { type Json, runProgram, startServer } from "./program.ts";
import { temporaryFolder } from "../support/folder.ts";

const ROWS: readonly [module: string, vendor: Vendor][] = [
  ...Object.entries(VENDORS),
  ["provider-openai", CHAT],
];

/** Text of the model beside its calls, in two deltas. */
const ANSWERS: readonly FakeAnswer[] = [
  {
    text: ["I calc", "ulate."],
    calls: [
      { id: "call_1", name: "calculator", arguments: ['{"expression":', '"6*7"}'] },
      { id: "call_2", name: "calculator", arguments: ['{"expression":"1/0"}'] },
    ],
  },
  { text: ["It is ", "42."] },
];

/** The same script for provider-mock. */
const SCRIPT = {
  chunk_chars: 7,
  responses: [
    {
      text: "I calculate.",
      tool_calls: [
        { name: "calculator", arguments: { expression: "6*7" } },
        { name: "calculator", arguments: { expression: "1/0" } },
      ],
    },
    { text: "It is 42." },
  ],
};

function planOf(module: string, config: JsonObject): JsonObject {
  return {
    session: { orchestrator: "loop-streaming", context: "context-simple" },
    system: "Be brief.",
    providers: [{ module, config }],
    tools: ["tool-calculator"],
  };
}

function configOf({ config, base_path = "" }: Vendor, url: string): JsonObject {
  return { ...config, api_key: "sk-e2e-0123456789", base_url: url + base_path };
}

/**
 * Returns what must be equal for all vendors: streamed text, and events in order. Blocks are left out,
 * because a vendor streams them one after the other and provider-mock together.
 */
function shapeOf(entries: Json[]): unknown {
  const calls = new Map<string, string>();
  const named = (id: string) => calls.get(id) ?? (calls.set(id, `call ${calls.size}`), calls.get(id));
  const deltas = entries.filter(({ event }) => event === "content_block:delta").map(({ data }) => data.delta);
  const events = entries.filter(({ event }) => !/^(llm|module|content_block|session:state)/.test(event));
  return {
    text: deltas.join(""),
    events: events.map(({ event, data: { tool_name, tool_input, tool_call_id, result, role, content } }) => ({
      event,
      tool: [tool_name, tool_input, tool_call_id && named(tool_call_id), result?.output],
      message: [role, contentShape(content)],
    })),
  };
}

function contentShape(content: Json): unknown {
  if (!Array.isArray(content)) return content;
  return content.map(({ type, text, name, input }: Json) => [type, text ?? name, input]);
}

/** Resolves to the trace of a command that runs a plan. */
async function traceOf(plan: JsonObject): Promise<Json> {
  await using temporary = await temporaryFolder();
  const folder = temporary.path;
  await Deno.writeTextFile(`${folder}/plan.json`, JSON.stringify(plan));
  const args = ["run", "-p", `${folder}/plan.json`, "--output-format", "json-trace", "What is 6 × 7?"];
  const { code, stdout, stderr } = await runProgram(args);
  assertEquals(code, 0, stderr);
  return JSON.parse(stdout);
}

const expected = traceOf(planOf("provider-mock", SCRIPT)).then(({ events }) => shapeOf(events));

for (const [module, vendor] of ROWS) {
  Deno.test(`preamp run: ${module} ${JSON.stringify(vendor.config ?? {})} gives the transcript of provider-mock`, async () => {
    await using server = fakeVendor(vendor, ANSWERS);
    const { run, events } = await traceOf(planOf(module, configOf(vendor, server.url)));
    assertEquals([run.status, run.output_text, run.tool_call_count], ["completed", "It is 42.", 2]);
    assert(run.usage.input_tokens > 0);
    assertEquals(shapeOf(events), await expected);
    assertEquals(server.requests.length, 2);
  });
}

Deno.test("HTTP: an agent of one vendor has sub-agents of the others, in one run", async () => {
  const folder = await Deno.makeTempDir();
  const servers = ROWS.map(([, vendor]) => fakeVendor(vendor, ANSWERS));
  const names = ROWS.map((_, index) => `helper_${index}`);
  const [, parent] = ROWS[0]!;
  const asking = fakeVendor(parent, [
    {
      calls: names.map((agent, index) => ({
        id: `task_${index}`,
        name: "task",
        arguments: [JSON.stringify({ agent, instruction: "What is 6 × 7?" })],
      })),
    },
    { text: ["All say 42."] },
  ]);
  try {
    const agents = Object.fromEntries(ROWS.map(([module, vendor], index) => [names[index]!, {
      description: "Calculates",
      providers: [{ module, config: { ...configOf(vendor, servers[index]!.url), priority: 1 } }],
      tools: ["tool-calculator"],
    }]));
    const plan = {
      ...planOf(ROWS[0]![0], configOf(parent, asking.url)),
      tools: ["tool-task", "tool-calculator"],
      agents,
    };
    await Deno.writeTextFile(`${folder}/team.json`, JSON.stringify(plan));
    await using program = await startServer(["--plans", folder]);
    const { status, body } = await program.post("/v1/runs", { prompt: "Ask everybody", plan_ref: "team" });
    assertEquals(
      [status, body.status, body.output_text],
      [200, "completed", "All say 42."],
      JSON.stringify(body.error),
    );
    const { body: page } = await program.get(`/v1/runs/${body.id}/events?limit=1000`);
    const children = page.data.filter(({ event }: Json) => event === "task:agent_spawned")
      .map(({ data }: Json) => data.sub_session_id);
    assertEquals(children.length, ROWS.length);
    for (const child of children) {
      const { body: { data } } = await program.get(`/v1/sessions/${child}/messages`);
      assertEquals(data.map(({ role }: Json) => role), [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
      ]);
      assertEquals(contentShape(data.at(-1).content), [["text", "It is 42.", undefined]]);
    }
  } finally {
    for (const server of [asking, ...servers]) await server[Symbol.asyncDispose]();
    await Deno.remove(folder, { recursive: true });
  }
});
