/** Runs every example plan as its header says. */
import { createRuntime } from "../src/app/runtime.ts";
import type { Runtime } from "../src/app/types.ts";
import type { Caller, Run } from "../src/runs/types.ts";
import { ERRORS } from "../src/sdk/errors.ts";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "./assert.ts";
import { refusal } from "./support/plans.ts";
import { fakeVendor, onServer, VENDORS } from "./modules/providers/fake_vendor.ts";
import { CHAT } from "./modules/provider_openai/vendors.ts";
import { parseDocument } from "../src/plan/parse/parse.ts";

const FOLDER = new URL("../plans/", import.meta.url);

const CALLER: Caller = { name: "library", namespace: "test", origin: "operator" };

/** Answer of each plan to the prompt of its first command. */
const ANSWERS: Record<string, string> = {
  agents: "Twelve guests at 7.50 are 90, and three things are left to do.",
  approval: "That is all I can say about 6 × 7.",
  calculator: "6 × 7 is 42.",
  everything:
    "Twelve guests at 7.50 are 90, the room is for Friday, and the planner has a list. Let me look at it again.",
  locked_down: "Each tool did what it was granted, and nothing else.",
  mcp: "Emma is on the shelf, and reserved for you.",
  minimal: "Hello from the smallest plan.",
  todo: "I noted it.",
  url_tool: "2026 is MMXXVI.",
};

/**
 * Plans that differ from calculator.yaml only in their provider, a vendor's; they run on a server of the
 * test.
 */
const VENDOR_PLANS = ["anthropic", "gemini", "ollama", "openai"];

/** Plans with a test of their own, because they work in a folder or on the web. */
const OWN_TESTS = ["coder", "researcher"];

/** Stop reasons of plans that do not complete. */
const STOPPED: Record<string, string> = { everything: "limit:max_tool_calls" };

