/** What the plan editor offers and explains, without a browser. */
import { createPreamp } from "preamp/server";
import { PreampClient } from "preamp/client";
import { helpAt, suggestionsAt } from "../../../src/server/page/app/plan/assist.ts";
import {
  coloured,
  type Node,
  offsetOfPath,
  readSyntax,
  type Scalar,
} from "../../../src/server/page/app/plan/syntax.ts";
import { parsePlanText } from "../../../src/plan/parse/parse.ts";
import { assert, assertEquals } from "../../assert.ts";

const PLANS = new URL("../../../plans/", import.meta.url);

const schema = await (async () => {
  await using preamp = createPreamp({ authenticate: null, log: null });
  const client = new PreampClient({
    url: "http://localhost",
    fetch: (input, init) => preamp.fetch(new Request(input, init)),
  });
  return await client.getPlanSchema();
})();

/** The plans of the project, as YAML and as JSON. */
const SAMPLES: Readonly<Record<string, string>> = Object.fromEntries(
  await Array.fromAsync(Deno.readDir(PLANS), async ({ name }) => {
    if (!name.endsWith(".yaml")) return [];
    const text = await Deno.readTextFile(new URL(name, PLANS));
    const json = JSON.stringify((await parsePlanText(text)).data, null, 2);
    return [[name, text], [`${name} as JSON`, json]];
  }).then((files) => files.flat()),
);

/** Returns what is offered at `|` in a text, as it would be written. */
function offered(text: string, is_typing = false): string[] | null {
  const at = text.indexOf("|");
  const found = suggestionsAt(text.slice(0, at) + text.slice(at + 1), at, schema, is_typing);
  return found && found.items.map(({ insert }) => insert);
}

function* keysIn(node: Node | null): Generator<Scalar> {
  if (node?.kind === "map") {
    for (const { key, value } of node.pairs) {
      yield key;
      yield* keysIn(value);
    }
  } else if (node?.kind === "list") { for (const item of node.items) yield* keysIn(item); }
}

function dataOf(node: Node | null): unknown {
  if (node === null || node.kind === "scalar") return node?.text ?? null;
  if (node.kind === "list") return node.items.map(dataOf);
  return Object.fromEntries(node.pairs.map(({ key, value }) => [key.text, dataOf(value)]));
}

Deno.test("readSyntax() reads each sample plan in JSON as a parser does, and colours keep the text", () => {
  assert(Object.keys(SAMPLES).length > 20);
  for (const [name, text] of Object.entries(SAMPLES)) {
    const { tokens, root } = readSyntax(text);
    assertEquals(
      coloured(text, tokens).map((parts) => parts.map(([, part]) => part).join("")).join("\n"),
      text,
    );
    if (!name.endsWith("JSON")) continue;
    const written = JSON.parse(text, (_, value) => typeof value === "object" ? value : `${value}`);
    const read = JSON.parse(
      JSON.stringify(dataOf(root)),
      (_, value) => typeof value === "string" ? JSON.parse(`"${value}"`) : value,
    );
    assertEquals(read, written, name);
  }
});

Deno.test("nothing of the editor fails at any beginning of a sample plan", () => {
  const texts = Object.entries(SAMPLES).filter(([name]) =>
    name.endsWith("yaml") || name.startsWith("minimal")
  );
  for (const [, text] of texts) {
    for (let length = 0; length <= text.length; length++) {
      const part = text.slice(0, length);
      suggestionsAt(part, length, schema);
      if (length % 9 === 0) helpAt(readSyntax(part), length, schema);
    }
  }
  const deep = ["[", '{"a":', "- ", "a:\n ", "\"\n'\n", "${", "|\n"].map((part) => part.repeat(20_000));
  for (const text of deep) assertEquals(readSyntax(text).tokens.every(({ from, to }) => from < to), true);
});

Deno.test("at each key of each sample plan that the schema explains, the key is offered", () => {
  let explained = 0;
  for (const [name, text] of Object.entries(SAMPLES)) {
    const syntax = readSyntax(text);
    for (const { from, quote, text: key } of keysIn(syntax.root)) {
      if (!helpAt(syntax, from, schema)?.description) continue; // names of agents, inputs of scripted calls
      explained++;
      const begin = from + quote.length;
      const without = text.slice(0, begin) + text.slice(begin + key.length);
      const found = suggestionsAt(without, begin, schema);
      assertEquals(found?.items.some(({ label }) => label === key), true, `${name}: ${key}`);
    }
  }
  assert(explained > 300, `${explained} keys`);
});

