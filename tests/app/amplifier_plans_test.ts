/**
 * Plans as Amplifier's users write them: git sources, configs of Amplifier's modules, `${VAR}`s of every
 * type.
 */
import { createRuntime } from "../../src/app/runtime.ts";
import type { Caller, Run } from "../../src/runs/types.ts";
import { assertEquals } from "../assert.ts";

const OPERATOR: Caller = { name: "cli", namespace: "test", origin: "operator" };
/** The provider's response without a script. */
const ECHO = `You said: "Hello". I am provider-mock, a scripted provider without a model.`;
const GIT = "git+https://github.com/microsoft/amplifier-module-";

/** A plan, the codes of its warnings by path, and its answer to "Hello". */
const PLANS: Record<string, { plan: string; warnings: [path: string, code: string][]; answer?: string }> = {
  "the smallest plan of the specification": {
    plan:
      "session: { orchestrator: loop-basic, context: context-simple }\nproviders: [{ module: provider-mock }]\n",
    warnings: [],
  },
  "configs of modules that are named by text": {
    plan: `
session:
  orchestrator: loop-streaming
  orchestrator_source: ${GIT}loop-streaming@main
  context: context-simple
  context_source: ${GIT}context-simple@main
orchestrator: { config: { extended_thinking: true, stream_delay: 0.0 } }
context: { config: { max_tokens: 100000, compact_threshold: 0.8, auto_compact: true } }
providers:
  - module: provider-mock
    source: ${GIT}provider-mock@main
    config: { default_model: mock-1, debug: true, priority: 1 }
`,
    warnings: [
      ["context.config.auto_compact", "unknown_key"],
      ["orchestrator.config.extended_thinking", "unknown_key"],
      ["orchestrator.config.stream_delay", "unknown_key"],
      ["providers[0].source", "source_builtin"],
      ["session.context.source", "source_builtin"],
      ["session.orchestrator.source", "source_builtin"],
    ],
  },
  "modules as objects, with hooks and tools": {
    plan: `
session:
  orchestrator:
    module: loop-events
    source: { type: git, url: "https://github.com/microsoft/amplifier-module-loop-events", ref: main }
    config: { max_iterations: 10, timeout: 300 }
  context:
    module: context-persistent
    source: ${GIT}context-persistent@main
    config: { max_tokens: 200000, memory_files: [] }
  injection_budget_per_turn: 500
  metadata: { bundle: dev }
providers:
  - { module: provider-mock, source: "${GIT}provider-mock@v1.0.0", id: first, config: { response: Hi. } }
tools:
  - { module: tool-todo, source: "${GIT}tool-todo@main" }
  - { module: tool-task, source: "${GIT}tool-task@main", config: { max_recursion: 1 } }
hooks:
  - module: hooks-logging
    source: ${GIT}hooks-logging@main
    config: { mode: session-only, session_log_template: "~/.amplifier/{session_id}.jsonl" }
  - module: hooks-approval
    source: ${GIT}hooks-approval@main
    config: { policy_driven_only: false, default_action: deny, audit: { enabled: false } }
agents:
  helper: { description: Helps, tools: [], system: { instruction: Help. } }
spawn: { exclude_tools: [tool-task] }
`,
    warnings: [
      ["hooks[0].config.mode", "unknown_key"],
      ["hooks[0].config.session_log_template", "unknown_key"],
      ["hooks[0].source", "source_builtin"],
      ["hooks[1].config.audit", "unknown_key"],
      ["hooks[1].config.default_action", "unknown_key"],
      ["hooks[1].config.policy_driven_only", "unknown_key"],
      ["hooks[1].source", "source_builtin"],
      ["providers[0].source", "source_builtin"],
      ["session.context.source", "source_builtin"],
      ["session.orchestrator.config.timeout", "unknown_key"],
      ["session.orchestrator.source", "source_builtin"],
      ["tools[0].source", "source_builtin"],
      ["tools[1].config.max_recursion", "unknown_key"],
      ["tools[1].source", "source_builtin"],
    ],
    answer: "Hi.",
  },
  "variables for numbers and booleans": {
    plan: `
session:
  orchestrator:
    module: loop-basic
    config: { max_iterations: "\${MAX:-5}", steering: "\${STEER}", temperature: "\${T:0.2}" }
  context: { module: context-simple, config: { max_tokens: "\${MAX_TOKENS}", recall: "\${RECALL:false}" } }
providers:
  - module: provider-mock
    config: { chunk_chars: "\${CHUNK}", debug: "\${DEBUG:-true}", models: [{ id: m, context_window: "\${MAX_TOKENS}" }] }
`,
    warnings: [],
  },
};

