import fc from "fast-check";
import { assert, assertEquals, assertRejects } from "../assert.ts";
import { propertyOptions } from "../support/cases.ts";
import { ANY_CHARACTER } from "../support/characters.ts";
import { LineQueue } from "../../modules/hooks-logging/log_file.ts";
import { formatLine, MAX_LINE_BYTES } from "../../modules/hooks-logging/log_line.ts";

const bytesOf = (text: string) => new TextEncoder().encode(text).length;

Deno.test("formatLine() truncates to 8 KiB and sets truncated when data is longer", () => {
  for (const text of ["x", "é", "漢", "\u001b", "\u009b", "😀", "\ud800"]) {
    const line = formatLine("tool:post", { session_id: "s", result: { output: text.repeat(100_000) } }, 0);
    assert(bytesOf(line) <= MAX_LINE_BYTES, `${JSON.stringify(text)} made ${bytesOf(line)} bytes`);
    const parsed = JSON.parse(line);
    assertEquals([parsed.truncated, parsed.event], [true, "tool:post"]);
    assert(parsed.data.result.output.endsWith(" more]"));
  }
});

Deno.test("formatLine() states how many entries of a long list are left out", () => {
  const { data, truncated } = JSON.parse(
    formatLine("x:y", { list: Array.from({ length: 5_000 }, () => "abcdef") }, 0),
  );
  assertEquals(truncated, true);
  assertEquals(data.list.at(-1), `[${5_000 - (data.list.length - 1)} more]`);
});

Deno.test("formatLine() keeps data unchanged when it fits", () => {
  const line = formatLine("x:y", { timestamp: "t", session_id: "s", a: [1, true, null, "b"], c: {} }, 0);
  assertEquals(JSON.parse(line), {
    ts: "t",
    lvl: "INFO",
    schema: { name: "amplifier.log", ver: "1.0.0" },
    event: "x:y",
    session_id: "s",
    data: { a: [1, true, null, "b"], c: {} },
  });
});

Deno.test("formatLine() adds the time when the payload has no timestamp", () => {
  assertEquals(JSON.parse(formatLine("x:y", {}, Date.UTC(2026, 0, 2))).ts, "2026-01-02T00:00:00.000Z");
});

Deno.test("formatLine() returns one parsable line without control characters for any data", () => {
  const key = fc.oneof(
    fc.string({ unit: ANY_CHARACTER, maxLength: 300 }),
    fc.constantFrom("session_id", "turn_id", "level", "token"),
  );
  const hostile = fc.constantFrom(
    "\n{}",
    "\r",
    "\u001b[2J",
    "\u009b31m",
    "\u202e",
    "\u2028",
    "\u0000",
    "\x7f",
  );
  const text = fc.oneof(
    fc.string({ unit: ANY_CHARACTER, maxLength: 3_000 }),
    hostile.map((piece) => piece.repeat(2_000)),
  );
  const value = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 5 },
      text,
      fc.double(),
      fc.boolean(),
      fc.array(tie("value")),
      fc.dictionary(key, tie("value")),
    ),
  })).value;
  fc.assert(
    fc.property(fc.dictionary(key, value), (payload) => {
      const line = formatLine("user:notification", JSON.parse(JSON.stringify(payload)), 0);
      assert(bytesOf(line) <= MAX_LINE_BYTES, `${bytesOf(line)} bytes`);
      assertEquals(line.indexOf("\n"), line.length - 1);
      assertEquals(line.slice(0, -1).search(/[\p{Cc}\u2028\u2029\u202a-\u202e]/u), -1);
      assertEquals(JSON.parse(line).event, "user:notification");
    }),
    propertyOptions(100, 300, 3000),
  );
});

Deno.test("LineQueue writes one text at a time, in order, and joins waiting lines", async () => {
  const written: string[] = [];
  const gates: (() => void)[] = [];
  const queue = new LineQueue((text) => {
    written.push(text);
    return new Promise((resolve) => gates.push(resolve));
  }, () => "");
  queue.add("a");
  queue.add("b");
  await null;
  await null;
  queue.add("c");
  queue.add("d");
  assertEquals(written, ["ab"]);
  const flushed = queue.flush();
  gates[0]?.();
  while (gates.length < 2) await null;
  assertEquals(written, ["ab", "cd"]);
  gates[1]?.();
  await flushed;
});

Deno.test("LineQueue drops and counts lines when a sink does not progress", async () => {
  let open = () => {};
  const held = new Promise<void>((resolve) => open = resolve);
  const written: string[] = [];
  const queue = new LineQueue(async (text) => {
    await held;
    written.push(text);
  }, (count) => `dropped ${count}`);
  queue.add("first");
  await null;
  await null;
  const large = "x".repeat(600_000);
  for (let index = 0; index < 3; index++) queue.add(large);
  open();
  await queue.flush();
  assertEquals(written, ["first", "dropped 2" + large]);
});

Deno.test("LineQueue ignores further lines and rejects flush() after a failed write", async () => {
  let writes = 0;
  const queue = new LineQueue(() => {
    writes++;
    return Promise.reject(new Error("disk full"));
  }, () => "");
  queue.add("a");
  await assertRejects(() => queue.flush(), Error, "disk full");
  queue.add("b");
  await assertRejects(() => queue.flush(), Error, "disk full");
  assertEquals([writes, queue.failed], [1, true]);
});
