/**
 * Garbage: KB of a request with a short run that only a full garbage collection frees, of ten requests at
 * once. Exits with 1 above 18 KB.
 *
 *   deno run -A --v8-flags=--expose-gc tests/bench/garbage_bench.ts
 */
import { getHeapSpaceStatistics } from "node:v8";
import { createPreamp, defaultPolicy } from "preamp/server";
import { print, report } from "./figures.ts";
import { HELLO_BODY, HELLO_HEADERS } from "./hello_request.ts";

const AT_ONCE = 10;
const MOST_KB = 18;

const policy = defaultPolicy();
policy.rates = { requests_per_minute: 0, runs_per_minute: 0 };
const preamp = createPreamp({ authenticate: null, policy, log: null });
const { gc } = globalThis as unknown as { gc(options?: { type: "minor" }): void }; // defined by the flag

async function requests(count: number): Promise<void> {
  for (let index = 0; index < count; index++) {
    const init = { method: "POST", headers: HELLO_HEADERS, body: HELLO_BODY };
    const response = await preamp.fetch(new Request("http://localhost/v1/runs", init));
    await response.body?.cancel();
  }
}

async function round(): Promise<void> {
  await Promise.all(Array.from({ length: AT_ONCE }, () => requests(5)));
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
await preamp.close();
print(`a request with a run of one answer leaves ${kb.toFixed(1)} KB, at most ${MOST_KB} KB`);
report("garbage", { kb });
if (kb > MOST_KB) Deno.exit(1);
