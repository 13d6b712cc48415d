import { compilePlan } from "../../src/plan/compile.ts";
import { mayBeBundle } from "../../src/bundle/kinds.ts";
import { commentedPlan } from "../../src/bundle/commented_plan.ts";
import type { JsonObject } from "../../src/sdk/json.ts";
import { assert, assertEquals, assertMatch, assertRejects, assertStringIncludes } from "../assert.ts";
import { importTexts, messagesOf, textReader } from "../support/bundle_files.ts";

const SESSION = "session: { orchestrator: loop-streaming, context: context-simple }\n";

function bundle(name: string, more = ""): string {
  return `bundle: { name: ${name} }\n${more}`;
}

function idsOf(list: unknown): unknown[] {
  return (list as (string | JsonObject)[]).map((spec) => typeof spec === "string" ? spec : spec.module);
}

function configOf(list: unknown, module: string): JsonObject {
  return (list as JsonObject[]).find((spec) => spec.module === module)!.config as JsonObject;
}

Deno.test("importBundle() makes a plan of front matter and the text below it", async () => {
  const { plan, report } = await importTexts({
    "bundle.md": `\uFEFF---\n${
      bundle(
        "notes",
        "description: Keeps notes\ntools: [{ module: tool-filesystem }, { module: tool-todo }]\n",
      )
    }---\n\n# Notes\n\nBe brief.\n`,
  });
  assertEquals(plan.system, "# Notes\n\nBe brief.");
  assertEquals(plan.description, "Keeps notes");
  assertEquals(plan.session, { orchestrator: "loop-streaming", context: "context-simple" });
  assertEquals(idsOf(plan.tools), ["tool-filesystem", "tool-todo"]);
  assertEquals(idsOf(plan.hooks), ["hooks-approval"]);
  assert(report.every(({ level }) => level === "note"));
});

Deno.test("importBundle() composes includes in their order and names their chain", async () => {
  const texts = {
    "bundle.md": `---\n${bundle("root", "includes: [{ bundle: 'root:behaviors/a' }]\n")}---\n`,
    "behaviors/a.yaml": bundle(
      "a",
      "includes: [{ bundle: 'root:behaviors/b' }]\nhooks: [{ module: hooks-timing }]\n",
    ),
    "behaviors/b.yml": bundle(
      "b",
      "includes: ['root:behaviors/c']\nhooks: [{ module: hooks-todo-reminder }]\n",
    ),
    "behaviors/c/bundle.yaml": bundle("c", "hooks: [{ module: hooks-status-context }]\n"),
  };
  const { plan, parts } = await importTexts(texts);
  assertEquals(idsOf(plan.hooks), ["hooks-status-context", "hooks-todo-reminder", "hooks-timing"]);
  const text = await commentedPlan(plan, parts);
  assertStringIncludes(
    text,
    "  # from behaviors/c/bundle.yaml, included by behaviors/b.yml, behaviors/a.yaml, bundle.md\n",
  );
});

Deno.test("importBundle() joins lists, keeps the first place and takes the last scalar", async () => {
  const provider = (config: string) => `providers: [{ module: provider-mock, config: ${config} }]\n`;
  const { plan, report } = await importTexts({
    "bundle.yaml": bundle(
      "root",
      `includes: ['root:a', 'root:b']\n${provider("{ response: root }")}hooks: [{ module: hooks-timing }]\n`,
    ),
    "a.yaml": bundle(
      "a",
      `${provider("{ responses: [x, y], response: a }")}hooks: [{ module: hooks-todo-reminder }]\n`,
    ),
    "b.yaml": bundle("b", provider("{ responses: [y, z] }")),
  }, { path: "bundle.yaml" });
  assertEquals(configOf(plan.providers, "provider-mock"), { responses: ["x", "y", "z"], response: "root" });
  assertEquals(report.map(({ level }) => level), ["note", "note"]); // of the session
});

