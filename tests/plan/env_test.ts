import fc from "fast-check";
import { assert, assertEquals } from "../assert.ts";
import { processorTime } from "../support/busy_time.ts";
import { expandEnv, findEnv } from "../../src/plan/env.ts";

function expand(value: unknown, env: Record<string, string> = {}): unknown {
  return expandEnv({ value }, (name) => Object.hasOwn(env, name) ? env[name] : undefined).value.value;
}

Deno.test("expandEnv() replaces references to variables that are set", () => {
  assertEquals(["${A}", "${A:d}", "${A:-d}", "x-${A}-y"].map((text) => expand(text, { A: "1" })), [
    "1",
    "1",
    "1",
    "x-1-y",
  ]);
});

Deno.test("expandEnv() uses defaults, empties text and leaves out whole values when unset", () => {
  const config = { whole: "${A}", default: "${A:d}", shell: "${A:-d}", empty: "${A:}", text: "x-${A}-y" };
  const { value, missing } = expandEnv(config, () => undefined, "tools[0].config");
  assertEquals(value, { default: "d", shell: "d", empty: "", text: "x--y" });
  assertEquals(missing, [
    { name: "A", path: "tools[0].config.whole" },
    { name: "A", path: "tools[0].config.text" },
  ]);
});

Deno.test("expandEnv() formats the places of unset variables as findEnv() does", () => {
  const agents = { "a b": { tools: [{ config: { "x.y": "${A}" } }] } };
  const { missing } = expandEnv(agents, () => undefined, "agents");
  assertEquals(missing, [{ name: "A", path: 'agents["a b"].tools[0].config["x.y"]' }]);
  assertEquals(findEnv({ agents }), missing);
});

Deno.test("expandEnv() works in lists and objects at any depth", () => {
  const config = { list: ["${A}", { deep: ["${B:x}", 5, null, true] }], "${A}": "key" };
  const { value } = expandEnv(config, (name) => name === "A" ? "1" : undefined);
  assertEquals(value, { list: ["1", { deep: ["x", 5, null, true] }], "${A}": "key" });
  assertEquals(expand(["${A}", "b"]), ["", "b"]);
});

Deno.test("expandEnv() does not expand references in values or defaults", () => {
  const env = { A: "${B}", B: "secret" };
  assertEquals(expand("${A}", env), "${B}");
  assertEquals(expand("${X:${B}}", env), "${B}");
  assertEquals(expand("$${${B}}", { B: "A" }), "${A}");
});

Deno.test("expandEnv() reads $${ as a literal and does not change other templates", () => {
  assertEquals(expand("$${A}", { A: "1" }), "${A}");
  assertEquals(expand("$$${A}", { A: "1" }), "$${A}");
  assertEquals(
    expand("cost: $5 ${user.name} ${} ${1A} ${A", { A: "1" }),
    "cost: $5 ${user.name} ${} ${1A} ${A",
  );
});

Deno.test("expandEnv() returns the values it read, for the redactor", () => {
  const { secrets } = expandEnv(
    { a: "${A} ${A}", b: "${B}", c: "${C:d}" },
    (name) => ({ A: "x", B: "" } as Record<string, string>)[name],
  );
  assertEquals(secrets, ["x"]);
});

Deno.test("expandEnv() does not change its input", () => {
  const config = Object.freeze({ list: Object.freeze(["${A}"]) });
  expandEnv(config, () => "1");
  assertEquals(config, { list: ["${A}"] });
});

Deno.test("findEnv() lists names and places in document order", () => {
  assertEquals(findEnv({ a: "${X} and ${Y:z}", b: [{ c: "${X:-}" }], d: "$${NO}" }), [
    { name: "X", path: "a" },
    { name: "Y", path: "a" },
    { name: "X", path: "b[0].c" },
  ]);
});

Deno.test("expandEnv() looks up exactly the variables that findEnv() lists", () => {
  const piece = fc.constantFrom("${A}", "${B:x}", "${C:-y}", "$${", "${", "}", "$", "text", "${D:${A}}", ":");
  fc.assert(fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
    const config = { text: pieces.join("") };
    const asked: string[] = [];
    expandEnv(config, (name) => void asked.push(name));
    assertEquals(asked, findEnv(config).map(({ name }) => name));
  }));
});

Deno.test("expandEnv() and findEnv() read text with many open braces in linear time", async () => {
  const open = "${".repeat(100_000);
  const took_ms = await processorTime(() => {
    assertEquals(expand(open), open);
    assertEquals(expand(`\${A}${open}`, { A: "1" }), `1${open}`);
    assertEquals(expand(`$\${A}$${open}`, { A: "1" }), `\${A}${open}`);
    assertEquals(findEnv([open, `${open}$`]), []);
  });
  assert(took_ms < 5_000, `${took_ms} ms`); // quadratic: minutes
});
