/**
 * What every setting does, seen over the API: each is set to a small value, for the server, and in the policy
 * of a key where it may be there. The rows are compared with the table of settings: a setting without a row
 * fails, and so a setting without effect cannot be added.
 */
import { ALL_SETTINGS } from "../../../src/policy/settings.ts";
import { assertEquals } from "../../assert.ts";
import { ACCESS } from "./access.ts";
import { testEffects } from "./effect.ts";
import { LIMITS } from "./limits.ts";
import { FILES, MODULES } from "./modules.ts";
import { OWN_PLANS, PROGRAM } from "./program.ts";

Deno.test("every setting has a row that shows its effect", () => {
  const rows = [ACCESS, LIMITS, MODULES, PROGRAM].flatMap(Object.keys);
  assertEquals(rows.sort(), ALL_SETTINGS.map(({ path }) => path).sort());
});

testEffects(ACCESS);
testEffects(LIMITS);

Deno.test.afterAll(async () => {
  await FILES[Symbol.asyncDispose]();
  await Deno.remove(OWN_PLANS, { recursive: true });
});