Deno.test("importBundle() says that a bundle that comes again undoes what another one set", async () => {
  const context = (tokens: number) =>
    `session: { context: { module: context-simple, config: { max_tokens: ${tokens} } } }\n`;
  const imported = await importTexts({
    "bundle.yaml": bundle("root", "includes: ['root:b', 'root:c']\n"),
    "b.yaml": bundle("b", `includes: ['root:d']\n${context(2)}`),
    "c.yaml": bundle("c", "includes: ['root:d']\n"),
    "d.yaml": bundle("d", context(1)),
  }, { path: "bundle.yaml" });
  const { context: slot } = imported.plan.session as JsonObject;
  assertEquals((slot as JsonObject).config, { max_tokens: 1 });
  const [note = ""] = messagesOf(imported).filter((message) => message.includes("max_tokens"));
  assertMatch(note, /is 1 of d\.yaml again, not 2 of b\.yaml/);
});

Deno.test("importBundle() replaces another orchestrator with its config", async () => {
  const imported = await importTexts({
    "bundle.yaml": bundle(
      "root",
      "includes: ['root:a']\nsession: { orchestrator: { module: loop-basic } }\n",
    ),
    "a.yaml": bundle(
      "a",
      "session: { orchestrator: { module: loop-streaming, config: { max_iterations: 3 } } }\n",
    ),
  }, { path: "bundle.yaml" });
  assertEquals((imported.plan.session as JsonObject).orchestrator, "loop-basic");
  assertMatch(
    messagesOf(imported).join("\n"),
    /loop-basic of bundle\.yaml replaces loop-streaming of a\.yaml/,
  );
});

Deno.test("importBundle() leaves out circles and composes the rest", async () => {
  const hook = (module: string) => `hooks: [{ module: ${module} }]\n`;
  const imported = await importTexts({
    "bundle.yaml": bundle("root", `includes: ['root:a', 'root:b', root]\n${hook("hooks-timing")}`),
    "a.yaml": bundle("a", `includes: ['root:bundle', 'root:a.yaml']\n${hook("hooks-todo-reminder")}`),
    "b.yaml": bundle("b", "includes: ['root:c']\n"),
    "c.yaml": bundle("c", `includes: ['root:b']\n${hook("hooks-redaction")}`),
  }, { path: "bundle.yaml" });
  assertEquals(idsOf(imported.plan.hooks), ["hooks-todo-reminder", "hooks-redaction", "hooks-timing"]);
  const circles = messagesOf(imported, "warning").filter((message) => message.includes("circle"));
  assertEquals(circles.map((message) => message.split("circle: ")[1]), [
    "bundle.yaml → a.yaml → bundle.yaml",
    "a.yaml → a.yaml",
    "b.yaml → c.yaml → b.yaml",
    "bundle.yaml → bundle.yaml",
  ]);
});

Deno.test("importBundle() gives the model the instruction, then each mentioned file once", async () => {
  const { plan } = await importTexts({
    "bundle.yaml": bundle(
      "root",
      "includes: ['root:base']\ncontext: { include: ['root:context/y.md', plain.txt, '@root:context/x.md'] }\n",
    ),
    "base/bundle.md": `---\n${bundle("base")}---\nRead @root:context/x.md.\n`,
    "context/x.md": "X mentions @root:context/z.md",
    "context/y.md": "Y mentions @root:context/never.md",
    "context/z.md": "Z",
    "plain.txt": "PLAIN",
  }, { path: "bundle.yaml" });
  const text = plan.system as string;
  assert(text.startsWith('Read @root:context/x.md.\n\n---\n\n<context_file paths="@root:context/x.md">'));
  assertEquals(text.match(/^(?:X|Y|Z|PLAIN)\b/gm), ["X", "Z", "PLAIN", "Y"]);
});

