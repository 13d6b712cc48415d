/**
 * Garbage: KB of a short run that only a full garbage collection frees. Exits with 1 above 18 KB.
 *
 *   deno run -A --v8-flags=--expose-gc tests/bench/garbage_bench.ts
 */
import { getHeapSpaceStatistics } from "node:v8";
import { createRuntime } from "../../src/app/runtime.ts";
import type { Caller } from "../../src/runs/types.ts";
import { print, report } from "./figures.ts";

const CALLER: Caller = { name: "test", namespace: "test", origin: "operator" };
const PLAN = {
  session: { orchestrator: "loop-basic", context: "context-simple" },
  providers: [{ module: "provider-mock", config: { response: "Hello." } }],
};
const AT_ONCE = 10;
const MOST_KB = 18;

const runtime = createRuntime();
const { gc } = globalThis as unknown as { gc(options?: { type: "minor" }): void }; // defined by the flag

async function runs(count: number): Promise<void> {
  for (let index = 0; index < count; index++) {
    const run = await runtime.runs.create({ prompt: "Hello", plan: PLAN }, CALLER);
    await run.settled("end");
  }
}

async function round(): Promise<void> {
  await Promise.all(Array.from({ length: AT_ONCE }, () => runs(5)));
  await new Promise((resolve) => setTimeout(resolve, 0));
  gc({ type: "minor" });
}

function oldBytes(): number {
  return getHeapSpaceStatistics().find(({ space_name }) => space_name === "old_space")!.space_used_size;
}

for (let index = 0; index < 20; index++) await round();
gc();
const before = oldBytes();
for (let index = 0; index < 10; index++) await round();
const kb = (oldBytes() - before) / (10 * AT_ONCE * 5) / 1024;
await runtime.close();
print(`a run of one answer leaves ${kb.toFixed(1)} KB, at most ${MOST_KB} KB`);
report("garbage", { kb });
if (kb > MOST_KB) Deno.exit(1);
