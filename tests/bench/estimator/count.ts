/** Writes the held-out texts with o200k's counts to `tests/fixtures/o200k_held_out.json`: `deno run -A count.ts`. */
import { HELD_OUT } from "./held_out_texts.ts";
import { o200k } from "./samples.ts";

const samples = Object.entries(HELD_OUT).flatMap(([kind, texts]) =>
  texts.map((text) => ({ kind, tokens: o200k(text), text }))
);
await Deno.writeTextFile(
  new URL("../../fixtures/o200k_held_out.json", import.meta.url),
  `${JSON.stringify(samples, null, 2)}\n`,
);
