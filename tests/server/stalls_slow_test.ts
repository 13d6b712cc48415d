/**
 * Tests that no module blocks the server's thread: data from modules is limited with an error that names the
 * limit, and long work yields.
 */
import { defaultPolicy } from "../../src/policy/settings.ts";
import { createPreamp, type Preamp } from "../../src/server/mod.ts";
import { assert, assertMatch } from "../assert.ts";
import { busyTime } from "../support/busy_time.ts";
import { someOf } from "../support/cases.ts";

type Plan = Record<string, unknown>;

/** Maximum processor time in milliseconds that a module may occupy the server's thread for. */
const MOST_MS = 100;

const source = (code: string) => `data:text/javascript,${encodeURIComponent(code)}`;

const SESSION = { orchestrator: "loop-streaming", context: "context-simple" };
const SUM = { name: "calculator", arguments: { expression: "1" } };

/** Creates a plan whose provider first answers with the value of an expression, then with text. */
function planOfProvider(answer: string): Plan {
  const code = `let calls = 0; export const mount = (c) => c.mount("providers", {
    name: "bomb", getInfo: () => ({ id: "bomb", display_name: "Bomb", capabilities: [], defaults: {} }),
    listModels: () => [], parseToolCalls: () => [], complete: async () => calls++ === 0 ? (${answer}) : "done" })`;
  return {
    session: SESSION,
    providers: [{ module: "provider-bomb", source: source(code) }],
    tools: ["tool-calculator"],
  };
}

/** Creates a plan with a hook whose provider calls a tool several times. */
function planOfHook(mount: string, calls = 1): Plan {
  const responses = [{ tool_calls: Array(calls).fill(SUM) }, "done"];
  return {
    session: SESSION,
    providers: [{ module: "provider-mock", config: { responses } }],
    tools: ["tool-calculator"],
    hooks: [{ module: "hook-bomb", source: source(`export const mount = async (c) => { ${mount} }`) }],
  };
}

const CALLS = (count: number) =>
  `{ content: [], tool_calls: Array.from({ length: ${count} }, (_, n) => ({ id: "c" + n, name: "calculator", arguments: { expression: "1" } })) }`;
const BLOCKS = (count: number) =>
  `{ content: Array.from({ length: ${count} }, () => ({ type: "text", text: "a" })) }`;
const HANDLERS = (count: number) => `for (let n = 0; n < ${count}; n++) c.hooks.register("*", () => null)`;

/** Name of a case, its plan, and a pattern of the run's response. */
const BOMBS: readonly (readonly [label: string, plan: Plan, expected: RegExp])[] = [
  ["20,000 tool calls", planOfProvider(CALLS(20_000)), /limits\.max_answer_tool_calls\): received 20000/],
  [
    "20,000 tool calls in the content",
    planOfProvider(
      `{ content: Array.from({ length: 1_000 }, () => ({ type: "tool_call", name: "calculator", input: {} })) }`,
    ),
    /limits\.max_answer_tool_calls\): received 1000/,
  ],
  ["300,000 content blocks", planOfProvider(BLOCKS(300_000)), /limits\.max_answer_blocks\): received 300000/],
  [
    "more handlers than a session may have",
    planOfHook(HANDLERS(300)),
    /limits\.max_hooks|more than 256 objects/,
  ],
  ["as many tool calls as there may be", planOfProvider(CALLS(128)), /"status":"completed"/],
  ["as many blocks as there may be", planOfProvider(BLOCKS(2_000)), /"status":"completed"/],
  ["a hundred handlers, each called at every event", planOfHook(HANDLERS(100), 10), /"status":"completed"/],
  [
    "much state, many capabilities and contributors",
    planOfHook(
      `for (let n = 0; n < 80; n++) { c.registerCapability("c" + n, {}); c.registerContributor("x", "y", () => n) }
      c.hooks.register("tool:pre", () => { for (let n = 0; n < 3_000; n++) c.session_state["k" + n] = n })`,
    ),
    /"status":"completed"/,
  ],
];

async function post(preamp: Preamp, plan: Plan): Promise<string> {
  const response = await preamp.fetch(
    new Request("http://localhost/v1/runs", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ prompt: "go", plan }),
    }),
  );
  return await response.text();
}

for (const tier of ["inline", "process"] as const) {
  Deno.test(`no data from a module blocks the server's thread, in tier ${tier}`, async (t) => {
    const policy = defaultPolicy();
    policy.modules.allow = ["data:"];
    if (tier === "inline") policy.modules.inline = ["data:"];
    const preamp = createPreamp({ authenticate: null, policy });
    try {
      const usual = planOfHook(`c.hooks.register("tool:pre", () => null)`);
      await post(preamp, usual); // warms up lazy imports
      for (const [label, plan, expected] of someOf(BOMBS, 3)) {
        await t.step(label, async () => {
          const { value: body, busy_ms } = await busyTime(() => post(preamp, plan));
          assertMatch(body, expected);
          assert(busy_ms < MOST_MS, `${label}: the thread was busy for ${busy_ms} ms`);
        });
      }
    } finally {
      await preamp.close();
    }
  });
}