Deno.test("importBundle() knows what is a mention, and escapes variables", async () => {
  const imported = await importTexts({
    "bundle.md": `---\n${bundle("root")}---
Not \`@root:a.md\`, not \`\`code @root:a.md\`\`, not me@root.com.
\`\`\`
@root:a.md
\`\`\`
Read @root:b.md. See @root:folder, @root:missing.md and @notes/today.md; it costs \${PRICE}.
`,
    "a.md": "AAA",
    "b.md": "BBB",
    "folder/one.md": "1",
    "folder/inner/two.md": "2",
  });
  const text = imported.plan.system as string;
  assertEquals(text.includes("AAA"), false);
  assertStringIncludes(text, "BBB");
  assertStringIncludes(text, "DIR  inner\nFILE one.md");
  assertStringIncludes(text, "it costs $${PRICE}.");
  assertEquals(messagesOf(imported, "warning"), [
    'The mention "root:missing.md" of bundle.md is left out: there is no such file',
  ]);
  const compiled = await compilePlan(imported.plan, { origin: "operator" });
  assertStringIncludes(compiled.plan.system!, "it costs ${PRICE}.");
});

const HELPER = `---
meta: { name: other-name, description: "Helps: with everything" }
model_role: [fast, general]
tools:
  - module: tool-filesystem
    source: git+https://github.com/microsoft/amplifier-module-tool-filesystem@main
  - module: tool-web
---
You help. @root:context/x.md
`;

Deno.test("importBundle() reads agents with their texts, tools and roles", async () => {
  const { plan, parts } = await importTexts({
    "bundle.md": `---\n${
      bundle(
        "root",
        "tools: [{ module: tool-delegate }, { module: tool-filesystem }]\nagents: { include: ['root:helper'] }\ncontext: { include: ['root:context/y.md'] }\n",
      )
    }---\nRoot.\n`,
    "agents/helper.md": HELPER,
    "context/x.md": "X",
    "context/y.md": "Y",
  });
  const { "root:helper": agent } = plan.agents as Record<string, JsonObject>;
  assertEquals(agent, {
    description: "Helps: with everything",
    system: '<context_file paths="@root:context/x.md">\nX\n</context_file>\n\nYou help. @root:context/x.md',
    model_role: ["fast", "general"],
    tools: ["tool-filesystem", { module: "tool-web", permissions: { net: true } }],
  });
  assertEquals((plan.tools as JsonObject[])[0], {
    module: "tool-task",
    config: { tool_name: "delegate", inherit_context: "recent", exclude_tools: ["tool-task"] },
    permissions: { net: true },
  });
  assertEquals(
    parts.find(({ path }) => path[1] === "root:helper")?.from,
    "agents/helper.md, included by bundle.md",
  );
});

Deno.test("importBundle() warns of an agent without a file, and refuses one that names a bundle", async () => {
  const imported = await importTexts({
    "bundle.md": `---\n${
      bundle(
        "root",
        "agents: { include: ['root:gone'], own: { description: Own, instructions: 'root:own.md' } }\n",
      )
    }---\n`,
    "own.md": "OWN",
  });
  assertEquals(Object.keys(imported.plan.agents as JsonObject), ["own"]);
  assertEquals((imported.plan.agents as Record<string, JsonObject>).own, {
    description: "Own",
    system: "OWN",
  });
  assertMatch(messagesOf(imported, "warning")[0]!, /agent "root:gone" of bundle\.md is left out/);
  await assertRejects(
    () => importTexts({ "bundle.md": `---\n${bundle("r", "agents: { x: { bundle: 'r:x' } }\n")}---\n` }),
    Error,
    "agents.x.bundle is not read",
  );
});