Deno.test("suggestionsAt() offers the keys of an object, with what begins their values", () => {
  assertEquals(offered("ses|"), ["session:\n  "]);
  assertEquals(offered("prov|"), ["providers:\n  - "]);
  assertEquals(offered("tools: []\nsess|ion: {}"), ["session"]);
  assertEquals(offered("limits:\n  max_tool_calls: 3\n  max_t|"), ["max_total_tokens: "]);
  assertEquals(offered("limits: { max_i| }"), ["max_iterations: "]);
  assertEquals(offered('{ "lim|" }'), ['"limits": ']);
  assertEquals(offered('{\n  "ses|\n  "tools": []\n}'), ['"session": ']);
  assertEquals(offered("agents:\n  a:\n    model_r|"), ["model_role: "]);
});

Deno.test("suggestionsAt() offers values, and the config of the module that is named", () => {
  assertEquals(offered("session:\n  orchestrator: |"), ["loop-basic", "loop-events", "loop-streaming"]);
  assertEquals(offered("tools:\n  - bash|"), ["tool-bash"]);
  assertEquals(offered("tools:\n  bash|"), ["- tool-bash"]);
  assertEquals(offered("tools:\n  - tool-todo\n  bash|"), ["- tool-bash"]);
  assertEquals(offered("tools: [tool-todo, bash|]\nhooks: []"), ["tool-bash"]);
  assertEquals(offered('{ "tools": ["bash|"] }'), ['"tool-bash"']);
  const approval = "hooks:\n  - module: hooks-approval\n    config:\n      ";
  assertEquals(offered(`${approval}pres|`), ["preset: "]);
  assertEquals(offered(`${approval}rules:\n        - { tool: x, action: | }`), ["allow", "ask", "deny"]);
  const loop = "session: { orchestrator: loop-basic }\norchestrator:\n  config:\n    ";
  assertEquals(offered(`${loop}max_it|`), ["max_iterations: "]);
  assertEquals(offered("providers:\n  - module: provider-mock\n    required: |"), ["true", "false"]);
});

Deno.test("suggestionsAt() offers nothing in texts and comments, and leaves a complete value alone", () => {
  for (
    const text of ["# ses|", "system: |x", "system: You are t|", "description: >\n  t|", "nothing:\n  a|"]
  ) {
    assertEquals(offered(text), null, text);
  }
  assertEquals(offered("session:\n  orchestrator: loop-basic|", true), null);
  assertEquals(offered("limits: { on_limit: | }", true), ["end", "pause"]);
  const window = "providers:\n  - { module: provider-mock, config: { chunk_chars: | } }";
  assertEquals([offered(window), offered(window, true)], [["20"], null], "a default only if it is asked for");
});

Deno.test("helpAt() explains keys and modules", () => {
  const text = "session: { orchestrator: loop-basic }\nlimits: { on_limit: end }\nnothing: 1\n";
  const help = (part: string) => helpAt(readSyntax(text), text.indexOf(part) + 1, schema);
  assertEquals(help("on_limit"), {
    name: "on_limit",
    type: "one of end, pause",
    default: '"end"',
    description: "What a reached limit does: it ends the run, or waits for a person",
  });
  assertEquals(help("loop-basic")?.name, "loop-basic");
  assertEquals(help("nothing"), null);
});

Deno.test("offsetOfPath() finds what a path leads to, or the last thing on the way", () => {
  const text = 'tools:\n  - a\n  - module: b\n    config: { "x y": [1, 2] }\n';
  const found = (path: string) => {
    const at = offsetOfPath(readSyntax(text), path);
    return at === null ? null : text.slice(at, at + 5);
  };
  assertEquals(found("tools"), "tools");
  assertEquals(found("tools[0]"), "a\n  -");
  assertEquals(found("tools[1]"), "modul");
  assertEquals(found('tools[1].config["x y"][1]'), "2] }\n");
  assertEquals(found("tools[1].config.nothing"), "confi");
  assertEquals([found("nothing"), found("")], [null, null]);
});
