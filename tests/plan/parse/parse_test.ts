import { formatDetail } from "../../../src/plan/check/findings.ts";
import { toData } from "../../../src/plan/parse/document.ts";
import { DOCUMENT_LIMITS } from "../../../src/plan/parse/document_limits.ts";
import { readJson } from "../../../src/plan/parse/json_tree.ts";
import { parsePlanText, withPlaces } from "../../../src/plan/parse/parse.ts";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "../../assert.ts";
import { propertyOptions } from "../../support/cases.ts";
import { ANY_CHARACTER } from "../../support/characters.ts";
import { PLAN_TEXTS } from "../../support/hostile_inputs.ts";
import { detailAt, refusal } from "../../support/plans.ts";
import fc from "fast-check";

const KIB = 1024;
const MAX = 256 * KIB;

async function dataOf(text: string): Promise<unknown> {
  return (await parsePlanText(text)).data;
}

Deno.test("parsePlanText() reads YAML, JSON, and the text of either inside a JSON string", async () => {
  const expected = { session: { orchestrator: "loop-basic", raw: true }, tools: ["a", null, 1.5] };
  const json = JSON.stringify(expected);
  const yaml = "session: {orchestrator: loop-basic, raw: true}\ntools:\n  - a\n  - ~\n  - 1.5\n";
  assertEquals(await dataOf(yaml), expected);
  assertEquals(await dataOf(json), expected);
  assertEquals(await dataOf(JSON.stringify(yaml)), expected);
  assertEquals(await dataOf(JSON.stringify(json)), expected);
  assertEquals(await dataOf(`\uFEFF${yaml}`), expected);
  assertEquals(
    await dataOf(`  {session: {orchestrator: loop-basic, raw: true}, tools: [a, ~, 1.5,]}`),
    expected,
  );
});

Deno.test("parsePlanText() follows YAML 1.2 and not 1.1 in what plain scalars mean", async () => {
  const text =
    "a: yes\nb: 0o17\nc: 017\nd: 2024-01-01\ne: 1_000\nf: 0x1F\ng: \"1\"\nh: ''\ni: !!str 7\nj: |\n  two\n  lines\n";
  assertEquals(await dataOf(text), {
    a: "yes",
    b: 15,
    c: 17,
    d: "2024-01-01",
    e: "1_000",
    f: 31,
    g: "1",
    h: "",
    i: "7",
    j: "two\nlines\n",
  });
});

Deno.test("parsePlanText() copies the value of an alias", async () => {
  const data = await dataOf("a: &x {k: [1]}\nb: *x\n*y : 1\nc: &y z\n".replace("*y : 1\n", "")) as Record<
    string,
    { k: number[] }
  >;
  assertEquals(data.b, { k: [1] });
  assert(data.a !== data.b && data.a!.k !== data.b!.k);
});

Deno.test("parsePlanText() reports line and column of a syntax error", async () => {
  const error = await refusal(() => parsePlanText("session:\n  a: 1\n b: 2\n"));
  assertEquals(error.code, "plan_invalid");
  assertEquals(error.details.length, 1);
  assertEquals([error.details[0]?.line, error.details[0]?.column], [3, 2]);
  assertStringIncludes(error.details[0]?.message ?? "", "Cannot read YAML: ");
});

Deno.test("parsePlanText() reports the error of the language that the text is in", async () => {
  const json = await refusal(() => parsePlanText('{"a": 1,\n "b": [1, 2}\n'));
  assertStringIncludes(json.message, "Cannot read JSON");
  assertEquals([json.details[0]?.line, json.details[0]?.column], [2, 7]);
});

Deno.test("parsePlanText() reports every duplicate key with its place, in YAML and in JSON", async () => {
  const yaml = await refusal(() => parsePlanText("a: 1\nb: {c: 1, c: 2}\na: 2\n"));
  assertEquals(yaml.code, "plan_invalid");
  assertEquals(yaml.details.map(({ path, line, column }) => [path, line, column]), [["b.c", 2, 11], [
    "a",
    3,
    1,
  ]]);
  const json = await refusal(() => parsePlanText('{"a": 1,\n "\\u0061": 2}'));
  assertEquals([detailAt(json, "a").line, detailAt(json, "a").column], [2, 2]);
});

for (const key of ["__proto__", "constructor", "prototype"]) {
  Deno.test(`parsePlanText() refuses the key ${key} at any depth`, async () => {
    for (const text of [`x:\n  - {${key}: {polluted: 1}}\n`, `{"x": [{"${key}": {"polluted": 1}}]}`]) {
      const error = await refusal(() => parsePlanText(text));
      assertEquals(error.code, "plan_invalid");
      assertStringIncludes(detailAt(error, `x[0].${key}`).message, key);
    }
    assertEquals(({} as Record<string, unknown>).polluted, undefined);
  });
}

