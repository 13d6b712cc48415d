import { type Flag, readArguments } from "../../src/cli/arguments.ts";
import { assertEquals, assertStringIncludes, assertThrows } from "../assert.ts";

const FLAGS: readonly Flag[] = [
  { name: "plan", short: "p", value: "FILE", many: true, help: "" },
  { name: "port", value: "PORT", help: "" },
  { name: "json", help: "" },
];

Deno.test("readArguments() reads long, short and inline values, in order", () => {
  const args = readArguments(["-p", "a.yaml", "hello", "--plan=b.yaml", "--json", "--port", "0"], FLAGS);
  assertEquals(args.all("plan"), ["a.yaml", "b.yaml"]);
  assertEquals([args.value("port"), args.has("json"), args.has("quiet")], ["0", true, false]);
  assertEquals(args.rest, ["hello"]);
});

Deno.test("readArguments() reads no flags after --", () => {
  const args = readArguments(["--json", "--", "--port", "-x"], FLAGS);
  assertEquals(args.rest, ["--port", "-x"]);
});

Deno.test("readArguments() reads - as a value and as an argument", () => {
  assertEquals(readArguments(["-p", "-", "-"], FLAGS).rest, ["-"]);
});

for (
  const [words, message] of [
    [["--prot", "1"], "did you mean --port?"],
    [["--nothing-like-it"], "no such flag"],
    [["-x"], "no such flag"],
    [["--port"], "argument missing"],
    [["--port", "--json"], "is ambiguous"],
    [["--port", "1", "--port", "2"], "twice"],
    [["--json=yes"], "does not take an argument"],
    [["--json", "--json"], "twice"],
    [["--no-json"], "no such flag"],
    [["--__proto__"], "no such flag"],
  ] as const
) {
  Deno.test(`readArguments() refuses ${words.join(" ")}`, () => {
    const error = assertThrows(() => readArguments(words, FLAGS));
    assertEquals(error.name, "UsageError");
    assertStringIncludes(error.message, message);
  });
}
