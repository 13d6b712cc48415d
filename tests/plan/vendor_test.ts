import { vendoredPlan } from "../../src/plan/vendor.ts";
import { assertEquals } from "../assert.ts";

const TARGETS = {
  base_url: "file:///agents/plan.yaml",
  target_url: "file:///agents/vendor/plan.yaml",
  inline: false,
  module: (source: unknown) =>
    typeof source === "string" && source.startsWith("./")
      ? { source: `./modules/${source.slice(2)}.js`, integrity: `sha256-${source.slice(2)}` }
      : undefined,
  file: (file: string) => `./files/${file}`,
};

Deno.test("vendoredPlan() rewrites sources, files and relative paths, also of agents, and leaves the rest", () => {
  const plan = {
    description: "A plan",
    session: {
      orchestrator: "loop-basic",
      context: { module: "context-own", source: "./ctx", config: { a: 1 } },
    },
    system: { file: "prompt.md" },
    providers: ["provider-mock"],
    permissions: { net: ["./host"], read: ["data", "/etc/hosts", "../up"], write: false },
    tools: [
      {
        module: "a",
        source: "./a",
        config: { source: "./not", file: "not" },
        permissions: { write: ["./out"] },
      },
      { module: "b", source: "https://stays.example/b.js" },
    ],
    agents: {
      helper: {
        "tools+": [{ module: "c", source: "./c", integrity: "sha256-old" }],
        session: { orchestrator_source: "./loop" },
        system: { file: "helper.md" },
      },
      none: "as written",
    },
  };
  const before = structuredClone(plan);
  assertEquals(vendoredPlan(plan, TARGETS), {
    description: "A plan",
    session: {
      orchestrator: "loop-basic",
      context: {
        module: "context-own",
        source: "./modules/ctx.js",
        config: { a: 1 },
        integrity: "sha256-ctx",
      },
    },
    system: { file: "./files/prompt.md" },
    providers: ["provider-mock"],
    permissions: { net: ["./host"], read: ["../data", "/etc/hosts", "../../up"], write: false },
    tools: [
      {
        module: "a",
        source: "./modules/a.js",
        config: { source: "./not", file: "not" },
        permissions: { write: ["../out"] },
        integrity: "sha256-a",
      },
      { module: "b", source: "https://stays.example/b.js" },
    ],
    agents: {
      helper: {
        "tools+": [{ module: "c", source: "./modules/c.js", integrity: "sha256-c" }],
        session: { orchestrator_source: "./modules/loop.js" },
        system: { file: "./files/helper.md" },
      },
      none: "as written",
    },
  });
  assertEquals(plan, before);
});

Deno.test("vendoredPlan() pins orchestrator_source as a spec, unless an agent changes the orchestrator", () => {
  const plan = {
    session: { orchestrator: "loop-own", orchestrator_source: "./loop", context: "context-simple" },
    orchestrator: { config: { n: 1 } },
  };
  assertEquals(vendoredPlan(plan, TARGETS), {
    session: {
      orchestrator: {
        module: "loop-own",
        source: "./modules/loop.js",
        integrity: "sha256-loop",
        config: { n: 1 },
      },
      context: "context-simple",
    },
  });
  const agents = { helper: { orchestrator: { config: { n: 2 } } } };
  assertEquals(vendoredPlan({ ...plan, agents }, TARGETS), {
    ...plan,
    session: { ...plan.session, orchestrator_source: "./modules/loop.js" },
    agents,
  });
});

Deno.test("vendoredPlan() trusts what it vendored if asked to, but for a module that wants a process", () => {
  const plan = {
    session: { orchestrator: "loop-own", orchestrator_source: "./loop", context: "context-simple" },
    tools: [
      { module: "a", source: "./a" },
      { module: "b", source: "./b", isolation: "process" },
      { module: "c", source: "https://stays.example/c.js" },
      "tool-calculator",
    ],
  };
  const { session, tools } = vendoredPlan(plan, { ...TARGETS, inline: true }) as typeof plan;
  const isolation = [session.orchestrator, ...tools].map((spec) =>
    (spec as { isolation?: string }).isolation
  );
  assertEquals(isolation, ["inline", "inline", "process", undefined, undefined]);
});