const VARIABLES: Record<string, string> = { MAX_TOKENS: "64000", STEER: "true", CHUNK: "3" };

async function runOf(plan: string, env = VARIABLES): Promise<Run> {
  const runtime = createRuntime({ env: (name) => env[name] });
  try {
    return await (await runtime.runs.create({ plan, prompt: "Hello" }, OPERATOR)).settled("end");
  } finally {
    await runtime.close();
  }
}

for (const [name, { plan, warnings, answer = ECHO }] of Object.entries(PLANS)) {
  Deno.test(`a plan of Amplifier's checks and runs: ${name}`, async () => {
    const runtime = createRuntime({ env: (name) => VARIABLES[name] });
    const checked = await runtime.plans.check({ plan }, OPERATOR);
    await runtime.close();
    const codesByPath = (list: readonly { path?: string; code: string }[]) =>
      list.map(({ path, code }) => [path, code]).toSorted();
    assertEquals([checked.ok, checked.errors, codesByPath(checked.warnings)], [true, [], warnings]);
    const run = await runOf(plan);
    assertEquals([run.error, run.status, run.output_text], [null, "completed", answer]);
    assertEquals(codesByPath(run.warnings), warnings);
  });
}

Deno.test("check() and a run refuse a variable whose value does not fit, by its name and place", async () => {
  const { plan } = PLANS["variables for numbers and booleans"]!;
  const env: Record<string, string> = { MAX: "many-secrets", MAX_TOKENS: "0", STEER: "maybe", CHUNK: "3" };
  const expected = [
    ["session.orchestrator.config.max_iterations", 5, 15, "set MAX to a value that fits"],
    ["session.orchestrator.config.steering", 5, 44, "set STEER to a value that fits"],
    ["session.context.config.max_tokens", 6, 48, "set MAX_TOKENS to a value that fits"],
    ["providers[0].config.models[0].context_window", 9, 83, "set MAX_TOKENS to a value that fits"],
  ];
  const runtime = createRuntime({ env: (name) => env[name] });
  const { errors } = await runtime.plans.check({ plan }, OPERATOR);
  const refused = await runtime.runs.create({ plan, prompt: "x" }, OPERATOR).then(
    () => null,
    (error) => error,
  );
  await runtime.close();
  for (const details of [errors, refused.details]) {
    assertEquals(
      details.map(({ path, line, column, hint }: typeof errors[number]) => [path, line, column, hint]),
      expected,
    );
  }
  assertEquals(JSON.stringify([errors, refused.message]).includes("many-secrets"), false);
  assertEquals(refused.code, "plan_invalid");
});

Deno.test("a caller's plan gets no finding about the value of a variable that it may not read", async () => {
  const runtime = createRuntime({ env: () => "many" });
  const plan = `
session: { orchestrator: { module: loop-basic, config: { max_iterations: "\${MAX}" } }, context: context-simple }
providers: [provider-mock]
`;
  const { errors } = await runtime.plans.check({ plan }, { ...OPERATOR, origin: "caller" });
  await runtime.close();
  assertEquals(errors.map(({ path }) => path), ["session.orchestrator.config.max_iterations"]);
  assertEquals(errors[0]?.message.includes("must be"), false, errors[0]?.message);
});

Deno.test("a repository of another module, or of a module that is not built in, remains a source", async () => {
  const runtime = createRuntime();
  const plan = `
session: { orchestrator: loop-basic, context: context-simple }
providers: [provider-mock]
tools:
  - { module: tool-todo, source: "git+https://github.com/yourname/amplifier-module-tool-todos@main" }
  - { module: tool-myname, source: "git+https://github.com/yourname/amplifier-module-tool-myname@main" }
  - { module: tool-x, source: "git+https://github.com/org/repo@main#subdirectory=modules/tool-x" }
`;
  const { ok, warnings, sources } = await runtime.plans.check({ plan }, OPERATOR);
  await runtime.close();
  assertEquals([ok, warnings, sources?.map(({ module }) => module)], [
    true,
    [],
    ["tool-todo", "tool-myname", "tool-x"],
  ]);
});

Deno.test("a variable is a secret in a text field, not in a number field", async () => {
  const plan = `
session: { orchestrator: loop-basic, context: { module: context-simple, config: { max_tokens: "\${SIZE}" } } }
providers: [{ module: provider-mock, config: { response: "Take 640000 and \${WORD}." } }]
`;
  const run = await runOf(plan, { SIZE: "640000", WORD: "open-sesame" });
  assertEquals(run.output_text, "Take 640000 and [REDACTED].");
});
