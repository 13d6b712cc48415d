import { readAllowedCalls } from "../../src/app/allowed_calls.ts";
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
