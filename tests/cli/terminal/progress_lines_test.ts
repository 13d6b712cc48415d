import { createProgress } from "../../../src/cli/terminal/progress.ts";
import { dollars, duration, formatValue } from "../../../src/cli/terminal/progress_lines.ts";
import type { Entry } from "../../../src/kernel/host.ts";
import type { JsonObject } from "../../../src/sdk/json.ts";
import { assert, assertEquals } from "../../assert.ts";
import { fakeIo } from "../../support/io.ts";

let seq = 0;
function entry(event: string, data: JsonObject, ms = 0, verdict?: Entry["verdict"]): Entry {
  seq++;
  const ts = new Date(Date.UTC(2026, 0, 1) + ms).toISOString();
  return { seq, event, ts, run_id: "run_1", session_id: "ses_1", data, ...(verdict ? { verdict } : {}) };
}

const CALL = { tool_name: "calculator", tool_call_id: "call_1", tool_input: { expression: "6*7" } };

Deno.test("createProgress() prints calls with input, output and time, without the time of the approval", () => {
  const { err, ...io } = withErr();
  const progress = createProgress(err);
  progress.entry(entry("provider:request", { provider: "mock" }));
  progress.entry(entry("tool:pre", CALL));
  progress.entry(entry("approval:granted", { ...CALL, decided_by: "terminal" }, 60_000));
  progress.entry(entry("tool:post", { ...CALL, result: { success: true, output: "42" } }, 60_003));
  assertEquals(
    io.text(),
    'asking mock\nallowed calculator by terminal\ncalled calculator {"expression":"6*7"} = 42 (3 ms)\n',
  );
});

Deno.test("createProgress() prints denied and failed calls with their reason", () => {
  const { err, ...io } = withErr();
  const progress = createProgress(err);
  progress.entry(entry("tool:pre", CALL, 0, { action: "deny", hook_name: "h", reason: "no sums" }));
  progress.entry(entry("approval:denied", { ...CALL, decision: "timeout", decided_by: null }));
  progress.entry(entry("tool:error", { ...CALL, error: { type: "tool_timeout", msg: "too slow" } }));
  progress.entry(
    entry("tool:post", { ...CALL, result: { success: false, error: { message: "division by zero" } } }),
  );
  progress.entry(entry("provider:error", { provider: "mock", error: { type: "NetworkError", msg: "gone" } }));
  assertEquals(io.text().split("\n"), [
    'denied calculator {"expression":"6*7"}: no sums',
    "denied calculator: not answered in time, the default applies",
    'failed calculator {"expression":"6*7"}: too slow',
    'failed calculator {"expression":"6*7"}: division by zero (0 ms)',
    "failed provider mock: gone",
    "",
  ]);
});

Deno.test("createProgress() shows which model call is repeated, when, and why", () => {
  const { err, ...io } = withErr();
  const progress = createProgress(err);
  const retry = { provider: "mock", delay: 2.5, error_type: "RateLimitError", error_message: "slow down" };
  progress.entry(entry("provider:retry", retry));
  const too_long = { error_type: "ContextLengthError", error_message: "prompt is too long", delay: 0 };
  progress.entry(entry("provider:retry", { ...retry, ...too_long }));
  progress.entry(
    entry("provider:retry", { ...retry, error_message: "temperature is not supported", delay: 0 }),
  );
  assertEquals(io.text().split("\n"), [
    "retrying provider mock in 2.5 s: slow down",
    "retrying provider mock with fewer tokens: prompt is too long",
    "retrying provider mock at once: temperature is not supported",
    "",
  ]);
});

Deno.test("createProgress() shows where a tool failed, and the output of one that is not written yet", () => {
  const { err, ...io } = withErr();
  const progress = createProgress(err);
  const advice = `${"Use the scripts. ".repeat(20)}Ask Ann.`;
  progress.entry(
    entry("tool:error", { ...CALL, error: { type: "Error", msg: "broke", at: "./shout.ts:3:12" } }),
  );
  progress.entry(entry("tool:post", { ...CALL, result: { success: false, output: advice, error: null } }));
  progress.entry(entry("tool:post", { ...CALL, result: { success: false, output: null, error: null } }));
  assertEquals(io.text().split("\n"), [
    'failed calculator {"expression":"6*7"}: broke at ./shout.ts:3:12',
    `failed calculator {"expression":"6*7"}: ${advice} (0 ms)`,
    'failed calculator {"expression":"6*7"}: no reason was given (0 ms)',
    "",
  ]);
});

Deno.test("createProgress() shows what is for the user: whole, by level, with its source", () => {
  const { err, ...io } = withErr();
  const progress = createProgress(err);
  const whole = "word ".repeat(100).trim();
  const notify = (data: JsonObject) => progress.entry(entry("user:notification", data));
  notify({ message: "Saved\nto disk", level: "info", source: "hook:hooks-save" });
  notify({ message: whole, level: "warning", source: "context-simple" });
  notify({ message: "no disk", level: "error" });
  notify({ message: "3 of 10 files", level: "info", source: "tool:copy", tool_call_id: "call_1" });
  assertEquals(io.text().split("\n"), [
    "note: Saved to disk (hooks-save)",
    `warning: ${whole} (context-simple)`,
    "error: no disk",
    "copy: 3 of 10 files",
    "",
  ]);
});

Deno.test("createProgress() draws one line, clears it for lines that stay, and keeps quiet while it is held", () => {
  const { err, ...io } = withErr();
  let tick = () => {};
  const progress = createProgress(err, {
    live: {
      monotonic: () => 0,
      every: (_, callback) => {
        tick = callback;
        return () => (tick = () => {});
      },
    },
  });
  progress.entry(entry("provider:response", { usage: { total_tokens: 1234, cost_usd: "0.0012" } }));
  tick();
  assert(io.text().endsWith("working 0 ms · 1,234 tokens · $0.0012\r"), JSON.stringify(io.text()));
  const release = progress.hold();
  const held = io.text();
  assert(held.endsWith("\r\x1b[2K"));
  tick();
  progress.note("a note");
  assertEquals(io.text(), held);
  release();
  assertEquals(io.text(), `${held}a note\n`);
  tick();
  progress.close();
  assert(io.text().endsWith("\r\x1b[2K"));
  const closed = io.text();
  tick();
  assertEquals(io.text(), closed);
});

Deno.test("shown() is one short printable line whatever it is given", () => {
  assertEquals(formatValue("a\x1b[31m\nb"), "a\\u001b[31m b");
  assertEquals(formatValue({ a: 1 }), '{"a":1}');
  assertEquals(formatValue(undefined), "nothing");
  assertEquals([...formatValue("é".repeat(1000))].length, 160);
});

Deno.test("duration() and dollars() are as people say them", () => {
  assertEquals([3, 1200, 60_000, 245_000].map(duration), ["3 ms", "1.2 s", "1 min", "4 min 5 s"]);
  assertEquals(["0", "0.0012", "1.5", "0.000000012"].map(dollars), [
    "$0.0000",
    "$0.0012",
    "$1.5000",
    "$0.000000012",
  ]);
});

function withErr() {
  const io = fakeIo({ terminal: true });
  return { err: io.err, text: () => io.stderr };
}
