import { assertEquals } from "../assert.ts";
import { didYouMean } from "../../src/sdk/findings.ts";

Deno.test("didYouMean() finds the nearest name within two letters", () => {
  const known = ["tools", "hooks", "integrity"];
  assertEquals(didYouMean("tool", known), "tools");
  assertEquals(didYouMean("tolos", known), "tools");
  assertEquals(didYouMean("integrti", known), "integrity");
  assertEquals(didYouMean("foo", known), undefined);
  assertEquals(didYouMean("tools", known), "tools");
});
