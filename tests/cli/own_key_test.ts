import { ownKey } from "../../src/cli/own_key.ts";
import { assertEquals, assertMatch, assertRejects } from "../assert.ts";
import { temporaryFolder } from "../support/folder.ts";

Deno.test("ownKey() keeps one key for its owner alone, until it is renewed", async () => {
  await using folder = await temporaryFolder();
  const home = new URL(`file://${folder.path}/home/`);
  const first = await ownKey(home, false);
  assertMatch(first.key, /^pk_[\w-]{43}$/);
  assertEquals([first.not_kept, await ownKey(home, false)], [null, first]);
  const renewed = await ownKey(home, true);
  assertEquals([renewed.key === first.key, await ownKey(home, false)], [false, renewed]);
  assertEquals((await Array.fromAsync(Deno.readDir(home))).map(({ name }) => name), ["key"]);
  if (Deno.build.os !== "windows") assertEquals((await Deno.stat(new URL("key", home))).mode! & 0o777, 0o600);
});

Deno.test("ownKey() is the same for servers that start at the same time", async () => {
  await using folder = await temporaryFolder();
  const home = new URL(`file://${folder.path}/`);
  const keys = await Promise.all(Array.from({ length: 20 }, () => ownKey(home, false)));
  assertEquals(new Set(keys.map(({ key }) => key)).size, 1);
});

Deno.test("ownKey() is for this start where nothing can be kept, and refuses a file without a key", async () => {
  await using folder = await temporaryFolder();
  assertEquals((await ownKey(null, false)).not_kept, "there is no home folder");
  await Deno.writeTextFile(`${folder.path}/file`, "");
  const { key, not_kept } = await ownKey(new URL(`file://${folder.path}/file/`), false);
  assertMatch(key, /^pk_/);
  assertEquals(typeof not_kept, "string");
  await Deno.writeTextFile(`${folder.path}/key`, "pk_short\n");
  const home = new URL(`file://${folder.path}/`);
  await assertRejects(() => ownKey(home, false), Error, "--new-key");
  assertEquals((await ownKey(home, true)).not_kept, null);
});
