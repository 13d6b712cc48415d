/** Measures conversation memories against each other; knows nothing of what they are. */
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import type { Message } from "../../src/sdk/types.ts";
import { type Cell, median, print, tableOf } from "./figures.ts";
import { opening, roundOf, transcript } from "./transcripts.ts";
import type { Trimmer } from "./trimmers.ts";

/** Tokens a request may take; a model with a window of 32k. */
export const BUDGET = 26_000;

const SIZES = [100, 1_000, 10_000] as const;
const ROUNDS = 1_000;

/** A name and how its memory is made anew. */
export type Contestant = readonly [name: string, create: () => Trimmer | Promise<Trimmer>];

/** What was measured of one. */
export interface ContextFigures {
  /** µs for the messages of a round and the request after them, by messages in the history. */
  readonly us: Record<number, number>;
  /** 0 = the history's length does not matter, 1 = twice as long costs twice as much. */
  readonly growth: number;
  /** Share of requests whose view begins with the view before. */
  readonly prefix: number;
  /** Requests with a call without its results, or a result without its call. */
  readonly broken: number;
  /** Requests above the budget, by o200k. */
  readonly over: number;
  /** Tokens sent in all requests, by o200k. */
  readonly sent: number;
  /** Of these, tokens that a prompt cache would have had: in the prefix shared with the request before. */
  readonly cached: number;
}

/** Measures all and prints the table. */
export async function measure(contestants: readonly Contestant[]): Promise<Record<string, ContextFigures>> {
  const figures: Record<string, ContextFigures> = {};
  for (const [name, create] of contestants) {
    const us: Record<number, number> = {};
    for (const size of SIZES) us[size] = await requestTime(create, size);
    const growth = Math.log((us[10_000] ?? NaN) / (us[100] ?? NaN)) / Math.log(100);
    figures[name] = { us, growth, ...await session(create) };
  }
  const rows = Object.entries(figures).map(([name, one]): Cell[] => [
    name,
    ...SIZES.map((size) => one.us[size] ?? NaN),
    Number(one.growth.toFixed(2)),
    Number(one.prefix.toFixed(3)),
    one.broken,
    one.over,
    Math.round(one.sent / 1e6),
    Math.round(one.cached / one.sent * 100),
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

/** Median µs of adding a round and asking for a view, in a history of so many messages. */
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
    if (performance.now() > stop) break; // one that takes this long needs no more
  }
  return median(times.slice(Math.min(20, times.length >> 1)));
}

/** A session of a thousand rounds, a request after each. */
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
    const total = tokens.reduce((sum, one) => sum + one, 0);
    if (total > BUDGET) over++;
    sent += total;
    cached += tokens.slice(0, same < 0 ? undefined : same).reduce((sum, one) => sum + one, 0);
    before = texts;
  }
  return { prefix: kept / (ROUNDS - 1), broken, over, sent, cached };
}

const counted = new Map<string, number>();

/** o200k's tokens of a message's content and calls. */
function tokensOf({ content }: Message): number {
  const text = typeof content === "string" ? content : JSON.stringify(content);
  let tokens = counted.get(text);
  if (tokens === undefined) counted.set(text, tokens = countTokens(text) + 4);
  return tokens;
}

/** Whether every call is followed by its results, in order, and no result stands alone. */
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
