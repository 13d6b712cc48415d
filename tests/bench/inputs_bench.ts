/**
 * Inputs: ms to read inputs on which a careless reader takes minutes; the time to find the last of 200 keys
 * against the first; a compiled plan against the time of its hash; memory to refuse a compressed module.
 * Exits with 1 above a bound.
 *
 *   deno run -A tests/bench/inputs_bench.ts
 */
import { readShell } from "../../modules/shell/commands.ts";
import { readDeclared } from "../../src/loader/bundler/static_manifest.ts";
import { compilePlan, createPlanCache } from "../../src/plan/compile.ts";
import { parsePlanText } from "../../src/plan/parse/parse.ts";
import { hashKey, KeyRing } from "../../src/policy/api_keys.ts";
import { canonicalHash } from "../../src/sdk/digest.ts";
import { compileGlob } from "../../src/sdk/glob.ts";
import { LLMError, overflowOf } from "../../src/sdk/llm_errors.ts";
import { contextOf, loaderOf, serveFiles, specOf } from "../support/loader.ts";
import {
  compressedZeros,
  GLOBS,
  MODULE_CODES,
  OVERFLOW_MESSAGES,
  PLAN_TEXTS,
  SHELL_TEXTS,
} from "../support/hostile_inputs.ts";
import { type Cell, compare, print, report, tableOf, timed } from "./figures.ts";

const globs = Object.values(GLOBS).map(({ pattern, text }) => [compileGlob(pattern), text] as const);

/** Readers with their inputs, and the most milliseconds of one input. */
const READERS: Readonly<Record<string, { most_ms: number; runs: readonly (() => unknown)[] }>> = {
  "a plan of 256 KiB": {
    most_ms: 200,
    runs: Object.values(PLAN_TEXTS).map((text) => () => parsePlanText(text).catch(() => {})),
  },
  "the declaration of a module": {
    most_ms: 2_000,
    runs: Object.values(MODULE_CODES).map((code) => () => readDeclared(`${code}export{m as module};`)),
  },
  "a shell command of 32 KiB": { most_ms: 100, runs: SHELL_TEXTS.map((text) => () => readShell(text)) },
  "a glob over 32 KiB": { most_ms: 200, runs: globs.map(([glob, text]) => () => glob(text)) },
  "a message about a request that is too long": {
    most_ms: 500,
    runs: OVERFLOW_MESSAGES.map((message) => () => overflowOf(new LLMError("ContextLengthError", message))),
  },
};

const rows: Cell[][] = [];
const figures: Record<string, number> = {};
let exceeded = false;

/** Adds a row; a figure above `most` is marked. */
function add(name: string, figure: number, most: number, unit: string): void {
  if (figure > most) exceeded = true;
  figures[name] = figure;
  rows.push([name, `${figure.toFixed(2)} ${unit}`, `${most} ${unit}`, figure > most ? "exceeded" : "ok"]);
}

for (const [name, { most_ms, runs }] of Object.entries(READERS)) {
  let slowest = 0;
  for (const run of runs) {
    slowest = Math.max(slowest, Math.min(await timed(run), await timed(run), await timed(run)));
  }
  add(name, slowest, most_ms, "ms");
}

const keys = Array.from(
  { length: 200 },
  (_, index) => ({ name: `k${index}`, sha256: hashKey(`key-${index}`) }),
);
const ring = new KeyRing(keys);
const find = (key: string) => () => {
  for (let call = 0; call < 40; call++) ring.find(key);
};
const { first, last } = await compare(60, { first: find("key-0"), last: find("key-199") });
add("the last of 200 keys against the first", last / first, 2, "×"); // the time must not tell which key is right

const { written } = await compilePlan({
  session: { orchestrator: "loop-streaming", context: "context-simple" },
  providers: ["provider-mock"],
  tools: ["tool-calculator"],
}, { origin: "caller" });
const cache = createPlanCache();
const many = (run: () => unknown) => async () => {
  for (let call = 0; call < 50; call++) await run();
};
const { hash, cold, warm } = await compare(40, {
  hash: many(() => canonicalHash(written)),
  cold: many(() => compilePlan(written, { origin: "caller" })),
  warm: many(() => compilePlan(written, { origin: "caller", cache })),
});
add("compile a small plan, against its hash", cold / hash, 10, "×");
add("the same from the cache", warm / hash, 1, "×");

const bomb = await compressedZeros(512);
await using server = serveFiles({
  "bomb.ts": () => new Response(bomb, { headers: { "content-encoding": "gzip" } }),
});
await using loader = loaderOf();
const before = Deno.memoryUsage().rss;
const refused = await loader.bundle(specOf(`${server.url}bomb.ts`), contextOf()).then(
  () => false,
  () => true,
);
if (!refused) throw new Error("Cannot measure: the module must be refused");
add("memory to refuse a module of 512 MB", (Deno.memoryUsage().rss - before) / 1e6, 32, "MB");

print(tableOf(["what", "figure", "at most", ""], rows));
report("inputs", figures);
if (exceeded) Deno.exit(1);
