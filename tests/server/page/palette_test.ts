/** What the palette finds. */
import { type Command, findCommands } from "../../../src/server/page/app/state/palette.ts";
import { assertEquals } from "../../assert.ts";

function command(kind: Command["kind"], label: string, hint = ""): Command {
  return { kind, label, hint, run: () => {} };
}

const COMMANDS = [
  command("action", "new conversation", "n"),
  command("plan", "coder", "writes code in a folder"),
  command("run", "Write a new parser", "completed run_abc"),
  command("docs", "plan", "the fields of a plan"),
];

function found(query: string, limit?: number): string[] {
  return findCommands(COMMANDS, query, limit).map(({ label }) => label);
}

Deno.test("findCommands() needs each word, and puts beginnings of labels first", () => {
  assertEquals(found(""), COMMANDS.map(({ label }) => label));
  assertEquals(found("new"), ["new conversation", "Write a new parser"]);
  assertEquals(found("NEW  parser"), ["Write a new parser"]);
  assertEquals(found("plan"), ["plan", "coder"]); // of the kind too
  assertEquals(found("run_abc"), ["Write a new parser"]);
  assertEquals(found("nothing like it"), []);
});

Deno.test("findCommands() is bounded", () => assertEquals(found("", 2).length, 2));
