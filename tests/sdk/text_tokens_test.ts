/** Token estimates of texts against the tokenizer o200k; src/docs/context.md states the bounds. */
import fc from "fast-check";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { estimateTokens } from "preamp";
import { assert, assertEquals } from "../assert.ts";
import { propertyOptions } from "../support/cases.ts";
import { ANY_CHARACTER } from "../support/characters.ts";
import heldOut from "../fixtures/o200k_held_out.json" with { type: "json" };
import samples from "../fixtures/o200k_samples.json" with { type: "json" };
import proseOfScripts from "../fixtures/prose_of_scripts.json" with { type: "json" };

for (const { name, text } of [...samples, ...heldOut.map(({ kind, text }) => ({ name: kind, text }))]) {
  Deno.test(`estimateTokens() is at most a quarter below o200k when the text is ${name}: ${text.slice(0, 20)}`, () => {
    checkShare(text, 0.75, 1.7);
  });
}

for (const { name, text } of proseOfScripts) {
  Deno.test(`estimateTokens() is at most a quarter below o200k on prose: ${name}`, () => {
    checkShare(text, 0.75, 1.6);
  });
}

Deno.test("estimateTokens() is at most a quarter below o200k on source files and pages", async () => {
  for (const file of ["../../src/sdk/loop/loop.ts", "../../deno.json", "../../src/docs/http.md"]) {
    checkShare(await Deno.readTextFile(new URL(file, import.meta.url)), 0.75, 1.4);
  }
});

const LOWER = "abcdefghijklmnopqrstuvwxyz";
const UPPER = LOWER.toUpperCase();
const DIGITS = "0123456789";
const MARKS = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";

/** Texts without words, which characters ÷ 4 underestimate. */
const UNBROKEN: Readonly<Record<string, fc.Arbitrary<string>>> = {
  "digits": runOf(DIGITS),
  "hexadecimal": runOf("0123456789abcdef"),
  "base64": runOf(`${UPPER}${LOWER}${DIGITS}+/`),
  "base32": runOf(`${UPPER}234567`),
  "small letters": runOf(LOWER),
  "marks": runOf(MARKS),
  "printable characters": runOf(` ${MARKS}${UPPER}${LOWER}${DIGITS}`),
  "UUIDs": fc.array(fc.uuid(), { minLength: 20, maxLength: 20 }).map((ids) => ids.join("\n")),
  "rows of numbers": fc.array(fc.tuple(fc.nat(999), fc.nat(99_999)), { minLength: 50, maxLength: 50 })
    .map((rows) => rows.map(([first, second]) => `${first},${second / 100},2026-01-05`).join("\n")),
  "a repeated character": fc.constantFrom(...LOWER, ...UPPER, ...DIGITS, ...MARKS, " ", "\n")
    .map((one) => one.repeat(600)),
};

for (const [name, texts] of Object.entries(UNBROKEN)) {
  Deno.test(`estimateTokens() is at most a quarter below o200k on ${name}`, () => {
    fc.assert(fc.property(texts, (text) => checkShare(text, 0.75, Infinity)), { numRuns: 30, seed: 7 });
  });
}

Deno.test("estimateTokens() returns 0 for an empty text and never less than an eighth of the length", () => {
  assertEquals(estimateTokens(""), 0);
  assertEquals(estimateTokens("x".repeat(8000)) >= 1000, true);
  assertEquals(estimateTokens(" ".repeat(8000)) >= 1000, true);
});

Deno.test("estimateTokens() accepts any UTF-16 and returns the same whole number each time", () => {
  fc.assert(
    fc.property(fc.string({ unit: ANY_CHARACTER, maxLength: 300 }), (text) => {
      const tokens = estimateTokens(text);
      assertEquals(estimateTokens(text), tokens);
      assert(Number.isInteger(tokens) && tokens >= text.length / 8 && tokens <= text.length * 3);
    }),
    propertyOptions(200, 2000, 20_000),
  );
});

function checkShare(text: string, least: number, most: number): void {
  const tokens = countTokens(text, { disallowedSpecial: new Set() });
  const share = estimateTokens(text) / tokens;
  assert(share >= least && share <= most, `${tokens} tokens, the estimate is ${share.toFixed(2)} of that`);
}

function runOf(alphabet: string, length = 500): fc.Arbitrary<string> {
  return fc.string({ unit: fc.constantFrom(...alphabet), minLength: length, maxLength: length });
}
