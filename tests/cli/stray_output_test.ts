import { assertEquals } from "../assert.ts";

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
