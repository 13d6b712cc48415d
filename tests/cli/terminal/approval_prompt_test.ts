import { askAt, decisionOf } from "../../../src/cli/terminal/approval_prompt.ts";
import type { Approval } from "../../../src/runs/types.ts";
import { createProgress, type Progress } from "../../../src/cli/terminal/progress.ts";
import { assert, assertEquals, assertStringIncludes } from "../../assert.ts";
import { fakeIo } from "../../support/io.ts";

const APPROVAL: Approval = {
  id: "apr_1",
  object: "approval",
  run_id: "run_1",
  session_id: "ses_1",
  tool_name: "bash",
  tool_call_id: "call_1",
  tool_input: { command: "rm -r x" },
  args_hash: "sha256-x",
  action: "execute",
  risk_level: "high",
  prompt: "Allow bash?",
  options: ["Allow once", { label: "Never", effect: "deny" }],
  default: "deny",
  hook_name: "hooks-approval",
  status: "pending",
  created_at: "2026-01-01T00:00:00.000Z",
  expires_at: "2026-01-01T00:05:00.000Z",
};
const NOW = () => Date.parse("2026-01-01T00:00:30.000Z");

function silentProgress(): Progress & { held: number } {
  const progress = {
    held: 0,
    entry() {},
    note() {},
    clear() {},
    hold() {
      progress.held++;
      return () => void progress.held--;
    },
    close() {},
  };
  return progress;
}

Deno.test("askAt() resolves to null at once without a terminal", async () => {
  const io = fakeIo();
  assertEquals(await askAt(io, silentProgress())(APPROVAL, new AbortController().signal), null);
  assertEquals(io.stderr, "");
});

Deno.test("askAt() displays tool, arguments, options and expiry, and accepts the number of an option", async () => {
  const io = fakeIo({ terminal: true, lines: ["2"] });
  const progress = silentProgress();
  const answer = await askAt(io, progress, NOW)(APPROVAL, new AbortController().signal);
  assertEquals(answer, { decision: "Never" });
  for (
    const part of [
      "Allow bash?",
      "bash, risk high",
      '{"command":"rm -r x"}',
      "1) Allow once",
      "2) Never",
      "in 4 min 30 s, then denied",
    ]
  ) {
    assertStringIncludes(io.stderr, part);
  }
  assertEquals(progress.held, 0);
});

Deno.test("askAt() asks again if the answer is not one of the choices", async () => {
  const io = fakeIo({ terminal: true, lines: ["", "maybe", "3", "YES"] });
  assertEquals(await askAt(io, silentProgress(), NOW)(APPROVAL, new AbortController().signal), {
    decision: "allow",
  });
  assertEquals(io.stderr.split("y/n or 1-2 > ").length, 5);
});

Deno.test("askAt() ignores input that was typed before the question", async () => {
  const io = fakeIo({ terminal: true, lines: ["y"], think_ms: 5 });
  const stop = new AbortController();
  const answer = askAt(io, silentProgress(), NOW)(APPROVAL, stop.signal);
  await Promise.resolve();
  queueMicrotask(() => stop.abort("timeout"));
  assertEquals(await answer, null);
  assertStringIncludes(io.stderr, "typed before the question");
});

Deno.test("askAt() ends the line of an aborted question at once, before the lines that waited", () => {
  const io = fakeIo({ terminal: true, lines: [] });
  const progress = createProgress(io.err);
  const stop = new AbortController();
  void askAt(io, progress, NOW)(APPROVAL, stop.signal);
  return Promise.resolve().then(() => {
    progress.note("Stopping");
    assert(io.stderr.endsWith("y/n or 1-2 > "), io.stderr);
    stop.abort("cancelled");
    assert(io.stderr.endsWith("y/n or 1-2 > \nStopping\n"), io.stderr);
  });
});

Deno.test("askAt() escapes every control character of prompt, tool, options and arguments", async () => {
  const io = fakeIo({ terminal: true, lines: ["n"] });
  const hostile = "\x1b[2Jx\u202e\x9b1m\r";
  const approval: Approval = {
    ...APPROVAL,
    prompt: `${hostile}\nsecond line`,
    tool_name: hostile,
    tool_input: { [hostile]: hostile, long: "x".repeat(100) },
    options: [hostile],
  };
  assertEquals(await askAt(io, silentProgress(), NOW)(approval, new AbortController().signal), {
    decision: "deny",
  });
  assert(!/[\p{Cc}\p{Cf}]/u.test(io.stderr.replaceAll("\n", "")), JSON.stringify(io.stderr));
  assertStringIncludes(io.stderr, "x".repeat(100));
});

Deno.test("askAt() asks one question at a time, and none that is over already", async () => {
  const io = fakeIo({ terminal: true, lines: ["y", "n"] });
  const ask = askAt(io, silentProgress(), NOW);
  const over = new AbortController();
  const first = ask(APPROVAL, new AbortController().signal);
  const second = ask({ ...APPROVAL, id: "apr_2", prompt: "Never shown?" }, over.signal);
  const third = ask({ ...APPROVAL, id: "apr_3" }, new AbortController().signal);
  over.abort("cancelled");
  assertEquals(await Promise.all([first, second, third]), [{ decision: "allow" }, null, {
    decision: "deny",
  }]);
  assert(!io.stderr.includes("Never shown?"));
});

Deno.test("decisionOf() takes words, numbers and labels in any case", () => {
  const labels = ["Allow", "Deny", "Always"];
  assertEquals(
    ["y", "No", "deny", "3", "always", "0", "4", "", "1 2"].map((line) => decisionOf(line, labels)),
    [
      "allow",
      "deny",
      "deny",
      "Always",
      "Always",
      null,
      null,
      null,
      null,
    ],
  );
});