const REFUSED: Record<string, [text: string, fact: RegExp]> = {
  "an empty text": ["", /empty/],
  "comments alone": ["# nothing\n", /empty/],
  "a second document": ["a: 1\n---\nb: 2\n", /second document/],
  "a custom tag": ["a: !secret x\n", /tag !secret/],
  "a known tag of YAML 1.1": ["a: !!binary aGk=\n", /tag !!binary/],
  "a %TAG line": ["%TAG ! tag:example.com,2000:\n---\na: !x 1\n", /custom tags are not allowed/],
  "a tag that does not fit": ["a: !!int x\n", /does not fit the tag !!int/],
  "a merge key": ["a: &x {b: 1}\nc:\n  <<: *x\n", /merge keys/],
  "an undefined alias": ["a: *x\n", /is not defined/],
  "an alias that contains itself": ["a: &x [*x]\n", /contains itself/],
  "a key that is a list": ["? [a]\n: 1\n", /key must be text/],
  "an empty key": [": 1\n", /key must be text/],
  "infinity": ["a: .inf\n", /not finite/],
  "a number that JSON cannot represent": ['{"a": 1e999}', /not finite/],
  "half a surrogate pair": ['{"a": "\\ud800"}', /surrogate/],
  "a list": ["- a\n", /must be an object/],
  "a scalar": ["just text\n", /must be an object/],
  "a NUL": ["a: \u0000\n", /null byte/],
};
for (const [what, [text, fact]] of Object.entries(REFUSED)) {
  Deno.test(`parsePlanText() refuses ${what}`, async () => {
    const error = await refusal(() => parsePlanText(text));
    assertEquals(error.code, "plan_invalid");
    assertMatch(error.message, fact);
    assert(error.details[0]?.line !== undefined);
  });
}

Deno.test('parsePlanText() accepts "<<" and numbers as keys when they are text', async () => {
  assertEquals(await dataOf('"<<": 1\n2: two\n'), { "<<": 1, "2": "two" });
});

function nested(depth: number): string {
  return `{"a": ${"[".repeat(depth - 1)}1${"]".repeat(depth - 1)}}`;
}

function yamlNested(depth: number): string {
  return Array.from({ length: depth }, (_, level) => `${" ".repeat(level)}a:`).join("\n") + " 1\n";
}

Deno.test("parsePlanText() accepts 32 levels and refuses 33, in YAML and in JSON", async () => {
  for (const make of [nested, yamlNested]) {
    await parsePlanText(make(32));
    assertEquals((await refusal(() => parsePlanText(make(33)))).code, "plan_limit_exceeded");
  }
});

Deno.test("parsePlanText() accepts 10,000 values and refuses one more", async () => {
  const list = (count: number) => `a:\n${"- x\n".repeat(count)}`; // the root and the list are values too
  await parsePlanText(list(9_998));
  const error = await refusal(() => parsePlanText(list(9_999)));
  assertEquals([error.code, error.details[0]?.line], ["plan_limit_exceeded", 10_000]);
});

Deno.test("parsePlanText() accepts 50 aliases and refuses one more", async () => {
  const text = (count: number) => `a: &x 1\nb:\n${"- *x\n".repeat(count)}`;
  await parsePlanText(text(50));
  assertEquals((await refusal(() => parsePlanText(text(51)))).code, "plan_limit_exceeded");
});

Deno.test("parsePlanText() counts bytes of UTF-8, not characters", async () => {
  const text = (characters: number) => `a: ${"é".repeat(characters)}`;
  await parsePlanText(text(MAX / 2 - 2));
  assertEquals((await refusal(() => parsePlanText(text(MAX / 2 - 1)))).code, "plan_limit_exceeded");
});

for (const [what, text] of Object.entries(PLAN_TEXTS)) {
  Deno.test(`parsePlanText() parses or refuses ${what}`, async () => {
    await parsePlanText(text).catch((error) => assertMatch(error.code, /^plan_(invalid|limit_exceeded)$/));
  });
}

Deno.test("readJson() accepts what JSON.parse accepts, with the same value", () => {
  fc.assert(
    fc.property(fc.json({ depthSize: "small", stringUnit: ANY_CHARACTER }), fc.nat(4), (json, indent) => {
      const text = JSON.stringify(JSON.parse(json), null, indent);
      const limits = { ...DOCUMENT_LIMITS, max_nodes: 1e6, max_depth: 1e3 };
      const { data, problems } = toData(readJson(text, 1e3), limits);
      if (problems.length === 0) assertEquals(JSON.stringify(data), JSON.stringify(JSON.parse(text)));
    }),
    propertyOptions(100, 300, 3000),
  );
});