/** Returns the commands in the header of a plan: the plan they name and their prompt. */
async function commandsOf(name: string): Promise<{ plan: string; prompt: string; session: boolean }[]> {
  const text = await Deno.readTextFile(new URL(`${name}.yaml`, FOLDER));
  return [...text.matchAll(/^# +preamp run -p plans\/(\S+)\.yaml( --session ID)? "(.*)"$/gm)]
    .map(([, plan = "", session, prompt = ""]) => ({ plan, prompt, session: session !== undefined }));
}

async function planOf(name: string) {
  return await parseDocument(await Deno.readTextFile(new URL(`${name}.yaml`, FOLDER)), { label: name });
}

/** Calls `body` with a runtime on the plans, then replays every run: each must be equal. */
async function withRuntime(body: (runtime: Runtime) => Promise<void>): Promise<void> {
  const runtime = createRuntime({ plans: FOLDER });
  try {
    await body(runtime);
    const { data } = await runtime.runs.list(CALLER, { limit: 100 });
    for (const { id } of data) assertEquals(await runtime.runs.replay(CALLER, id), { equal: true });
  } finally {
    await runtime.close();
  }
}

async function run(runtime: Runtime, plan_ref: string, prompt: string, session_id?: string): Promise<Run> {
  const request = { plan_ref, prompt, ...(session_id === undefined ? {} : { session_id }) };
  const handle = await runtime.runs.create(request, CALLER);
  const current = await handle.settled("attention");
  const [approval] = current.approvals;
  if (!approval) return current;
  await runtime.runs.decide(CALLER, current.id, approval.id, { decision: "allow" });
  return await handle.settled("end");
}

Deno.test("plans/ contains the plans that are tested here, and its README lists all", async () => {
  const readme = await Deno.readTextFile(new URL("README.md", FOLDER));
  await withRuntime(async (runtime) => {
    const plans = await runtime.plans.list();
    assertEquals(
      plans.map((plan) => plan.name).toSorted(),
      [...Object.keys(ANSWERS), ...OWN_TESTS, ...VENDOR_PLANS].toSorted(),
    );
    for (const { name, description } of plans) {
      assert(description, `${name} has a description`);
      assert(readme.includes(`[${name}.yaml](${name}.yaml)`), `${name} is in the README`);
    }
  });
});

for (const [name, answer] of Object.entries(ANSWERS)) {
  Deno.test(`plans/${name}.yaml is valid, and answers the prompt in its header`, () =>
    withRuntime(async (runtime) => {
      const { ok, errors, warnings } = await runtime.plans.check({ plan_ref: name }, CALLER);
      assertEquals([ok, errors, warnings], [true, [], []]);
      const commands = await commandsOf(name);
      assertEquals(commands.map((command) => command.plan), commands.map(() => name));
      const ended = await run(runtime, name, commands[0]?.prompt ?? "");
      const stopped = STOPPED[name];
      assertEquals([ended.status, ended.stop_reason], [
        stopped ? "incomplete" : "completed",
        stopped ?? "end_turn",
      ]);
      assertEquals([ended.error, ended.output_text], [null, answer]);
      assertEquals(ended.warnings, []);
    }));
}

Deno.test("plans/calculator.yaml works out every prompt of its header with the tool", () =>
  withRuntime(async (runtime) => {
    const [, second] = await commandsOf("calculator");
    const ended = await run(runtime, "calculator", second?.prompt ?? "");
    assertEquals([ended.tool_call_count, ended.output_text], [1, "(12.5 - 4) ^ 2 / 3 is 24.0833333333333."]);
  }));

Deno.test("plans/todo.yaml has its list in a later run of the session", () =>
  withRuntime(async (runtime) => {
    const [first, second] = await commandsOf("todo");
    const { session_id } = await run(runtime, "todo", first?.prompt ?? "");
    assertEquals(second?.session, true);
    const { id } = await run(runtime, "todo", second?.prompt ?? "", session_id);
    const entries = await runtime.runs.events(CALLER, id, { after: 0, limit: 1000 });
    const [listed] = entries.filter(({ event }) => event === "tool:post").map(({ data }) => data.result);
    assertStringIncludes(JSON.stringify(listed), "Water the plants");
  }));

Deno.test("plans/url_tool.yaml runs a tool from a file, with its integrity in the log", () =>
  withRuntime(async (runtime) => {
    const { id } = await run(runtime, "url_tool", "Write 2026 as the Romans did");
    const entries = await runtime.runs.events(CALLER, id, { after: 0, limit: 1000 });
    const dataOf = (event: string) =>
      entries.filter((entry) => entry.event === event).map(({ data }) => data);
    const [mounted] = dataOf("module:mounted").filter(({ module_id }) => module_id === "tool-roman");
    assertEquals([mounted?.type, mounted?.isolation], ["tool", "process"]);
    assertEquals(typeof mounted?.integrity, "string");
    assertEquals(dataOf("tool:post").map(({ result }) => result), [{
      success: true,
      output: "MMXXVI",
      error: null,
    }]);
  }));

Deno.test("plans/approval.yaml waits for a person, and continues without the tool when the call is denied", () =>
  withRuntime(async (runtime) => {
    const handle = await runtime.runs.create({ plan_ref: "approval", prompt: "What is 6 × 7?" }, CALLER);
    const waiting = await handle.settled("attention");
    assertEquals([waiting.status, waiting.approvals.length], ["awaiting_approval", 1]);
    await runtime.runs.decide(CALLER, waiting.id, waiting.approvals[0]?.id ?? "", { decision: "deny" });
    const ended = await handle.settled("end");
    assertEquals([ended.status, ended.tool_call_count], ["completed", 0]);
  }));

Deno.test("plans/agents.yaml gives two tasks to sub-agents, each with its own session and tools", () =>
  withRuntime(async (runtime) => {
    const ended = await run(runtime, "agents", "How much is the party?");
    assertEquals([ended.turn_count, ended.tool_call_count], [6, 4]);
    const { data } = await runtime.runs.sessions.list(CALLER, {});
    const children = data.filter((session) => session.parent_id === ended.session_id);
    assertEquals(children.map(({ metadata }) => metadata.agent).toSorted(), ["accountant", "planner"]);
    const entries = await runtime.runs.events(CALLER, ended.id, { limit: Number.MAX_SAFE_INTEGER });
    const called = entries.filter((entry) => entry.event === "tool:post" && entry.parent_id !== undefined);
    assertEquals(called.map((entry) => entry.data.tool_name).toSorted(), ["calculator", "todo"]);
  }));

/** Returns the events of a run's turn, and the calls of tools with their results. */
async function transcriptOf(runtime: Runtime, run_id: string): Promise<unknown[]> {
  const entries = await runtime.runs.events(CALLER, run_id, { limit: 1000 });
  return entries.flatMap(({ event, data }) => {
    if (/^(llm|content_block|hooks|module|provider:resolve|session|context):/.test(event)) return [];
    return [event === "tool:post" ? [event, data.tool_name, data.tool_input, data.result] : event];
  });
}

/** Plans, with the wire formats on which they run. */
const RUNS_ON = [
  ...VENDOR_PLANS.map((name) => [name, VENDORS[`provider-${name}`]!] as const),
  ["openai", CHAT] as const,
];

for (const [name, vendor] of RUNS_ON) {
  const on = vendor.api === undefined ? "" : ` over ${vendor.api}`;
  Deno.test(`plans/${name}.yaml is plans/calculator.yaml with another provider, and runs like it${on}`, async () => {
    const { data: calculator } = await planOf("calculator");
    const { data: plan } = await planOf(name);
    const module = `provider-${name}`;
    assertEquals({ ...plan, description: null }, { ...calculator, description: null, providers: [module] });
    await using server = fakeVendor(vendor, [
      { calls: [{ id: "call_1", name: "calculator", arguments: ['{"expression":', '"6*7"}'] }] },
      { text: ["6 × 7 ", "is 42."] },
    ]);
    await withRuntime(async (runtime) => {
      const prompt = "What is 6 × 7?";
      const { ok, errors } = await runtime.plans.check({ plan_ref: name }, CALLER);
      assertEquals([ok, errors], [true, []]);
      const expected = await (await runtime.runs.create({ plan: calculator, prompt }, CALLER)).settled("end");
      const own = onServer(plan, vendor, server.url);
      const ended = await (await runtime.runs.create({ plan: own, prompt }, CALLER)).settled("end");
      assertEquals([ended.status, ended.output_text], ["completed", "6 × 7 is 42."]);
      assertEquals(await transcriptOf(runtime, ended.id), await transcriptOf(runtime, expected.id));
    });
  });
}

for (const name of VENDOR_PLANS.filter((name) => name !== "ollama")) {
  Deno.test(`plans/${name}.yaml without a key is refused with the key's variable and where to get one`, async () => {
    const runtime = createRuntime({ plans: FOLDER, env: () => undefined });
    try {
      const error = await refusal(() => runtime.runs.create({ plan_ref: name, prompt: "hi" }, CALLER));
      assertEquals([error.code, ERRORS[error.code].status], ["module_load_failed", 422]);
      assertMatch(error.message, new RegExp(`set the variable ${name.toUpperCase()}_API_KEY.*https://`));
    } finally {
      await runtime.close();
    }
  });
}

Deno.test("plans/researcher.yaml reads a page, asks a sub-agent, and names what it could not search", async () => {
  await using web = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen() {} },
    () => new Response("<h1>Example Domain</h1>", { headers: { "content-type": "text/html" } }),
  );
  const host = `127.0.0.1:${web.addr.port}`;
  const text = await Deno.readTextFile(new URL("researcher.yaml", FOLDER));
  const plan = text.replaceAll("https://example.com/", `http://${host}/`).replace(
    "net: true",
    `net: ["${host}"]`,
  );
  const runtime = createRuntime({ plans: FOLDER });
  try {
    const handle = await runtime.runs.create({ plan, prompt: "What is example.com for?" }, CALLER);
    const run = await handle.settled("end");
    assertEquals([run.status, run.tool_call_count, run.warnings], ["completed", 3, []]);
    assertStringIncludes(run.output_text, "example.com is for documentation and examples");
    const entries = await runtime.runs.events(CALLER, run.id, { limit: 1_000 });
    const results = JSON.stringify(entries.filter(({ event }) => event === "tool:post"));
    assertStringIncludes(results, "# Example Domain");
    assertStringIncludes(results, "for use in examples");
  } finally {
    await runtime.close();
  }
});
