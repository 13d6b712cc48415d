import { readAllowedCalls } from "../../src/app/allowed_calls.ts";
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
