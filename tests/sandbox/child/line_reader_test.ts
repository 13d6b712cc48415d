import fc from "fast-check";
import { LineReader } from "../../../src/sandbox/child/line_reader.ts";
import { assert, assertEquals } from "../../assert.ts";

const bytesOf = (text: string) => new TextEncoder().encode(text);
const textOf = (bytes: Uint8Array) => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);

/** Reads bytes in pieces that end at these places; returns the lines, and whether all of it was taken. */
function read(
  bytes: Uint8Array,
  cuts: readonly number[],
  limit = Infinity,
): { lines: string[]; taken: boolean } {
  const reader = new LineReader();
  const lines: string[] = [];
  const ends = [...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
  let start = 0;
  for (const end of ends) {
    const chunk = bytes.slice(start, end);
    if (!reader.take(chunk, () => limit, (line) => lines.push(line))) return { lines, taken: false };
    chunk.fill(0xff); // the buffer that was read into is used again
    start = end;
  }
  return { lines, taken: true };
}

/** The lines of some bytes, found another way: each byte on its own. */
function split(bytes: Uint8Array): Uint8Array[] {
  const lines: number[][] = [[]];
  for (const byte of bytes) byte === 10 ? lines.push([]) : lines.at(-1)!.push(byte);
  return lines.map((line) => Uint8Array.from(line));
}

const texts = fc.array(
  fc.oneof(fc.string({ unit: "binary", maxLength: 12 }), fc.constantFrom("", "\n", "\ufeffx", "×🎈é")),
)
  .map((parts) => parts.join("\n"));
const anyBytes = fc.uint8Array({ maxLength: 60 }).map((bytes) =>
  bytes.map((byte) => byte % 7 === 0 ? 10 : byte)
);
const cuts = fc.array(fc.nat(400), { maxLength: 12 });

Deno.test("LineReader gives the same lines however their bytes arrive", () => {
  fc.assert(fc.property(fc.oneof(texts.map(bytesOf), anyBytes), cuts, (bytes, places) => {
    const whole = split(bytes).slice(0, -1).map(textOf); // what follows the last end of line is not there yet
    assertEquals(read(bytes, places), { lines: whole, taken: true });
  }));
});

Deno.test("LineReader takes no line above its limit, and every one up to it, however it arrives", () => {
  fc.assert(fc.property(anyBytes, cuts, fc.nat(20), (bytes, places, limit) => {
    const parts = split(bytes);
    const first = parts.findIndex((line) => line.length > limit);
    const { lines, taken } = read(bytes, places, limit);
    const expected = parts.slice(0, first < 0 ? -1 : first).map(textOf);
    assertEquals([taken, lines], [first < 0, expected]);
  }));
});

Deno.test("LineReader asks for the limit at each line: what one line does counts for the next", () => {
  const reader = new LineReader();
  let limit = 100;
  const lines: string[] = [];
  const taken = reader.take(bytesOf("open\n123456\nnever\n"), () => limit, (line) => {
    lines.push(line);
    limit = 5;
  });
  assertEquals([taken, lines], [false, ["open"]]);
});

Deno.test("LineReader never holds more than the limit", () => {
  const reader = new LineReader();
  const chunk = new Uint8Array(1_000).fill(65);
  let held = 0;
  while (reader.take(chunk, () => 5_500, () => {})) held += chunk.length;
  assert(held <= 5_500);
});
