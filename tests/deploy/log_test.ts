import { assertEquals } from "../assert.ts";
import { prettyLines } from "../../src/cli/pretty_log.ts";
import { createLog, JSON_LINES } from "../../src/deploy/log.ts";
import { Redactor } from "../../src/policy/redact.ts";
import type { LogRecord } from "../../src/server/middleware/access_log.ts";

function record(path: string): LogRecord {
  const ts = "2026-11-21T10:00:00.000Z";
  const at = { level: "info", ts, message: "request", request_id: "req_1" } as const;
  return { ...at, method: "GET", path, status: 200, ms: 1, caller: null };
}

const PLAIN = { terminal: false, color: false, columns: () => 80, write: () => {} };
const linesOf = (format: "json" | "pretty") => format === "json" ? JSON_LINES : prettyLines(PLAIN);

/** Returns a log and the text of each write. */
function logOf(format: "json" | "pretty"): { log: ReturnType<typeof createLog>; written: string[] } {
  const written: string[] = [];
  const write = (text: string) => void written.push(text);
  return { log: createLog(linesOf(format), { write }, new Redactor(["s3cret"]), () => 0), written };
}

for (const format of ["json", "pretty"] as const) {
  Deno.test(`createLog() writes the requests of a moment together, as ${format}`, async () => {
    const { log, written } = logOf(format);
    log.request(record("/a"));
    log.request(record("/s3cret"));
    assertEquals(written, []);
    await new Promise((resolve) => setTimeout(resolve, 0));
    assertEquals(written.map((text) => text.match(/\/a|\/\[REDACTED\]/g)), [["/a", "/[REDACTED]"]]);
    log.request(record("/a"));
    await new Promise((resolve) => setTimeout(resolve, 0));
    assertEquals([written.length, written.join("").split("\n").length], [2, 4]);
  });

  Deno.test(`createLog() writes a note at once, after earlier lines, as ${format}`, () => {
    const { log, written } = logOf(format);
    log.request(record("/a"));
    log.note("info", "stopped", {});
    assertEquals(written.map((text) => [...new Set(text.match(/\/a|stopped/g))]), [["/a", "stopped"]]);
  });

  Deno.test(`createLog() writes an event with its facts, as ${format}`, () => {
    const { log, written } = logOf(format);
    log.note("warning", "guest_not_ended", { message: "it is stuck: s3cret", run_id: "run_1" });
    const line = format === "json"
      ? '{"level":"warning","ts":"1970-01-01T00:00:00.000Z","code":"guest_not_ended","message":"it is stuck: [REDACTED]","run_id":"run_1"}\n'
      : "00:00:00.000 warning guest_not_ended  message=it is stuck: [REDACTED]  run_id=run_1\n";
    assertEquals(written, [line]);
  });

  Deno.test(`createLog() loses only lines that cannot be written, as ${format}`, async () => {
    const written: string[] = [];
    let full = true;
    const write = (text: string) => {
      if (full) throw new Deno.errors.WouldBlock("the pipe is full");
      written.push(text);
    };
    const log = createLog(linesOf(format), { write });
    log.request(record("/a"));
    await new Promise((resolve) => setTimeout(resolve, 0)); // an error here would end the process
    log.note("info", "stopping", {});
    full = false;
    log.request(record("/b"));
    log.flush();
    assertEquals(written.map((text) => text.match(/\/[ab]|stopping/g)), [["/b"]]);
  });

  Deno.test(`createLog() writes its buffer on flush(), and when it is large, as ${format}`, () => {
    const { log, written } = logOf(format);
    log.request(record("/a"));
    log.flush();
    log.flush();
    assertEquals(written.length, 1);
    for (let sent = 0; sent < 2_000; sent++) log.request(record("/a"));
    const length = written.join("").split("\n").length - 1;
    assertEquals(length > 1_000, true);
    log.flush();
    assertEquals(written.join("").split("\n").length - 1, 2_001);
  });
}

Deno.test("what a process writes past its log becomes lines of JSON without secrets", async () => {
  const fixture = new URL("../fixtures/stray_output.ts", import.meta.url).pathname;
  const { code: exit_code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-check", "--allow-net", "--allow-env", "--allow-read", fixture],
  }).output();
  const text = new TextDecoder().decode(stderr);
  const lines = text.split("\n").slice(0, -1);
  const records = lines.map((line) => JSON.parse(line) as { code: string; text?: string });
  assertEquals([exit_code, stdout.length, text.includes("sk-stray")], [0, 0, false]);
  assertEquals(lines.filter((line) => new TextEncoder().encode(line).length >= 16 * 1024), []);
  assertEquals(records[1]?.text, 'said { key: "[REDACTED]" }');
  const events = Object.groupBy(records, ({ code }) => code);
  assertEquals(Object.fromEntries(Object.entries(events).map(([event, found]) => [event, found?.length])), {
    answer_failed: 1,
    console: 2,
    uncaught_error: 2,
    unhandled_rejection: 1,
    node_warning: 1,
  });
});
