import fc from "fast-check";
import { encodeFrame, FrameReader, FrameTooLarge } from "../../src/process/frames.ts";
import { assertEquals, assertRejects } from "../assert.ts";
import { propertyOptions } from "../support/cases.ts";
import { ANY_CHARACTER } from "../support/characters.ts";

const bytesOf = (text: string) => new TextEncoder().encode(text);

function concat(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}

/** Returns a reader of bytes that arrive in pieces; each read overwrites the memory of the one before. */
function readerOf(bytes: Uint8Array, cuts: readonly number[], limit: () => number): FrameReader {
  const ends = [...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
  const pieces = ends.map((end, index) => bytes.slice(ends[index - 1] ?? 0, end)).filter(({ length }) =>
    length > 0
  );
  return new FrameReader((buffer) => {
    buffer.fill(0xff);
    const piece = pieces.shift();
    if (!piece) return Promise.resolve(null);
    const moved = new Uint8Array(buffer.buffer.transfer(), 0, piece.length); // as a stream's reader does
    moved.set(piece);
    return Promise.resolve(moved);
  }, limit);
}

async function framesOf(reader: FrameReader): Promise<[string, string][]> {
  const frames = [];
  for (let frame = await reader.next(); frame; frame = await reader.next()) frames.push(frame);
  return frames.map(({ text, body }) => [text, body.toHex()]); // read late: a frame keeps its bytes
}

const texts = fc.oneof(
  fc.string({ unit: ANY_CHARACTER, maxLength: 12 }).map((text) => text.toWellFormed()),
  fc.constantFrom("", "\n", "\ufeffx", "×🎈é"),
);
const frames = fc.array(fc.tuple(texts, fc.array(fc.uint8Array({ maxLength: 20 }), { maxLength: 3 })), {
  maxLength: 6,
});
const cuts = fc.array(fc.nat(400), { maxLength: 12 });

Deno.test("FrameReader gives the same frames however their bytes arrive", async () => {
  await fc.assert(
    fc.asyncProperty(frames, cuts, async (written, places) => {
      const bytes = concat(written.map(([text, parts]) => encodeFrame(text, parts)));
      assertEquals(
        await framesOf(readerOf(bytes, places, () => 1_000)),
        written.map(([text, parts]) => [text, concat(parts).toHex()]),
      );
    }),
    propertyOptions(100, 300, 3000),
  );
});

Deno.test("FrameReader reads no frame above its limit, and every one up to it", async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(30), fc.nat(30), cuts, async (length, limit, places) => {
      const bytes = encodeFrame("", [new Uint8Array(length)]);
      const reading = readerOf(bytes, places, () => limit).next();
      if (length > limit) await assertRejects(() => reading, FrameTooLarge);
      else assertEquals((await reading)?.body.length, length);
    }),
    propertyOptions(100, 300, 3000),
  );
});

Deno.test("FrameReader asks for the limit at each frame: what one frame does counts for the next", async () => {
  let limit = 100;
  const reader = readerOf(
    concat(["open", "123456", "never"].map((text) => encodeFrame(text))),
    [],
    () => limit,
  );
  assertEquals((await reader.next())?.text, "open");
  limit = 5;
  await assertRejects(() => reader.next(), FrameTooLarge);
});

Deno.test("FrameReader allocates nothing for a length above the limit", async () => {
  const reader = readerOf(Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), [], () => 5_500);
  await assertRejects(
    () => reader.next(),
    FrameTooLarge,
    "Cannot read a frame: it has 8589934590 bytes, at most 5500 are allowed",
  );
});

for (const [where, length] of [["the lengths", 5], ["the text", 9], ["the body", 12]] as const) {
  Deno.test(`FrameReader rejects a stream that ends in ${where}`, async () => {
    const bytes = encodeFrame("ab", [bytesOf("cdef")]).subarray(0, length);
    const reader = readerOf(bytes, [], () => 100);
    await assertRejects(() => reader.next(), Error, "Cannot read a frame: it is incomplete");
  });
}
