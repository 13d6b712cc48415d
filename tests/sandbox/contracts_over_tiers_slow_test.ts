/**
 * The contract suites ask the same of a module wherever it runs: our own modules and Amplifier's examples
 * pass inline and in a process, and modules that are broken fail the same checks with the same
 * words.
 */
import {
  testContext,
  type TestFunction,
  testHook,
  testOrchestrator,
  testProvider,
  testTool,
} from "preamp/testing";
import type { Module, ModuleType } from "../../src/sdk/types.ts";
import type { JsonObject } from "../../src/sdk/json.ts";
import { errorMessage } from "../../src/sdk/errors.ts";
import { assert, assertEquals } from "../assert.ts";
import { someOf } from "../support/cases.ts";
import { type Code, Lab } from "../support/sandbox.ts";

/** How a suite is run on a subject. */
interface SuiteRun {
  readonly type: ModuleType;
  readonly config?: JsonObject;
  /** Further options of the type's suite. */
  readonly options?: JsonObject;
  /** Whether cases fail, inline and elsewhere. Default: none does. */
  readonly fails?: boolean;
  /** Whether a failure has the same words everywhere. Default: it has. */
  readonly other_words?: boolean;
}

/**
 * Cases that a module which fails them inline may pass elsewhere, because of what is between it and its host:
 * nothing is shared, a call that is cancelled already is not made, and calls are read from a response where
 * it is made.
 */
const MENDED_ON_THE_WAY: ReadonlySet<string> = new Set([
  "getMessages() gives a copy",
  "getMessagesForRequest() gives a copy",
  "execute() settles when its call was cancelled before it began",
  "complete() rejects when it was cancelled before it began",
  "parseToolCalls() finds none in a response of text",
  "parseToolCalls() finds the calls of a response",
]);

const SUITES = {
  orchestrator: testOrchestrator,
  context: testContext,
  provider: testProvider,
  tool: testTool,
  hook: testHook,
} as const;

const CALCULATOR = {
  name: "calculator",
  description: "Evaluates arithmetic.",
  parameters: { type: "object", properties: { expression: { type: "string" } } },
};
const ASKS_FOR_A_TOOL = { messages: [{ role: "user", content: "What is 6 * 7?" }], tools: [CALCULATOR] };

const SUBJECTS: readonly (readonly [path: string, run: SuiteRun])[] = [
  ["modules/loop-streaming", { type: "orchestrator" }],
  ["modules/loop-basic", { type: "orchestrator" }],
  ["modules/loop-events", { type: "orchestrator" }],
  ["modules/context-simple", { type: "context" }],
  ["modules/context-summarizing", { type: "context" }],
  ["modules/context-persistent", { type: "context" }],
  ["modules/provider-mock", {
    type: "provider",
    options: { tool_request: ASKS_FOR_A_TOOL },
  }],
  ["modules/tool-calculator", { type: "tool", options: { input: { expression: "2+2" } } }],
  ["modules/tool-todo", { type: "tool" }],
  ["modules/hooks-timing", { type: "hook" }],
  ["modules/hooks-redaction", { type: "hook", config: { patterns: ["4[0-9]"] } }],
  ["modules/hooks-status-context", { type: "hook" }],
  ["modules/hooks-approval", {
    type: "hook",
    options: {
      expectations: [
        { event: "tool:pre", data: { tool_name: "calculator", tool_input: {} }, action: "continue" },
        { event: "tool:pre", data: { tool_name: "bash", tool_input: { command: "ls" } }, action: "ask_user" },
      ],
    },
  }],
  ["modules/hooks-todo-reminder", { type: "hook" }],
  ["tests/fixtures/amplifier/calculator_tool.ts", {
    type: "tool",
    options: { input: { expression: "2+2" } },
  }],
  ["tests/fixtures/amplifier/mock_provider.ts", {
    type: "provider",
    config: { api_key: "k" },
    fails: true,
  }],
  ["tests/fixtures/amplifier/timing_hook.ts", { type: "hook" }],
  // ported with their bugs: Amplifier's example context gives out its own list and parts calls from results;
  // its loop ignores hooks, and falls over what a bare tool returns, which elsewhere is a result
  ["tests/fixtures/amplifier/simple_context.ts", { type: "context", fails: true }],
  ["tests/fixtures/amplifier/simple_orchestrator.ts", {
    type: "orchestrator",
    fails: true,
    other_words: true,
  }],
  ["tests/fixtures/amplifier/quick_start_tool.ts", { type: "tool" }],
  ["tests/fixtures/amplifier/complete_tool.ts", {
    type: "tool",
    options: { input: { param: "x" } },
  }],
  ["tests/fixtures/amplifier/placeholder_tool.ts", { type: "tool" }],
  ["tests/fixtures/amplifier/schema_method_tool.ts", { type: "tool" }],
];

