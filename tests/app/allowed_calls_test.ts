import { proposeRule, readAllowedCalls } from "../../src/app/allowed_calls.ts";
import type { JsonObject } from "../../src/sdk/json.ts";
import { assertEquals } from "../assert.ts";

Deno.test("readAllowedCalls() allows tools by name, and shell commands by their words", () => {
  const rules = ["read", "todo_*", "bash:git *", "bash:deno test", "shell:*"];
  const allowedBy = readAllowedCalls(rules);
  const by = (tool_name: string | null, command?: unknown) =>
    allowedBy({ tool_name, tool_input: command === undefined ? {} : { command } });
  assertEquals(by("read"), "read");
  assertEquals(by("todo_add"), "todo_*");
  assertEquals(by("reads"), undefined);
  assertEquals(by(null), undefined);
  for (const command of ["git", "git status", "git log -n 3", ["git", "push"]]) {
    assertEquals(by("bash", command), "bash:git *", String(command));
  }
  assertEquals(by("bash", "deno test"), "bash:deno test");
  assertEquals(by("shell", "ls -la"), "shell:*");
  assertEquals(by("bash", "git log && deno test"), "bash:git *, bash:deno test");
  const others = [
    "gitk",
    "git log; rm -rf /",
    "git log | sh",
    "git log $(rm x)",
    "deno test -A",
    "X=1 git log",
    "",
  ];
  for (const command of others) assertEquals(by("bash", command), undefined, command);
  assertEquals(by("bash"), undefined);
});

Deno.test("readAllowedCalls() allows calls by a field of their input", () => {
  const allowedBy = readAllowedCalls(["write:path=src/*", "github__*:repo=me/*"]);
  const by = (tool_name: string, tool_input: JsonObject) => allowedBy({ tool_name, tool_input });
  assertEquals(by("write", { path: "src/a.ts" }), "write:path=src/*");
  assertEquals(by("github__merge", { repo: "me/x" }), "github__*:repo=me/*");
  for (const path of ["src/../a", "a", null]) assertEquals(by("write", { path }), undefined);
  assertEquals(by("read", { path: "src/a.ts" }), undefined);
});

const shell = (command: string) => ({ tool_name: "bash", tool_input: { command } });

Deno.test("proposeRule() proposes any words for a command that only reads, else exactly the command, else nothing", () => {
  const cases: [string, string | null][] = [
    ["git log --oneline -n 5", "bash:git log *"],
    ["git status", "bash:git status *"],
    ["ls", "bash:ls *"],
    ["rg -n 'word' src", "bash:rg *"],
    ["sh test.sh", "bash:sh test.sh"],
    ["git push origin main", "bash:git push origin main"],
    ["npm test", "bash:npm test"],
    ["rm -r dist", "bash:rm -r dist"],
    ["git log --output=x", null], // its option writes a file
    ["sort -o x y", null],
    ["find . -delete", null],
    ["ls *.ts", null], // which files is not known
    ["ls | sh", null],
    ["ls; rm x", null],
    ["echo $HOME", null],
    ["echo 'two words'", null],
    ["", null],
  ];
  for (const [command, rule] of cases) assertEquals([command, proposeRule(shell(command))], [command, rule]);
  assertEquals(proposeRule({ tool_name: "edit", tool_input: { path: "a" } }), "edit");
  assertEquals(proposeRule({ tool_name: "odd:*", tool_input: {} }), null);
  assertEquals(proposeRule({ tool_name: null, tool_input: null }), null);
});

Deno.test("what a proposed rule allows is no more than it says", () => {
  const allowedBy = readAllowedCalls([
    proposeRule(shell("git log -n 1"))!,
    proposeRule(shell("sh test.sh"))!,
  ]);
  for (const command of ["git log", "git log --stat -n 3", "sh test.sh", "git log | git log"]) {
    assertEquals([command, allowedBy(shell(command)) !== undefined], [command, true]);
  }
  for (
    const command of [
      "git push",
      "git log > x",
      "git log --output=x",
      "git log; rm x",
      "sh test.sh x",
      "sh other.sh",
    ]
  ) {
    assertEquals([command, allowedBy(shell(command))], [command, undefined]);
  }
});