Deno.test("importBundle() translates modules and reports the others", async () => {
  const imported = await importTexts({
    "bundle.yaml": bundle(
      "root",
      `session:
  orchestrator: { module: loop-streaming, config: { extended_thinking: true } }
  context: { module: context-simple, config: { max_tokens: 1000, auto_compact: true } }
providers:
  - { module: provider-anthropic, config: { default_model: claude-x, max_tokens: 5, effort: low, thinking_budget_tokens: 9 } }
tools: [{ module: tool-apply-patch }, { module: tool-lsp }, { module: tool-mine, source: ./mine.ts }]
hooks: [{ module: hooks-streaming-ui }, { module: hooks-guard, source: "git+https://example.com/o/r" }]
spawn: { exclude_tools: [tool-delegate, tool-todo] }
`,
    ),
  }, { path: "bundle.yaml" });
  const { plan, modules } = imported;
  assertEquals(plan.session, {
    orchestrator: { module: "loop-streaming", config: { reasoning_effort: "medium" } },
    context: { module: "context-simple", config: { max_tokens: 1000 } },
  });
  assertEquals(configOf(plan.providers, "provider-anthropic"), {
    default_model: "claude-x",
    max_tokens: 5,
    reasoning_effort: "low",
    thinking_budget: 9,
  });
  assertEquals((plan.tools as JsonObject[])[0]!.config, { dialect: "patch" });
  assertEquals((plan.tools as JsonObject[])[1], { module: "tool-mine", source: "mine.ts" });
  assertEquals(plan.spawn, { exclude_tools: ["tool-task", "tool-todo"] });
  assertEquals(modules.left_out, ["tool-lsp", "hooks-streaming-ui", "hooks-guard"]);
  const warnings = messagesOf(imported, "warning");
  assertEquals(warnings.length, 2);
  assertMatch(warnings[1]!, /hooks-guard of bundle\.yaml is left out: .* a hook may have been a gate/);
});

Deno.test("importBundle() takes local modules of this program, and no others", async () => {
  const imported = await importTexts({
    "bundle.yaml": bundle(
      "root",
      "tools: [{ module: tool-a, source: ./modules/tool-a }, { module: tool-b, source: ./modules/tool-b }, { module: tool-c, source: 'https://example.com/c/mod.ts' }]\n",
    ),
    "modules/tool-a/mod.ts": "export default {};",
    "modules/tool-b/pyproject.toml": "",
  }, { path: "bundle.yaml" });
  assertEquals(imported.plan.tools, [
    { module: "tool-a", source: "modules/tool-a/mod.ts" },
    { module: "tool-c", source: "https://example.com/c/mod.ts" },
  ]);
  assertEquals(imported.modules.left_out, ["tool-b"]);
});

Deno.test("importBundle() takes the module in the folder of the bundle itself", async () => {
  const imported = await importTexts({
    "bundle.yaml": bundle("root", "tools: [{ module: tool-a, source: ./ }]\n"),
    "mod.ts": "export default {};",
  }, { path: "bundle.yaml" });
  assertEquals(imported.plan.tools, [{ module: "tool-a", source: "mod.ts" }]);
});

Deno.test("importBundle() keeps denied commands, and reports keys without a counterpart", async () => {
  const imported = await importTexts({
    "bundle.yaml": bundle(
      "root",
      "tools: [{ module: tool-bash, config: { denied_commands: [sudo, 'rm -rf *', 'a | b'], timeout: 60, colour: red } }, { module: tool-mcp }]\n",
    ),
  }, { path: "bundle.yaml" });
  assertEquals(configOf(imported.plan.tools, "tool-bash"), { timeout_s: 60 });
  assertEquals(configOf(imported.plan.hooks, "hooks-approval").rules, [
    { tool: "bash", argv: ["sudo", "**"], action: "deny" },
    { tool: "bash", argv: ["rm", "-rf", "**"], action: "deny" },
  ]);
  assertEquals(messagesOf(imported, "warning"), [
    'The denied command "a | b" of bundle.yaml is asked about, and not denied',
    "colour of tool-bash in bundle.yaml has no counterpart",
    "tool-mcp of bundle.yaml is left out: it names no server",
  ]);
});

Deno.test("importBundle() makes gates of modes, for all that they do not name too", async () => {
  const { plan, modules } = await importTexts({
    "bundle.md": `---\n${
      bundle("root", "tools: [tool-filesystem, tool-mode]\nhooks: [{ module: hooks-mode }]\n")
    }---\nRead @AGENTS.md.\n`,
    "modes/look.md": `---
mode:
  name: Look Around
  description: Looks
  tools: { safe: [read_file, my_tool], warn: [bash], block: [write_file], odd: [grep] }
---
LOOK for \${X}.
`,
    "modes/README.md": "# Modes\n",
  });
  assertEquals(plan.instructions, "project");
  assertEquals(plan.modes, {
    "Look-Around": {
      description: "Looks",
      instruction: "LOOK for $${X}.",
      rules: [
        { tool: "write", action: "deny" },
        { tool: "grep", action: "deny" },
        { tool: "bash", action: "ask" },
        { tool: "job", action: "ask" },
        { tool: "read", action: "allow" },
        { tool: "my_tool", action: "allow" },
      ],
      default: "deny",
    },
  });
  assertEquals(modules, { run: ["tool-filesystem", "tool-mode", "hooks-mode"], left_out: [] });
});

