/** What the settings of modules, of sandboxes and of the program do: the rest of settings_effects_test.ts. */
import { testEffects } from "./effect.ts";
import { FILES, MODULES } from "./modules.ts";
import { OWN_PLANS, PROGRAM } from "./program.ts";

testEffects(MODULES);
testEffects(PROGRAM);

Deno.test.afterAll(async () => {
  await FILES[Symbol.asyncDispose]();
  await Deno.remove(OWN_PLANS, { recursive: true });
});