Deno.test("readJson() refuses what JSON.parse refuses", () => {
  const alphabet = fc.constantFrom(...'{}[]",:0123456789.eE+-truefalsn \\\n\t/u'.split(""));
  fc.assert(
    fc.property(fc.array(alphabet, { maxLength: 12 }), (letters) => {
      const text = letters.join("");
      assertEquals(accepts(() => readJson(text, 100)), accepts(() => JSON.parse(text)), text);
    }),
    propertyOptions(500, 3000, 30_000),
  );
});

function accepts(run: () => unknown): boolean {
  try {
    run();
    return true;
  } catch {
    return false;
  }
}

Deno.test("parsePlanText() throws only PreampErrors for any text", async () => {
  const alphabet = fc.constantFrom(..."a:-?&*!|>'\"{}[],#% \n\t<~1.".split(""));
  await fc.assert(
    fc.asyncProperty(fc.array(alphabet, { maxLength: 40 }), async (letters) => {
      await parsePlanText(letters.join("")).catch((error) => assertMatch(error.code, /^plan_/));
    }),
    propertyOptions(200, 2000, 20_000),
  );
});

Deno.test("locate() returns the key of a field, the start of an entry, and the nearest ancestor of a missing value", async () => {
  const text = "session:\n  context: x\ntools:\n  - module: tool-a\n    permissions: {net: [a, b]}\n";
  const { locate } = await parsePlanText(text);
  assertEquals(locate(["session", "context"]), { line: 2, column: 3 });
  assertEquals(locate(["tools", 0, "permissions", "net"]), { line: 5, column: 19 });
  assertEquals(locate(["tools", 0, "permissions", "net", 1]), { line: 5, column: 28 });
  assertEquals(locate(["tools", 0, "config"]), { line: 4, column: 5 });
  assertEquals(locate(["limits"]), { line: 1, column: 1 });
});

Deno.test("locate() counts lines that end in CRLF and CR", async () => {
  const { locate } = await parsePlanText("a: 1\r\nb: 2\rc: 3\n");
  assertEquals([locate(["b"]).line, locate(["c"]).line], [2, 3]);
});

Deno.test("parsePlanText() reports that a ${VAR} inside braces needs quotes", async () => {
  const hint = async (text: string) => (await refusal(() => parsePlanText(text))).details[0]?.hint;
  assertEquals(
    await hint("config: { max: ${MAX:-5} }"),
    'write a ${VAR} inside { } or [ ] in quotes: "${VAR}"',
  );
  assertEquals(
    await hint("config: { max: [${MAX}, 5 }"),
    'write a ${VAR} inside { } or [ ] in quotes: "${VAR}"',
  );
  assertEquals(await hint('config: { max: "${MAX}" other }'), undefined);
});

Deno.test("a finding about a module's file is displayed with that file, never with the plan's name or place", async () => {
  const message = 'Unexpected ";"';
  const in_module = { path: "./x.ts", file: "./x.ts", line: 2, column: 13, message };
  const fetched = { path: "tools[0].source", message: "Cannot fetch it" };
  const details = await withPlaces(
    [in_module, fetched, { path: "tools[0]", file: "./y.ts", message }],
    'tools:\n  - source: "./x.ts"\n',
  );
  assertEquals(details.map((detail) => formatDetail(detail, "plan.yaml")), [
    './x.ts:2:13  Unexpected ";"',
    "plan.yaml:2:5  tools[0].source  Cannot fetch it",
    './y.ts  Unexpected ";"',
  ]);
});

for (
  const [text, place, bracket] of [
    ["session: {orchestrator: a, context: b\nproviders: [c]\n", [1, 10], "{"],
    ["a: 1\nb:\n  - [1, 2\n  - c\n", [3, 5], "["],
    ["a: {b: [1, 2}\n", [1, 8], "["],
    ["a: {b: {c: 1}\nd: 3", [1, 4], "{"],
    ["a: {b: \"}\", c: '}' # }\nd: 3", [1, 4], "{"],
    ['{"a": {"b": 1}\n', [1, 1], "{"],
    ['{"a": [1, {"b": "}"}, \n', [1, 7], "["],
    ['{"a": [1, {"b": 2]}', [1, 11], "{"],
  ] as const
) {
  Deno.test(`parsePlanText() reports a bracket that is not closed where it opens: ${JSON.stringify(text)}`, async () => {
    const error = await refusal(() => parsePlanText(text));
    const { line, column, message } = error.details[0]!;
    assertEquals([line, column], [...place]);
    assertStringIncludes(message, `this ${bracket} is not closed`);
  });
}

Deno.test("parsePlanText() reports a missing comma where it is missing", async () => {
  for (
    const [text, place] of [["a: {\n  b: 1\n  c: 2\n}\n", [3, 4]], ['{"a": 1 "b": 2}', [1, 12]]] as const
  ) {
    const { line, column } = (await refusal(() => parsePlanText(text))).details[0]!;
    assertEquals([line, column], [...place]);
  }
});