Deno.test("importBundle() warns when the gates of a bundle are missing", async () => {
  const imported = await importTexts({ "bundle.yaml": bundle("root", "hooks: [{ module: hooks-mode }]\n") }, {
    path: "bundle.yaml",
  });
  assertMatch(
    messagesOf(imported, "warning")[0]!,
    /modes of root are left out, and with them what they deny/,
  );
});

Deno.test("importBundle() never loses a rule that denies", async () => {
  const gate = (rules: string) => ({
    "bundle.yaml": bundle(
      "root",
      `tools: [tool-bash]\nhooks: [{ module: hooks-approval, config: { rules: ${rules} } }]\n`,
    ),
  });
  const path = { path: "bundle.yaml" };
  const denied = await importTexts(
    gate("[{ pattern: 'rm *', action: auto_deny }, { pattern: write, action: auto_deny }]"),
    path,
  );
  assertEquals(configOf(denied.plan.hooks, "hooks-approval"), {
    preset: "ask-writes",
    rules: [
      { tool: "bash", argv: ["rm", "**"], action: "deny" },
      { tool: "write", action: "deny" },
      { tool: "bash", argv: ["write", "**"], action: "deny" },
    ],
  });
  const allowed = await importTexts(gate("[{ pattern: 'ls *', action: auto_approve }]"), path);
  assertEquals(configOf(allowed.plan.hooks, "hooks-approval"), { preset: "ask-writes" });
  assertMatch(messagesOf(allowed, "warning")[0]!, /allows "ls \*" is left out/);
  await assertRejects(
    () => importTexts(gate("[{ pattern: '^rm (-rf)?', action: auto_deny }]"), path),
    Error,
    "cannot be written as words",
  );
});

Deno.test("importBundle() reads an agent of another program", async () => {
  const text = `---
name: code-reviewer
description: Use this agent when: code was written. Examples: <example>user: "Look"</example>
tools: Read, Grep, Bash(git diff *), mcp__github__list_issues, Teleport
model: sonnet
color: blue
---

You review code.
`;
  const imported = await importTexts({ "reviewer.md": text }, { path: "reviewer.md" });
  assertEquals(imported.plan.system, "You review code.");
  assertEquals(idsOf(imported.plan.tools), ["tool-filesystem", "tool-search", "tool-bash"]);
  const { rules } = configOf(imported.plan.hooks, "hooks-approval") as { rules: JsonObject[] };
  assertEquals(rules.map(({ tool, action }) => `${tool} ${action}`), [
    "read allow",
    "grep allow",
    "bash ask",
    "job ask",
    "github__list_issues ask",
    "* deny",
  ]);
  assertEquals(messagesOf(imported, "warning"), ['The tool "Teleport" of reviewer.md does not exist here']);
  const roster = await importTexts({
    "bundle.md": `---\n${bundle("root", "tools: [tool-task]\nagents: { include: [reviewer] }\n")}---\n`,
    "agents/reviewer.md": text,
  });
  const { reviewer } = roster.plan.agents as Record<string, JsonObject>;
  assertEquals(reviewer!.provider_preferences, [{ provider: "anthropic", model: "claude-sonnet-*" }]);
  assertMatch(String(reviewer!.description), /^Use this agent when: code was written/);
});

