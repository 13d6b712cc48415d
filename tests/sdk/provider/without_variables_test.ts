import process from "node:process";
import { withoutVariables } from "../../../src/sdk/provider/without_variables.ts";
import { assertEquals, assertThrows } from "../../assert.ts";

const seen = () => (globalThis as { process?: typeof process }).process;

Deno.test("withoutVariables() hides the variables of the process during a call, also one that throws", () => {
  assertEquals(withoutVariables(() => seen()?.env), {});
  assertEquals(seen(), process);
  assertThrows(() =>
    withoutVariables(() => {
      throw new Error("no");
    }), Error);
  assertEquals(seen(), process);
});