/** Modules that break their contract, and how. */
const BROKEN: readonly (readonly [what: string, type: ModuleType, code: string])[] = [
  [
    "a tool that crashes, has no description and changes its input",
    "tool",
    `export const mount = (c) => c.mount("tools", { name: "t x", description: "", input_schema: { type: "string" },
       execute(input) { if (!input.a) throw new TypeError("a is not there"); return 1 } });`,
  ],
  [
    "a tool whose result says nothing",
    "tool",
    `export const mount = () => ({ name: "t", description: "d", execute: () => ({ success: false }) });`,
  ],
  [
    "a tool module that mounts nothing",
    "tool",
    `export const mount = () => ({ no: "tool" });`,
  ],
  [
    "a provider without info that lists nonsense and ignores its signal",
    "provider",
    `export const mount = (c) => c.mount("providers", { name: "p", getInfo: () => ({ id: "p" }),
       listModels: () => [{ id: "m" }], parseToolCalls: () => "none",
       complete: async (request, { onDelta } = {}) => {
         onDelta?.({ block_index: 0, block_type: "text", delta: "one" });
         return { content: [{ type: "text", text: "another" }] };
       } });`,
  ],
  [
    "a hook that answers nonsense and throws",
    "hook",
    `export const mount = (c) => { c.hooks.register("tool:pre", () => 42);
       c.hooks.register("*", () => { throw new RangeError("no") }); return "done" };`,
  ],
  [
    "a context that forgets",
    "context",
    `export const mount = (c) => c.mount("context", { addMessage() {}, getMessages: () => [],
       getMessagesForRequest: () => "view", setMessages() {}, clear() {} });`,
  ],
  [
    "a loop that answers by itself",
    "orchestrator",
    `export const mount = (c) => c.mount("orchestrator", {
       async execute(prompt, context, providers, tools, hooks) {
         await hooks.emit("orchestrator:complete", { orchestrator: "x", turn_count: "one", status: "success" });
         return "";
       } });`,
  ],
];

/** A case, and what it failed with; null for one that passed. */
type CaseResult = [title: string, failure: string | null];

/** Runs a suite; each case has a module of its own, that `after` ends. */
async function outcomes(
  { type, config = {}, options = {} }: SuiteRun,
  create: () => Promise<Module>,
  after: () => Promise<void>,
): Promise<CaseResult[]> {
  const cases: [string, () => Promise<void>][] = [];
  const test: TestFunction = (name, run) => cases.push([name.slice("subject: ".length), run]);
  // one call for five suites: each takes a module, and of the options those it knows
  const suite = SUITES[type] as (name: string, create: () => Promise<Module>, options: object) => void;
  suite("subject", create, { ...options, config, test, deadline_ms: 60_000 });
  const results: CaseResult[] = [];
  for (const [title, run] of cases) {
    let failure: string | null = null;
    try {
      await run();
    } catch (error) {
      failure = errorMessage(error);
    }
    await after();
    results.push([title, failure]);
  }
  return results;
}

/** Resolves to a fresh copy of a module in this isolate. */
async function linkHere(code: string, unique: number): Promise<Module> {
  return await import(`data:text/javascript,${encodeURIComponent(`${code}\n// ${unique}`)}`) as Module;
}

async function compare(lab: Lab, code: Code, run: SuiteRun, inline: () => Promise<Module>): Promise<void> {
  const expected = await outcomes(run, inline, () => Promise.resolve());
  assert(expected.length >= 8);
  const failed = expected.filter(([, failure]) => failure !== null);
  if (run.fails) assert(failed.length > 0, "it is broken, and no case says so");
  else assertEquals(failed, []);
  const words = (failure: string | null) => failure !== null && run.other_words ? "failed" : failure;
  const results = await outcomes(run, () => lab.open(code, { type: run.type }), () => lab.end());
  const wanted = expected.map(([title, failure], index): CaseResult => {
    const mended = MENDED_ON_THE_WAY.has(title) && results[index]?.[1] === null;
    return [title, mended ? null : words(failure)];
  });
  assertEquals(results.map(([title, failure]) => [title, words(failure)]), wanted);
}

Deno.test("contract suites pass in every tier, for our own modules and Amplifier's examples", async (t) => {
  await using lab = new Lab();
  for (const [path, run] of someOf(SUBJECTS, 2)) {
    await t.step(path, async () => {
      const file = path.endsWith(".ts") ? path : `${path}/mod.ts`;
      const url = new URL(`../../${file}`, import.meta.url);
      await compare(lab, await lab.bundle(url.href), run, () => import(url.href) as Promise<Module>);
    });
  }
});

Deno.test("contract suites fail a broken module in a process with the same words as inline", async (t) => {
  await using lab = new Lab();
  let copies = 0;
  for (const [what, type, code] of someOf(BROKEN, 2)) {
    await t.step(what, async () => {
      const run = { type, fails: true };
      await compare(lab, { code, uses: [] }, run, () => linkHere(code, ++copies));
    });
  }
});