Deno.test("importBundle() makes a plan of a folder of agents", async () => {
  const agent = (name: string, more = "") =>
    `---\nname: ${name}\ndescription: Does ${name}\n${more}---\nYou do ${name}.\n`;
  const { plan } = await importTexts({
    ".claude/agents/review.md": agent("review", "tools: Read, Grep\n"),
    ".claude/agents/build.md": agent("build"),
    ".claude/agents/README.md": "# Agents\n",
  }, { path: ".claude/agents" });
  const agents = plan.agents as Record<string, JsonObject>;
  assertEquals(Object.keys(agents), ["build", "review"]);
  assertEquals(agents.build, { description: "Does build", system: "You do build." });
  const [gate] = agents.review!.hooks as JsonObject[];
  assertEquals((gate!.config as { rules: JsonObject[] }).rules.at(-1), { tool: "*", action: "deny" });
  assertEquals(idsOf(plan.tools), ["tool-filesystem", "tool-search", "tool-bash", "tool-task"]);
  await assertRejects(
    () => importTexts({ "docs/a.md": "# A\n" }, { path: "docs" }),
    Error,
    "no such folder with a bundle.md",
  );
});

Deno.test("mayBeBundle() knows a bundle from a plan", () => {
  const plans = [
    "---\n" + SESSION,
    '{"session": {"orchestrator": "loop-basic"}}',
    "# bundle: x\nagents:\n  helper: { description: includes }\n",
  ];
  const bundles = [
    "bundle: { name: a }\n",
    '{ "bundle": { "name": "a" } }',
    "agents:\n  # mine\n  include: [a]\n",
    "context: { include: [a] }\n",
    "---\nname: a\n---\nText\n",
    `${SESSION}mode: look\n`, // parsing it shows that it is a plan
  ];
  assertEquals(plans.filter((text) => mayBeBundle(text, "p.yaml")), []);
  assertEquals(bundles.filter((text) => !mayBeBundle(text, "p.yaml")), []);
  assertEquals(mayBeBundle("text", "a.md"), true);
});

Deno.test("importBundle() reads a profile over the one that it extends, without its text", async () => {
  const imported = await importTexts({
    "profiles/dev.md": `---
profile: { name: dev, extends: base, description: Dev }
session: { orchestrator: loop-basic, context: context-simple, max_tokens: 900 }
agents: { dirs: [./agents], include: [one], inline: { two: { description: Two } } }
task: { max_recursion_depth: 1 }
ui: { show_thinking_stream: true }
---
Dev text.
`,
    "profiles/base.md":
      `---\nprofile: { name: base }\nsession: { orchestrator: loop-streaming }\ntools: [{ module: tool-todo }]\n---\nBase text.\n`,
    "profiles/agents/one.md": "---\nname: one\ndescription: One\n---\nONE\n",
    "profiles/agents/other.md": "---\nname: other\ndescription: Other\n---\nOTHER\n",
  }, { path: "profiles/dev.md" });
  const { plan } = imported;
  assertEquals(plan.system, "Dev text.");
  assertEquals(idsOf(plan.tools), ["tool-todo"]);
  assertEquals(plan.session, {
    orchestrator: "loop-basic",
    context: { module: "context-simple", config: { max_tokens: 900 } },
  });
  assertEquals(Object.keys(plan.agents as JsonObject), ["./agents/one", "two"]);
  assertMatch(messagesOf(imported, "warning")[0]!, /max_recursion_depth/);
});

Deno.test("importBundle() says what a file is that is no plan", async () => {
  const files = {
    "m.md": "---\nmode: { name: look, tools: { safe: [read_file] } }\n---\nLOOK\n",
    "SKILL.md": "---\nname: x\ndescription: y\n---\nDo.\n",
    "r.yaml": "name: r\nsteps: [{ id: a, prompt: b }]\n",
    "AGENTS.md": "# Rules\n",
  };
  const said = {
    "m.md": "it is a mode",
    "SKILL.md": "it is a skill",
    "r.yaml": "it is a recipe",
    "AGENTS.md": "it is a text",
  };
  for (const [path, fact] of Object.entries(said)) {
    await assertRejects(() => importTexts(files, { path }), Error, fact);
  }
});

