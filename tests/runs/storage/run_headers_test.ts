import { findPlanEnv } from "../../../src/plan/env.ts";
import type { JsonObject } from "../../../src/sdk/types.ts";
import { errorCode } from "../../../src/sdk/errors.ts";
import { RunHeaders } from "../../../src/runs/storage/run_headers.ts";
import { assert, assertEquals, assertThrows } from "../../assert.ts";

/** Returns the references of a plan with a config. */
function planNaming(config: JsonObject) {
  return { env: findPlanEnv({ providers: [{ module: "provider-x", config }] }) };
}

const KEY = "0123456789abcdef0123456789abcdef";
const PLAN = planNaming({ api_key: "${X-Run-Key}", other: "${X-Run-Absent:-none} ${HOME}" });
const headers = (name: string) => ({ "X-Run-Key": "sk-é-1", "X-Run-Unnamed": "no" })[name];

Deno.test("RunHeaders keeps the headers that a plan names, for the run alone and without readable values", async () => {
  const stored = await new RunHeaders(KEY).store("run_1", PLAN, headers);
  assertEquals(stored?.names, ["X-Run-Key"]);
  assert(!JSON.stringify(stored).includes("sk-") && stored?.sealed);
  const read = await new RunHeaders(KEY).read("run_1", stored);
  assertEquals([read("X-Run-Key"), read("X-Run-Absent")], ["sk-é-1", undefined]);
});

Deno.test("RunHeaders seals the same values differently each time", async () => {
  const seal = async () => (await new RunHeaders(KEY).store("run_1", PLAN, headers))?.sealed;
  assert(await seal() !== await seal());
});

Deno.test("a header without a readable value is interrupted where it is used, and never empty", async () => {
  const sealed = await new RunHeaders(KEY).store("run_1", PLAN, headers);
  const unsealed = await new RunHeaders(undefined).store("run_1", PLAN, headers);
  assertEquals(unsealed, { names: ["X-Run-Key"] });
  const cases = [
    await new RunHeaders(KEY).read("run_1", unsealed),
    await new RunHeaders(undefined).read("run_1", sealed),
    await new RunHeaders(`${KEY}x`).read("run_1", sealed),
    await new RunHeaders(KEY).read("run_2", sealed), // moved to another run
    await new RunHeaders(KEY).read("run_1", { ...sealed!, sealed: "not.base64!" }),
  ];
  for (const read of cases) {
    assertEquals(errorCode(assertThrows(() => read("X-Run-Key"))), "interrupted");
    assertEquals(read("X-Run-Absent"), undefined);
  }
});

Deno.test("RunHeaders stores nothing for a plan without headers and a request without them", async () => {
  assertEquals(await new RunHeaders(KEY).store("run_1", planNaming({}), headers), undefined);
  assertEquals(await new RunHeaders(KEY).store("run_1", PLAN, undefined), undefined);
  assertEquals(await new RunHeaders(KEY).store("run_1", PLAN, () => undefined), undefined);
});
