import { createDefaultLog, type LogRecord } from "../../../src/server/middleware/access_log.ts";
import { processRedactor } from "../../../src/policy/redact.ts";
import { createPreamp } from "../../../src/server/mod.ts";
import { assertEquals } from "../../assert.ts";

/** Resolves to the lines that an action writes to stderr. */
async function linesOf(work: () => unknown): Promise<string[]> {
  const { writeSync } = Deno.stderr;
  const chunks: string[] = [];
  Deno.stderr.writeSync = (bytes) => chunks.push(new TextDecoder().decode(bytes)) && bytes.length;
  try {
    await work();
  } finally {
    Deno.stderr.writeSync = writeSync;
  }
  return chunks.join("").split("\n").slice(0, -1);
}

const RECORD: LogRecord = {
  level: "error",
  ts: "2026-01-01T00:00:00.000Z",
  message: "request",
  request_id: "req_1",
  method: "GET",
  path: "/v1/runs",
  status: 500,
  ms: 1,
  caller: null,
  code: "internal",
  error: { name: "Error", message: "the key sk-123456 was refused" },
};

Deno.test("createDefaultLog() logs warnings and errors as lines of JSON without secrets", async () => {
  const { request, runtime } = createDefaultLog(processRedactor(["sk-123456"], () => undefined));
  const lines = await linesOf(() => {
    request({ ...RECORD, level: "info", status: 200 });
    request(RECORD);
    runtime("info", "started", {});
    runtime("warning", "module_console", { text: "sk-123456" });
  });
  const [failed, warned, ...rest] = lines.map((line) => JSON.parse(line));
  assertEquals(rest, []);
  assertEquals(failed, { ...RECORD, error: { name: "Error", message: "the key [REDACTED] was refused" } });
  const { ts: _, ...fields } = warned;
  assertEquals(fields, { level: "warning", message: "module_console", text: "[REDACTED]" });
});

for (
  const [label, options, count] of [["without log", {}, 1], ["with log null", { log: null }, 0]] as const
) {
  Deno.test(`createPreamp() ${label} logs ${count} lines for a failed request`, async () => {
    const authenticate = () => {
      throw new Error("the directory of keys is gone");
    };
    await using preamp = createPreamp({ authenticate, ...options });
    const lines = await linesOf(() => preamp.fetch(new Request("http://localhost/v1/runs")));
    assertEquals(
      lines.map((line) => JSON.parse(line).error.message),
      Array(count).fill("the directory of keys is gone"),
    );
  });
}
