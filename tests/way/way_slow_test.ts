/**
 * What one request and one event run has limits that only fall: a change that makes a way shorter lowers
 * them. `deno task way --list` shows the files and functions of both.
 */
import { assert } from "../assert.ts";
import type { WayCount } from "./count.ts";

const LIMITS: Readonly<Record<"request" | "event", WayCount>> = {
  request: { files: 145, functions: 903, calls: 6_445 },
  event: { files: 31, functions: 93, calls: 119 },
};

Deno.test("the ways of one request and of one event do not become longer", async () => {
  const { stdout, success } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-check", "--allow-all", new URL("count.ts", import.meta.url).pathname],
    stderr: "inherit",
  }).output();
  assert(success);
  const counts: typeof LIMITS = JSON.parse(new TextDecoder().decode(stdout));
  for (const way of ["request", "event"] as const) {
    for (const unit of ["files", "functions", "calls"] as const) {
      const [count, limit] = [counts[way][unit], LIMITS[way][unit]];
      assert(count <= limit, `one ${way} runs ${count} ${unit}; at most ${limit} were there before`);
    }
  }
});
