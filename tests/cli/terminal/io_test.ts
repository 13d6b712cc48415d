import { systemIo } from "../../../src/cli/terminal/io.ts";
import { assertEquals, assertThrows } from "../../assert.ts";

/** Writes `text` while the stream fails as `failures` say, one for each call; returns what was written. */
function written(name: "out" | "err", text: string, failures: readonly (Error | null)[]): string {
  const stream = name === "out" ? Deno.stdout : Deno.stderr;
  const { writeSync } = stream;
  const parts: Uint8Array[] = [];
  let calls = 0;
  stream.writeSync = (bytes) => {
    const failure = failures[calls++];
    if (failure) throw failure;
    const part = bytes.slice(0, 4);
    parts.push(part);
    return part.length;
  };
  try {
    systemIo()[name].write(text);
  } finally {
    stream.writeSync = writeSync;
  }
  return parts.map((part) => new TextDecoder().decode(part)).join("");
}

const { BrokenPipe, WouldBlock } = Deno.errors;
const full = () => new Error("No space left on device");

Deno.test("write() to stdout waits while a non-blocking pipe is full, and ends at a closed one", () => {
  assertEquals(written("out", "one two three", [null, new WouldBlock(), new WouldBlock()]), "one two three");
  assertEquals(written("out", "one two three", [null, new BrokenPipe()]), "one ");
  assertThrows(() => written("out", "one two three", [full()]), Error, "No space left");
});

Deno.test("write() to stderr never fails, and waits a second while a non-blocking pipe is full", () => {
  for (const failure of [new BrokenPipe(), full()]) {
    assertEquals(written("err", "one two three", [null, failure]), "one ");
  }
  const waits = (count: number) => Array.from({ length: count }, () => new WouldBlock());
  assertEquals(written("err", "one two three", [null, ...waits(2)]), "one two three");
  assertEquals(written("err", "one two three", [null, ...waits(200)]), "one ");
});
