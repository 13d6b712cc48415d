/**
 * Context: µs per request of `context-simple` at 100, 1,000 and 10,000 messages, compared with a simple
 * trimmer and a floor that only appends; how often a view starts with the previous view; broken pairs; tokens
 * sent; error of the token estimate.
 *
 *   deno run -A tests/bench/context_bench.ts
 */
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { estimateTokens } from "../../src/sdk/token_estimate.ts";
import heldOut from "../fixtures/o200k_held_out.json" with { type: "json" };
import { BUDGET, measure } from "./context_figures.ts";
import { print, report, tableOf } from "./figures.ts";
import { transcript } from "./transcripts.ts";
import { floor, ours, simpleTrimmer } from "./trimmers.ts";

print(`Context, budget of ${BUDGET} tokens; a round of one or two calls and a request each time`);
const figures = await measure([
  ["context-simple", () => ours()],
  ["simple trimmer", simpleTrimmer],
  ["floor: append, last 100", floor],
]);
const [own] = Object.values(figures);
print();
print(
  `context-simple: 10,000 messages cost ${
    ((own?.us[10_000] ?? NaN) / (own?.us[100] ?? NaN)).toFixed(2)
  } × 100 messages`,
);

const errors = estimateErrors();
print();
print(
  tableOf(
    ["error of the estimate", "ours %", "characters / 4 %"],
    errors.map(({ kind, ours, quarter }) => [kind, ours, quarter]),
  ),
);
report("context", { figures, errors });

/** Returns the errors of the estimate by kind of text. */
function estimateErrors() {
  const kinds = [...Map.groupBy(heldOut, (sample) => sample.kind)].map(([kind, samples]) => ({
    kind,
    texts: samples.map(({ text, tokens }) => ({ text, tokens })),
  }));
  const texts = transcript(2_000).map(({ content }) =>
    typeof content === "string" ? content : JSON.stringify(content)
  );
  kinds.push({ kind: "agent transcript", texts: texts.map((text) => ({ text, tokens: countTokens(text) })) });
  return kinds.map(({ kind, texts }) => {
    const real = texts.reduce((sum, { tokens }) => sum + tokens, 0);
    const percent = (count: (text: string) => number) =>
      Number(((texts.reduce((sum, { text }) => sum + count(text), 0) / real - 1) * 100).toFixed(1));
    return { kind, ours: percent(estimateTokens), quarter: percent((text) => text.length / 4) };
  });
}
