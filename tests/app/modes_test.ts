/** Modes: gates that narrow a plan, in its runs, its sub-agents and its later sessions. */
import { createRuntime } from "../../src/app/runtime.ts";
import type { Runtime } from "../../src/app/types.ts";
import type { Caller, RunRequest } from "../../src/runs/types.ts";
import type { JsonObject } from "../../src/sdk/json.ts";
import { assertEquals, assertStringIncludes } from "../assert.ts";
import { detailAt, refusal } from "../support/plans.ts";

const OPERATOR: Caller = { name: "library", namespace: "test", origin: "operator" };
const CALLER: Caller = { name: "key:a", namespace: "test", origin: "caller" };

const CALLS = [
  { name: "calculator", arguments: { expression: "6*7" } },
  { name: "todo", arguments: { action: "list" } },
];
const STEPS = [{ tool_calls: CALLS }, { text: "Done." }];

const PLAN: JsonObject = {
  session: { orchestrator: "loop-basic", context: "context-simple" },
  system: "Be brief.",
  providers: [{ module: "provider-mock", config: { responses: [...STEPS, ...STEPS, ...STEPS, ...STEPS] } }],
  tools: ["tool-calculator", "tool-todo"],
  modes: {
    look: {
      description: "Computes nothing",
      instruction: "Only list.",
      rules: [{ tool: "todo", action: "allow" }, { tool: "x", input: { path: "a*" }, action: "ask" }],
    },
    free: { rules: [{ tool: "bash", argv: ["rm", "**"], action: "deny" }], default: "allow" },
    careful: { default: "ask" },
  },
};

/** Runs a plan; resolves to the tools that ran, and to the system text. */
async function ran(runtime: Runtime, request: Partial<RunRequest>, caller = OPERATOR) {
  const handle = await runtime.runs.create({ prompt: "go", ...request }, caller, {
    ask: () => Promise.resolve({ decision: "allow" }),
  });
  const run = await handle.settled("end");
  assertEquals(run.status, "completed", JSON.stringify(run.error));
  const entries = await runtime.runs.events(caller, run.id, { limit: 500 });
  const tools = entries.filter(({ event, data }) =>
    event === "tool:post" && (data.result as JsonObject)?.success !== false
  )
    .map(({ data }) => data.tool_name);
  const { data: [first] } = await runtime.runs.requests(caller, run.id);
  const [system] = first!.messages as unknown as JsonObject[];
  return {
    run,
    tools,
    log: JSON.stringify(entries),
    system: system!.content,
    asked: entries.filter(({ event }) => event === "approval:required").length,
  };
}

Deno.test("a mode denies what its rules do not allow, adds its text, and asks by its default", async () => {
  await using runtime = createRuntime({});
  const none = await ran(runtime, { plan: PLAN });
  assertEquals([none.tools, none.system], [["calculator", "todo"], "Be brief."]);
  const look = await ran(runtime, { plan: { ...PLAN, mode: "look" } });
  assertEquals(look.tools, ["todo"]);
  assertStringIncludes(look.log, "the mode look denies calculator");
  assertEquals(look.system, 'Be brief.\n\n<mode name="look">\nOnly list.\n</mode>');
  assertEquals((await ran(runtime, { plan: PLAN, mode: "look" })).tools, ["todo"]);
  assertEquals((await ran(runtime, { plan: { ...PLAN, mode: "look" }, mode: "none" })).tools.length, 2);
  assertEquals((await ran(runtime, { plan: PLAN, mode: "free" })).tools.length, 2);
  const careful = await ran(runtime, { plan: PLAN, mode: "careful" });
  assertEquals([careful.tools.length, careful.asked], [2, 2]);
});

Deno.test("a mode only narrows: what the plan denies stays denied", async () => {
  await using runtime = createRuntime({});
  const hooks = [{ module: "hooks-approval", config: { rules: [{ tool: "todo", action: "deny" }] } }];
  assertEquals((await ran(runtime, { plan: { ...PLAN, hooks }, mode: "free" })).tools, ["calculator"]);
  assertEquals((await ran(runtime, { plan: { ...PLAN, hooks }, mode: "look" })).tools, []);
});

Deno.test("a mode holds for later runs of the session until another one is chosen, and for sub-agents", async () => {
  await using runtime = createRuntime({});
  const { run: { session_id } } = await ran(runtime, { plan: PLAN, mode: "look" });
  assertEquals((await ran(runtime, { session_id })).tools, ["todo"]);
  assertEquals((await ran(runtime, { session_id, mode: "none" })).tools.length, 2);
  assertEquals((await ran(runtime, { session_id })).tools.length, 2);
  const task = { name: "task", arguments: { agent: "helper", instruction: "go" } };
  const plan = {
    ...PLAN,
    tools: ["tool-calculator", "tool-todo", "tool-task"],
    providers: [{ module: "provider-mock", config: { responses: [{ tool_calls: [task] }, "Done."] } }],
    agents: {
      helper: {
        description: "Helps",
        mode: "none",
        providers: [{ module: "provider-mock", config: { responses: STEPS } }],
      },
    },
    modes: { look: { rules: [{ tool: "t*", action: "allow" }] } },
  };
  assertEquals((await ran(runtime, { plan, mode: "look" })).tools, ["todo", "task"]);
  assertEquals((await ran(runtime, { plan })).tools, ["calculator", "todo", "task"]);
});

Deno.test("a caller does not choose the mode of an operator's plan", async () => {
  await using runtime = createRuntime({});
  assertEquals((await ran(runtime, { plan: PLAN, mode: "look" }, CALLER)).tools, ["todo"]);
  const { run: { session_id } } = await ran(runtime, { plan: { ...PLAN, mode: "look" } });
  const error = await refusal(() => runtime.runs.create({ prompt: "go", session_id, mode: "none" }, CALLER));
  assertEquals(error.code, "policy_refused");
  const named = await refusal(() =>
    runtime.runs.create({ prompt: "go", plan_ref: "x", mode: "none" }, CALLER)
  );
  assertEquals(named.code, "policy_refused");
});

Deno.test("check and explain say what each mode decides, and errors name the modes", async () => {
  await using runtime = createRuntime({});
  const expected = [
    {
      name: "look",
      description: "Computes nothing",
      active: true,
      decides: "allows todo; asks about x path=a*; denies every other call",
    },
    { name: "free", description: null, active: false, decides: "denies bash rm **; allows every other call" },
    { name: "careful", description: null, active: false, decides: "asks about every call" },
  ];
  const plan = { ...PLAN, mode: "look" };
  assertEquals((await runtime.plans.check({ plan }, OPERATOR)).modes, expected);
  assertEquals((await runtime.plans.explain({ plan }, OPERATOR)).modes, expected);
  const error = await refusal(() =>
    runtime.runs.create({ prompt: "go", plan: PLAN, mode: "fast" }, OPERATOR)
  );
  assertStringIncludes(error.message, 'Cannot use mode "fast": the modes are look, free, careful, none');
  const wrong = await refusal(() =>
    runtime.runs.create({
      prompt: "go",
      plan: {
        ...PLAN,
        mode: "slow",
        modes: { a: { rules: [{ tool: "x" }], default: "maybe", rule: [] }, none: {}, b: { rules: {} } },
      },
    }, OPERATOR)
  );
  assertStringIncludes(detailAt(wrong, "mode").message, 'Cannot use mode "slow": the modes are ');
  for (const path of ["modes.a.rules[0]", "modes.a.default", "modes.a.rule", "modes.none", "modes.b.rules"]) {
    assertEquals(typeof detailAt(wrong, path).message, "string", path);
  }
});
