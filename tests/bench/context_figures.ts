/** Measures and compares context managers. */
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import type { Message } from "../../src/sdk/types.ts";
import { type Cell, median, print, tableOf } from "./figures.ts";
import { opening, roundOf, transcript } from "./transcripts.ts";
import type { Trimmer } from "./trimmers.ts";

/** Token budget of a request, as for a model with a window of 32k. */
export const BUDGET = 26_000;

const SIZES = [100, 1_000, 10_000] as const;
const ROUNDS = 1_000;

/** A name and a function that creates a new context manager. */
export type Contestant = readonly [name: string, create: () => Trimmer | Promise<Trimmer>];

/** The figures of one context manager. */
export interface ContextFigures {
  /** Messages in the history → µs for adding the messages of a round and the next request. */
  readonly us: Record<number, number>;
  /** 0 = the history's length does not matter, 1 = twice as long costs twice as much. */
  readonly growth: number;
  /** Share of requests whose view starts with the previous view. */
  readonly prefix: number;
  /** Number of requests with a call without results, or a result without a call. */
  readonly broken: number;
  /** Number of requests above the budget, counted with o200k. */
  readonly over: number;
  /** Tokens of all requests, counted with o200k. */
  readonly sent: number;
  /**
   * Tokens of `sent` that a prompt cache would contain: those in the prefix shared with the previous request.
   */
  readonly cached: number;
}

/** Measures all context managers and prints the table. */
export async function measure(contestants: readonly Contestant[]): Promise<Record<string, ContextFigures>> {
  const figures: Record<string, ContextFigures> = {};
  for (const [name, create] of contestants) {
    const us: Record<number, number> = {};
    for (const size of SIZES) us[size] = await requestTime(create, size);
    const growth = Math.log((us[10_000] ?? NaN) / (us[100] ?? NaN)) / Math.log(100);
    figures[name] = { us, growth, ...await session(create) };
  }
  const rows = Object.entries(figures).map(([name, figure]): Cell[] => [
    name,
    ...SIZES.map((size) => figure.us[size] ?? NaN),
    Number(figure.growth.toFixed(2)),
    Number(figure.prefix.toFixed(3)),
    figure.broken,
    figure.over,
    Math.round(figure.sent / 1e6),
    Math.round(figure.cached / figure.sent * 100),
  ]);
  const heading = [
    "",
    ...SIZES.map((size) => `µs at ${size}`),
    "growth",
    "prefix kept",
    "broken pairs",
    "over budget",
    "M tokens",
    "% cacheable",
  ];
  print(tableOf(heading, rows));
  return figures;
}

/** Resolves to the median µs of adding a round and requesting a view, with `size` messages in the history. */
async function requestTime(create: Contestant[1], size: number): Promise<number> {
  const memory = await create();
  for (const message of transcript(size)) await memory.add(message);
  await memory.view(BUDGET);
  const times: number[] = [];
  const rounds = Array.from({ length: 120 }, (_, round) => roundOf(20_000 + round));
  const stop = performance.now() + 3_000;
  for (const messages of rounds) {
    const start = performance.now();
    for (const message of messages) await memory.add(message);
    await memory.view(BUDGET);
    times.push((performance.now() - start) * 1000);
    if (performance.now() > stop) break; // slow ones need fewer samples
  }
  return median(times.slice(Math.min(20, times.length >> 1)));
}

/** Measures a session of a thousand rounds with a request after each. */
async function session(create: Contestant[1]) {
  const memory = await create();
  for (const message of opening()) await memory.add(message);
  let [kept, broken, over, sent, cached] = [0, 0, 0, 0, 0];
  let before: string[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    for (const message of roundOf(round)) await memory.add(message);
    const view = (await memory.view(BUDGET)).filter(({ metadata }) =>
      metadata?.source !== "context-compaction"
    );
    const texts = view.map((message) => JSON.stringify(message));
    const same = texts.findIndex((text, index) => text !== before[index]);
    if (round > 0 && (same < 0 ? texts.length : same) >= before.length) kept++;
    if (!pairsHold(view)) broken++;
    const tokens = view.map(tokensOf);
    const total = tokens.reduce((sum, count) => sum + count, 0);
    if (total > BUDGET) over++;
    sent += total;
    cached += tokens.slice(0, same < 0 ? undefined : same).reduce((sum, count) => sum + count, 0);
    before = texts;
  }
  return { prefix: kept / (ROUNDS - 1), broken, over, sent, cached };
}

const counted = new Map<string, number>();

/** Returns the o200k tokens of a message. */
function tokensOf({ content }: Message): number {
  const text = typeof content === "string" ? content : JSON.stringify(content);
  let tokens = counted.get(text);
  if (tokens === undefined) counted.set(text, tokens = countTokens(text) + 4);
  return tokens;
}

/** Returns whether every call is followed by its results, in order, and every result has a call. */
function pairsHold(view: readonly Message[]): boolean {
  let wanted: string[] = [];
  for (const message of view) {
    if (message.role === "tool") {
      if (wanted.shift() !== message.tool_call_id) return false;
      continue;
    }
    if (wanted.length > 0) return false;
    wanted = (message.tool_calls ?? []).map((call) => call.id);
  }
  return wanted.length === 0;
}