Deno.test("importBundle() reads nothing outside of the bundle's folder", async () => {
  const outside = [
    "root:../../secret",
    "../secret",
    "root:a/../../secret.yaml",
    "/etc/passwd",
    "file:///etc/passwd",
    "~/x",
  ];
  for (const include of outside) {
    const reader = textReader({ "dir/bundle.yaml": bundle("root", `includes: ['${include}']\n`) });
    await assertRejects(
      () =>
        importTexts({}, { reader, path: "bundle.yaml", text: bundle("root", `includes: ['${include}']\n`) }),
      Error,
      "Cannot import bundle.yaml",
    );
    assertEquals(reader.asked, []);
  }
  for (const key of ["context: { include: ['root:../x'] }", "agents: { include: ['root:../../x'] }"]) {
    await assertRejects(
      () => importTexts({ "bundle.yaml": bundle("root", `${key}\n`) }, { path: "bundle.yaml" }),
      Error,
      "leads out of the bundle's folder",
    );
  }
  await assertRejects(
    () => importTexts({ "bundle.md": `---\n${bundle("root")}---\nRead @root:../x.md\n` }),
    Error,
    "leads out of the bundle's folder",
  );
});

Deno.test("importBundle() reads other hosts only when it may", async () => {
  const git = "git+https://github.com/o/r@v1#subdirectory=behaviors/x.yaml";
  const raw = "https://raw.githubusercontent.com/o/r/v1/";
  const texts = {
    "bundle.yaml": bundle("root", `${SESSION}includes: [{ bundle: '${git}' }]\n`),
    [`${raw}bundle.md`]: `---\n${bundle("upper")}---\n`,
    [`${raw}behaviors/x.yaml`]: bundle("x-behavior", "context: { include: ['upper:context/c.md'] }\n"),
    [`${raw}context/c.md`]: "CONTEXT",
  };
  const reader = textReader(texts);
  await assertRejects(
    () => importTexts(texts, { reader, path: "bundle.yaml" }),
    Error,
    "preamp plan import BUNDLE -o plan.yaml",
  );
  assertEquals(reader.asked.filter((url) => !url.startsWith("file:")), []);
  const { plan, parts } = await importTexts(texts, { path: "bundle.yaml", remote: true });
  assertStringIncludes(plan.system as string, "CONTEXT");
  assertMatch(
    parts[0]!.from + parts.at(-1)!.from,
    /git\+https:\/\/github\.com\/o\/r@v1#subdirectory=context\/c\.md|bundle\.yaml/,
  );
  const ssh = { "bundle.yaml": bundle("root", "includes: ['git+ssh://git@github.com/o/r']\n") };
  await assertRejects(
    () => importTexts(ssh, { path: "bundle.yaml", remote: true }),
    Error,
    "git+ssh: is not supported",
  );
});

Deno.test("importBundle() refuses two bundles of one name, and says where an unknown one could be", async () => {
  await assertRejects(
    () =>
      importTexts({
        "bundle.yaml": bundle("root", "includes: ['root:a', 'root:b']\n"),
        "a/bundle.yaml": bundle("same"),
        "b/bundle.yaml": bundle("same"),
      }, { path: "bundle.yaml" }),
    Error,
    'two bundles named "same": a/bundle.yaml and b/bundle.yaml',
  );
  const unknown = await importTexts({ "bundle.yaml": bundle("root", "includes: [foundation]\n") }, {
    path: "bundle.yaml",
  });
  assertMatch(
    unknown.report[0]!.hint!,
    /--name foundation=git\+https:\/\/github\.com\/microsoft\/amplifier-foundation@main/,
  );
});

Deno.test("importBundle() names the file that cannot be read, with line and column", async () => {
  const broken = {
    "bundle.yaml": bundle("root", "includes: ['root:a']\n"),
    "a.yaml": "bundle: { name: a }\nx: [\n",
  };
  const error = await importTexts(broken, { path: "bundle.yaml" }).catch((error) => error);
  const [{ file, line }] = error.details;
  assertEquals([file, line], ["a.yaml", 2]);
});

