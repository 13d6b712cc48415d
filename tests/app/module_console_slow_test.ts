/**
 * Tests of modules' console output: lines of the log with the ids of the run, without secrets, in every tier.
 */
import { assertEquals } from "../assert.ts";
import { createRuntime } from "../../src/app/runtime.ts";
import { defaultPolicy } from "../../src/policy/settings.ts";
import type { Caller } from "../../src/runs/types.ts";
import { runWithFiles, TIERS } from "../support/own_modules.ts";

const SECRET = "sk-0123456789-secret";

const TALK = `
console.log("at the top", { a: 1 });
export async function mount(coordinator, { key }) {
  console.warn("mounting with", key);
  await coordinator.mount("tools", {
    name: "talk",
    description: "Talks.",
    input_schema: { type: "object" },
    async execute() {
      console.debug("called");
      console.assert(1 === 1, "never");
      console.assert(1 === 2, key);
      setTimeout(() => console.error("later"), 1);
      await new Promise((resolve) => setTimeout(resolve, 50));
      console.log("long " + "x".repeat(3985) + key);
      return "talked";
    },
  });
  return () => console.info("cleaning");
}
`;

const PLAN = {
  providers: [{
    module: "provider-mock",
    config: { responses: [{ tool_calls: [{ name: "talk", arguments: {} }] }, "done"] },
  }],
  tools: [{ module: "tool-talk", source: "./talk.js", config: { key: "${TALK_KEY}" } }],
};

for (const tier of TIERS) {
  Deno.test(`the console of a module in tier ${tier} is in the log, redacted, with the ids of the run`, async () => {
    const { run, logged } = await runWithFiles(tier, { "talk.js": TALK }, PLAN, { TALK_KEY: SECRET });
    assertEquals([run.status, run.isolation["tool-talk"]], ["completed", tier]);
    const lines = logged.filter(({ event }) => event === "module_console");
    const ids = { run_id: run.id, session_id: run.session_id, module: "tool-talk" };
    const line = (level: string, text: string) => ({
      level,
      event: "module_console",
      facts: { ...ids, text },
    });
    assertEquals(lines, [
      line("info", "at the top { a: 1 }"),
      line("warning", "mounting with [REDACTED]"),
      line("info", "called"),
      line("error", "Assertion failed [REDACTED]"),
      line("error", "later"),
      line("info", `long ${"x".repeat(3985)}`), // the text is cut before the secret that crosses the limit
      line("info", "cleaning"),
    ]);
  });
}

Deno.test("a module of this process that has a console of its own keeps it", async () => {
  const own = `const console = { log() {} };\nconsole.log("unheard");\nexport { mount } from "./talk.js";\n`;
  const plan = { ...PLAN, tools: [{ ...PLAN.tools[0], source: "./own.js" }] };
  const { run, logged } = await runWithFiles("inline", { "talk.js": TALK, "own.js": own }, plan);
  assertEquals(run.status, "completed");
  assertEquals(logged.some(({ facts }) => facts.text === "unheard"), false);
});

Deno.test("two runs that share a module of this process at the same time have their own lines", async () => {
  const folder = await Deno.makeTempDir();
  const base_url = `file://${folder}/`;
  const policy = defaultPolicy();
  const lines = new Map<unknown, unknown[]>();
  const runtime = createRuntime({
    policy: { ...policy, modules: { ...policy.modules, inline: [base_url] } },
    log: (_level, event, { run_id, text }) =>
      event === "module_console" && lines.set(run_id, [...lines.get(run_id) ?? [], text]),
  });
  try {
    await Deno.writeTextFile(`${folder}/talk.js`, TALK);
    const caller: Caller = { name: "terminal", namespace: "x", origin: "operator" };
    const plan = {
      ...PLAN,
      session: { orchestrator: "loop-basic", context: "context-simple" },
      tools: [{ ...PLAN.tools[0], config: {} }],
    };
    const start = () => runtime.runs.create({ prompt: "go", plan }, caller, { base_url });
    const handles = await Promise.all([start(), start()]);
    const runs = await Promise.all(handles.map((handle) => handle.settled("end")));
    for (const { id } of runs) {
      // the top level ran once, for the run that came first
      const texts = lines.get(id)?.filter((text) => !/^(at the top|long)/.test(String(text)));
      assertEquals(texts, [
        "mounting with undefined",
        "called",
        "Assertion failed undefined",
        "later",
        "cleaning",
      ]);
    }
  } finally {
    await runtime.close();
    await Deno.remove(folder, { recursive: true });
  }
});
