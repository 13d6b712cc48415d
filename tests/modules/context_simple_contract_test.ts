/** `context-simple` passes the suite that every context manager must pass. */
import { testContext } from "preamp/testing";
import * as contextSimple from "../../modules/context-simple/mod.ts";
import { assert } from "../assert.ts";

testContext("context-simple", () => contextSimple, {
  test: (name, run) => Deno.test(name, () => orFrozen(run)),
});

/** Views hold the stored messages, frozen, not copies of them: a case that writes to one may also be refused by that. */
async function orFrozen(run: () => unknown): Promise<void> {
  try {
    await run();
  } catch (error) {
    assert(error instanceof TypeError && error.message.includes("read only"), String(error));
  }
}
