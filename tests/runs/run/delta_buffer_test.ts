import * as fc from "fast-check";
import { assert, assertEquals } from "../../assert.ts";
import { type DraftEntry, draftEntry } from "../../../src/kernel/host.ts";
import { Redactor } from "../../../src/policy/redact.ts";
import { DeltaBuffer } from "../../../src/runs/run/delta_buffer.ts";

const SECRET = "sk-live-0123456789abcdef";

function piece(delta: string, sequence: number, block_index = 0): DraftEntry {
  return draftEntry("content_block:delta", "ses_1", { request_id: "req_1", block_index, sequence, delta }, {
    iteration: 1,
  });
}

function end(event = "content_block:end", block_index = 0): DraftEntry {
  return draftEntry(
    event,
    "ses_1",
    event === "content_block:end" ? { request_id: "req_1", block_index } : {},
  );
}

/** Returns the deltas that are released for these, the end of their block included. */
function released(deltas: DeltaBuffer, texts: readonly string[], last: DraftEntry = end()): DraftEntry[] {
  const entries = texts.map((text, index) => deltas.add(piece(text, index + 1), false));
  return [...entries, ...deltas.flushBefore(last)].filter((entry) => entry !== null);
}

const texts = (entries: readonly DraftEntry[]) => entries.map(({ data }) => data.delta);

Deno.test("DeltaBuffer releases deltas unchanged when there are no secrets", () => {
  const deltas = new DeltaBuffer(new Redactor(), 100);
  const one = piece("sk-live-", 1);
  assert(deltas.add(one, false) === one);
  assertEquals(deltas.flushBefore(end()), []);
});

Deno.test("DeltaBuffer redacts a secret that is split over deltas at any position", () => {
  for (let at = 1; at < SECRET.length; at++) {
    const parts = [`key ${SECRET.slice(0, at)}`, `${SECRET.slice(at)} done`];
    assertEquals(
      texts(released(new DeltaBuffer(new Redactor([SECRET]), 100), parts)).join(""),
      "key [REDACTED] done",
    );
  }
  const letters = texts(released(new DeltaBuffer(new Redactor([SECRET]), 100), [..."a" + SECRET + "b"]));
  assertEquals(letters.join(""), "a[REDACTED]b");
});

Deno.test("DeltaBuffer holds back only a possible beginning of a secret, and releases it at the block's end", () => {
  const entries = released(new DeltaBuffer(new Redactor([SECRET]), 100), [
    "hello ",
    "you sk-li",
    "on ",
    "sk",
  ]);
  assertEquals(texts(entries), ["hello ", "you ", "sk-lion ", "sk"]);
  assertEquals(entries.map(({ data }) => data.sequence), [1, 2, 3, 4]);
  assertEquals(entries.map(({ iteration }) => iteration), [1, 1, 1, 1]);
});

Deno.test("DeltaBuffer numbers the released deltas of a block without gaps", () => {
  const entries = released(new DeltaBuffer(new Redactor([SECRET]), 100), [...SECRET, " and on"]);
  assertEquals(texts(entries).join(""), "[REDACTED] and on");
  assertEquals(entries.map(({ data }) => data.sequence), entries.map((_, index) => index + 1));
});

Deno.test("DeltaBuffer separates blocks, and releases held text when a call, a turn or the run ends", () => {
  for (const event of ["provider:error", "provider:retry", "llm:stream_aborted", "execution:end"]) {
    assertEquals(
      texts(released(new DeltaBuffer(new Redactor([SECRET]), 100), ["sk-l"], end(event))),
      ["sk-l"],
      event,
    );
  }
  const deltas = new DeltaBuffer(new Redactor([SECRET]), 100);
  assertEquals([deltas.add(piece("sk-l", 1, 0), false), deltas.add(piece("sk-l", 1, 1), false)], [
    null,
    null,
  ]);
  assertEquals(deltas.flushBefore(end("tool:pre")), []);
  assertEquals(texts(deltas.flushBefore(end("content_block:end", 1))), ["sk-l"]);
  assertEquals([texts(deltas.flush()), deltas.flush()], [["sk-l"], []]);
});

Deno.test("DeltaBuffer joins deltas after very many, and loses no text", () => {
  const deltas = new DeltaBuffer(new Redactor(), 10);
  const given = Array.from({ length: 50_000 }, (_, index) => `${index},`);
  const entries = released(deltas, given);
  assertEquals(texts(entries).join(""), given.join(""));
  assert(entries.length < 10 + given.join("").length / (16 * 1024) + 2, `${entries.length} entries`);
  assertEquals(entries.map(({ data }) => data.sequence), entries.map((_, index) => index + 1));
  assertEquals(deltas.chars, given.join("").length);
});

Deno.test("DeltaBuffer never releases a secret, for any secrets and deltas", () => {
  const text = fc.string({ unit: fc.constantFrom("a", "b", "c"), minLength: 6, maxLength: 9 });
  fc.assert(
    fc.property(
      fc.array(text, { minLength: 1, maxLength: 3 }),
      fc.array(fc.oneof(text, fc.string({ unit: fc.constantFrom("a", "b", "c", "-"), maxLength: 5 }))),
      fc.integer({ min: 1, max: 4 }),
      (secrets, parts, size) => {
        const whole = parts.join("");
        const deltas = whole.match(new RegExp(`.{1,${size}}`, "g")) ?? [];
        const joined = texts(released(new DeltaBuffer(new Redactor(secrets), 100_000), deltas)).join("");
        for (const secret of secrets) assert(!joined.includes(secret), `${secret} in ${joined}`);
      },
    ),
    { seed: 7, numRuns: 3000 },
  );
});

Deno.test("DeltaBuffer redacts what a tool writes over its pieces, and releases the rest before the call's result", () => {
  const written = (text: string, tool_call_id = "c1", stream = "stdout") =>
    draftEntry("tool:output", "ses_1", { tool_call_id, text, stream });
  const textsOf = (drafts: readonly (DraftEntry | null)[]) => drafts.map((draft) => draft && draft.data.text);
  const deltas = new DeltaBuffer(new Redactor([SECRET]), 100);
  for (let at = 1; at < SECRET.length; at++) {
    const pieces = [`key ${SECRET.slice(0, at)}`, `${SECRET.slice(at)} done`];
    assertEquals(
      textsOf(pieces.map((text) => deltas.add(written(text), false))).join(""),
      "key [REDACTED] done",
    );
  }
  deltas.add(written("sk-l", "c1"), false);
  deltas.add(written("sk-li", "c1", "stderr"), false);
  deltas.add(written("sk-liv", "c2"), false);
  const result = draftEntry("tool:post", "ses_1", { tool_call_id: "c1" });
  assertEquals(textsOf(deltas.flushBefore(result)), ["sk-l", "sk-li"]);
  assertEquals(textsOf(deltas.flush()), ["sk-liv"]);
});

Deno.test("DeltaBuffer joins deltas while many wait to be stored, and no longer", () => {
  const deltas = new DeltaBuffer(new Redactor(), 1_000);
  const texts = (drafts: readonly (DraftEntry | null)[]) => drafts.map((draft) => draft && draft.data.delta);
  const crowded = ["a", "b", "c"].map((text, index) => deltas.add(piece(text, index + 1), true));
  assertEquals(texts(crowded), [null, null, null]);
  assertEquals(texts([deltas.add(piece("d", 4), false)]), ["abcd"]);
  assertEquals(texts([deltas.add(piece("e", 5), false)]), ["e"]);
});
