import { NamedPlans } from "../../src/app/named_plans.ts";
import { assertEquals } from "../assert.ts";
import { refusal } from "../support/plans.ts";

Deno.test("get() of an unknown plan suggests the nearest name", async () => {
  const folder = await Deno.makeTempDir();
  await Deno.writeTextFile(`${folder}/support.yaml`, "");
  const plans = new NamedPlans(new URL(`file://${folder}/`));
  const near = await refusal(() => plans.get("suport"));
  assertEquals([near.code, near.message], [
    "not_found",
    'Cannot find a plan named "suport": did you mean "support"?',
  ]);
  assertEquals((await refusal(() => plans.get("else"))).message, 'Cannot find a plan named "else"');
  await Deno.remove(folder, { recursive: true });
});