Deno.test("importBundle() takes no more time and memory than its bounds allow", async () => {
  const path = { path: "bundle.yaml" };
  const hook = "hooks: [{ module: hooks-timing }]\n";
  const doubling = Object.fromEntries(
    Array.from({ length: 30 }, (_, index) => [
      `b${index}.yaml`,
      bundle(`b${index}`, `includes: ['root:b${index + 1}', 'root:b${index + 1}']\n${hook}`),
    ]),
  );
  const root = bundle("root", "includes: ['root:b0']\n");
  const { plan } = await importTexts(
    { ...doubling, "b30.yaml": bundle("b30", hook), "bundle.yaml": root },
    path,
  );
  assertEquals(idsOf(plan.hooks), ["hooks-timing"]);
  const again = bundle("root", `includes: [${"'root:a',".repeat(9_000)}]\n`);
  await assertRejects(
    () => importTexts({ "bundle.yaml": again, "a.yaml": bundle("a") }, path),
    Error,
    "2000 includes",
  );
  const all = Array.from({ length: 60 }, (_, index) => `'root:c${index}'`).join(",");
  const circles = Object.fromEntries(
    Array.from({ length: 60 }, (_, index) => [`c${index}.yaml`, bundle(`c${index}`, `includes: [${all}]\n`)]),
  );
  await assertRejects(
    () => importTexts({ ...circles, "bundle.yaml": bundle("root", "includes: ['root:c0']\n") }, path),
    Error,
    "more than 32 deep",
  );
  const text = "x".repeat(900_000);
  const agents = Array.from({ length: 40 }, (_, index) => `  a${index}: { instruction: "Read @root:x.md" }\n`)
    .join("");
  await assertRejects(
    () => importTexts({ "bundle.yaml": bundle("root", `agents:\n${agents}`), "x.md": text }, path),
    Error,
    "more than 20000000 characters",
  );
  const odd = ["`" + " ``".repeat(200_000), `@a${".".repeat(400_000)}b`, "\n".repeat(900_000)];
  for (const body of odd) {
    await importTexts({ "bundle.md": `---\n${bundle("root")}---\n${body}\n` });
  }
  await assertRejects(
    () => importTexts({ "bundle.md": `---\n${"\n".repeat(300_000)}---\nx` }),
    Error,
    "a text without",
  );
});

Deno.test("importBundle() keeps to its bounds", async () => {
  const many = (count: number) => Array.from({ length: count }, (_, index) => index);
  const wide = {
    "bundle.yaml": bundle("root", `includes: [${many(9_000).map((index) => `'root:b${index}.yaml'`)}]\n`),
  };
  const bundles = Object.fromEntries(many(9_000).map((index) => [`b${index}.yaml`, "{}"] as const));
  const path = { path: "bundle.yaml" };
  await assertRejects(() => importTexts({ ...wide, ...bundles }, path), Error, "more than 256 bundles");
  const deep = Object.fromEntries(
    many(40).map((index) =>
      [`b${index}.yaml`, bundle(`b${index}`, `includes: ['root:b${index + 1}.yaml']\n`)] as const
    ),
  );
  await assertRejects(
    () => importTexts({ ...deep, "bundle.yaml": bundle("root", "includes: ['root:b0.yaml']\n") }, path),
    Error,
    "more than 32 deep",
  );
  const texts = Object.fromEntries(many(1_100).map((index) => [`t${index}.md`, `text ${index}`] as const));
  const context = bundle(
    "root",
    `context: { include: [${many(1_100).map((index) => `'root:t${index}.md'`)}] }\n`,
  );
  await assertRejects(
    () => importTexts({ ...texts, "bundle.yaml": context }, path),
    Error,
    "more than 1000 files",
  );
  const long = {
    "bundle.yaml": bundle("root", "context: { include: ['root:long.md'] }\n"),
    "long.md": "x".repeat(1_000_001),
  };
  await assertRejects(() => importTexts(long, path), Error, "more than 1000000 bytes");
  const bomb = "a: &a [x, x]\n" + many(60).map((index) => `k${index}: *a\n`).join("") +
    "bundle: { name: bomb }\n";
  await assertRejects(() => importTexts({ "bundle.yaml": bomb }, path), Error, "more than 50 aliases");
});
