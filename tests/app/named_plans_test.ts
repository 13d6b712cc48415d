import { NamedPlans } from "../../src/app/named_plans.ts";
import { assertEquals } from "../assert.ts";
import { inFolder, temporaryFolder } from "../support/folder.ts";
import { refusal } from "../support/plans.ts";

Deno.test("get() of an unknown plan suggests the nearest name", async () => {
  const folder = await Deno.makeTempDir();
  await Deno.writeTextFile(`${folder}/support.yaml`, "");
  const plans = new NamedPlans([{ url: new URL(`file://${folder}/`) }]);
  const near = await refusal(() => plans.get("suport"));
  assertEquals([near.code, near.message], [
    "not_found",
    'Cannot find a plan named "suport": did you mean "support"?',
  ]);
  assertEquals(
    (await refusal(() => plans.get("else"))).message,
    'Cannot find a plan named "else": GET /v1/plans lists the plans',
  );
  await Deno.remove(folder, { recursive: true });
});

Deno.test("a file in place of the folder has no plans", async () => {
  await using folder = await temporaryFolder();
  await Deno.writeTextFile(`${folder.path}/plan.yaml`, "a: 1");
  const plans = new NamedPlans([{ url: new URL(`file://${folder.path}/plan.yaml/`) }]);
  assertEquals([await plans.names(), await plans.find("default")], [[], null]);
});

Deno.test("find() reads a plan again whose size changed, also at the same time of change", async () => {
  await using folder = await temporaryFolder();
  const url = new URL(`file://${folder.path}/`);
  const file = new URL("support.yaml", url);
  const plans = new NamedPlans([{ url }]);
  const texts = [];
  for (const text of ["a: 1", "a: 12"]) {
    await Deno.writeTextFile(file, text);
    await Deno.utime(file, 1, 1);
    texts.push((await plans.find("support"))?.text);
  }
  assertEquals(texts, ["a: 1", "a: 12"]);
});

Deno.test("plans that come first are found before those of a folder", async () => {
  await inFolder(async (path) => {
    await Deno.writeTextFile(`${path}/default.yaml`, "of the folder");
    const [url, base_url] = [new URL(`file://${path}/`), "file:///elsewhere/bundle.md"];
    const plans = new NamedPlans([{ url }], [], [{ name: "default", text: "named", base_url }]);
    assertEquals((await plans.find("default"))?.text, "named");
    assertEquals(await plans.names(), ["default"]);
  });
});
