/**
 * Fits the weights of `estimateTokens` to o200k and writes them into `src/sdk/token_weights.ts`.
 *
 *   cd tests/bench/estimator && deno install && deno run -A han.ts && deno run -A fit.ts [--dry]
 *
 * Least squares of the relative error over texts that {@link foundTexts} found and {@link MAKERS} made, with every weight
 * held to where it was (a ridge), none below 0. A fifth of the documents is kept out; the table at the end is of those and
 * of the texts of held_out_texts.ts. The same packages, seed and weights before give the same weights.
 */
import { Automaton, SAME, UNKNOWN } from "../../../src/sdk/token_automaton.ts";
import { WEIGHTS, type Weights } from "../../../src/sdk/token_weights.ts";
import { HELD_OUT } from "./held_out_texts.ts";
import { allSamples, o200k, type Sample } from "./samples.ts";
import { solve } from "./solve.ts";
import { writeWeights } from "./write_weights.ts";

/** How firmly a weight stays where it was; what the texts say nothing of does not move. */
const RIDGE = Number(Deno.args.find((arg) => arg.startsWith("--ridge="))?.slice(8) ?? 2e-4);

const { fitted, kept } = allSamples();
const weights = fit();
if (!Deno.args.includes("--dry")) await writeWeights(weights);
for (const line of errors(new Automaton(weights), [...kept, ...written()])) console.log(line);

/** Every kind of text counts the same, however many texts there are of it; other languages together, and what was written, as four. */
function fit(): Weights {
  const { numbers, names } = numbered(WEIGHTS);
  const counter = new Automaton(names);
  const rows = fitted.map((sample) => countsOf(counter, sample.text, numbers.length));
  const per_kind = Map.groupBy(fitted, (sample) => sample.kind);
  const importance = fitted.map((sample) =>
    (sample.kind === "other_prose" || sample.kind.endsWith("natural") ? 4 : 1) /
    per_kind.get(sample.kind)!.length
  );
  const values = solve(rows, fitted.map((sample) => sample.tokens * 100), importance, numbers, RIDGE);
  return renamed(names, values.map((value) => Math.round(value)));
}

function written(): Sample[] {
  return Object.entries(HELD_OUT).flatMap(([kind, texts]) =>
    texts.map((text) => ({ kind: `written: ${kind}`, document: "", text, tokens: o200k(text) }))
  );
}

/** Returns the weights as a list, and the same object with each number replaced by its place in the list. */
function numbered(weights: Weights): { numbers: number[]; names: Weights } {
  const numbers: number[] = [];
  const walk = (value: unknown): unknown => {
    if (typeof value === "number") return numbers.push(value) - 1;
    if (Array.isArray(value)) return value.map(walk);
    return Object.fromEntries(Object.entries(value as object).map(([key, inner]) => [key, walk(inner)]));
  };
  return { names: walk(weights) as Weights, numbers };
}

function renamed(names: Weights, values: readonly number[]): Weights {
  const walk = (value: unknown): unknown => {
    if (typeof value === "number") return values[value];
    if (Array.isArray(value)) return value.map(walk);
    return Object.fromEntries(Object.entries(value as object).map(([key, inner]) => [key, walk(inner)]));
  };
  return walk(names) as Weights;
}

/** How often each weight is spent on a text. */
function countsOf(tables: Automaton, text: string, weights: number): Float64Array {
  const counts = new Float64Array(weights);
  spend(tables, text, (number) => counts[number]!++);
  return counts;
}

function spend(tables: Automaton, text: string, take: (cost: number) => void): void {
  const { classes, repeats, next, cost } = tables;
  let row = 0;
  let last = -1;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    let kind = classes[code]!;
    if (code === last && repeats[kind] === 1) kind = SAME;
    last = code;
    const cell = row + kind;
    row = next[cell]!;
    if (row === UNKNOWN) row = tables.learn(cell);
    take(cost[cell]!);
  }
}

function errors(tables: Automaton, texts: readonly Sample[]): string[] {
  const lines: string[] = [];
  for (
    const [kind, group] of [...Map.groupBy(texts, (text) => text.kind)].sort(([a], [b]) => a < b ? -1 : 1)
  ) {
    let [all, real, absolute] = [0, 0, 0];
    for (const { text, tokens } of group) {
      let hundredths = 0;
      spend(tables, text, (cost) => hundredths += cost);
      const estimate = Math.ceil(Math.max(hundredths / 100, text.length / 8));
      all += estimate;
      real += tokens;
      absolute += Math.abs(estimate / tokens - 1);
    }
    const percent = (value: number) => `${(value * 100).toFixed(1).padStart(6)} %`;
    lines.push(
      `${kind.padEnd(20)} ${String(group.length).padStart(5)} texts  together ${
        percent(all / real - 1)
      }  single ${percent(absolute / group.length)}`,
    );
  }
  return lines;
}
