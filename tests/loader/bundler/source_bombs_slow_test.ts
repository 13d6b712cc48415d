import {
  type BundlerProcessOptions,
  createBundlerProcess,
  startBundlerChild,
} from "../../../src/loader/bundler/bundler_process.ts";
import type { Bundler } from "../../../src/loader/types.ts";
import { assert, assertEquals, assertMatch } from "../../assert.ts";
import { busyTime } from "../../support/busy_time.ts";
import { someOf } from "../../support/cases.ts";
import { DEEP, LARGE, REFUSED } from "./source_bombs.ts";
import { contextOf, loaderOf, policyOf, refusal, serveFiles, specOf } from "../../support/loader.ts";

const GOOD = "export const mount = () => 1;";

/** Returns a bundler of our own program that counts how often it was started. */
function counted(
  options: BundlerProcessOptions = {},
): Bundler & AsyncDisposable & { starts: number } {
  const counter = { starts: 0 };
  const bundler = createBundlerProcess({
    ...options,
    start: () => {
      counter.starts++;
      return startBundlerChild();
    },
  });
  return Object.assign(counter, {
    bundle: bundler.bundle.bind(bundler),
    imports: bundler.imports.bind(bundler),
    close: () => Promise.resolve(),
    [Symbol.asyncDispose]: () => bundler.close(),
  });
}

Deno.test("prepare() of a module nested 200,000 deep is refused, and of every module after it works", async () => {
  await using bundler = counted();
  await using loader = loaderOf({ bundler });
  await using server = serveFiles({});
  for (const [name, { file, text }] of someOf(Object.entries(DEEP), 2)) {
    server.files = { [`${name}/${file}`]: text, [`${name}/good.ts`]: GOOD };
    const error = await refusal(() => loader.prepare(specOf(`${server.url}${name}/${file}`), contextOf()));
    assertEquals(error.code, "module_invalid", name);
    assertMatch(
      error.message,
      /^Cannot bundle module "tool-test" \(.*\): its code is nested too deeply: make the/,
    );
    const good = await loader.prepare(specOf(`${server.url}${name}/good.ts`), contextOf());
    assertEquals(good.exports, ["mount"], name);
  }
});

Deno.test("prepare() does not ask the bundler again about bytes that it failed on, whatever their address", async () => {
  await using bundler = counted();
  await using server = serveFiles({ "a.ts": DEEP.arrays!.text, "b.ts": DEEP.arrays!.text, "good.ts": GOOD });
  const prepare = async (file: string, namespace: string) => {
    await using loader = loaderOf({ bundler });
    return await loader.prepare(specOf(server.url + file), contextOf({ namespace }));
  };
  await refusal(() => prepare("a.ts", "key:one"));
  await prepare("good.ts", "key:one");
  const { starts } = bundler;
  const again = await refusal(() => prepare("b.ts", "key:two"));
  assertMatch(again.message, /its code is nested too deeply/);
  assertEquals(bundler.starts, starts);
});

Deno.test("prepare() of a large source does not occupy this thread for 100 ms of processor time", async (t) => {
  await using bundler = counted();
  await using server = serveFiles({});
  for (const [name, { file, text }] of someOf(Object.entries(LARGE), 2)) {
    await t.step(name, async () => {
      server.files = { "b.ts": "", [file]: text, "good.ts": `${GOOD} // ${name}` };
      const { value: outcome, busy_ms } = await busyTime(async () => {
        await using loader = loaderOf({ bundler });
        const context = contextOf({ policy: policyOf({}, { max_graph_files: 500 }) });
        return await loader.prepare(specOf(server.url + file), context).then(
          () => "",
          ({ message }) => message,
        );
      });
      assert(busy_ms < 100, `${busy_ms} ms; ${outcome.slice(0, 300)}`);
      assert(outcome.length < 2_000, `${outcome.length} characters`);
      await using loader = loaderOf({ bundler });
      assertEquals((await loader.prepare(specOf(`${server.url}good.ts`), contextOf())).exports, ["mount"]);
    });
  }
});

Deno.test("prepare() of thousands of imports that are refused reports the first ones, and ends no bundler", async () => {
  await using bundler = counted({ deadline_ms: 60_000 });
  await using loader = loaderOf({ bundler });
  await using server = serveFiles({ [REFUSED.file]: REFUSED.text });
  const { value: { code, message }, busy_ms } = await busyTime(() =>
    refusal(() => loader.prepare(specOf(server.url + REFUSED.file), contextOf()))
  );
  assertEquals([code, bundler.starts], ["module_invalid", 1]);
  assertMatch(message, /mod\.ts:1:8: Cannot import "pkg0"/);
  assert(busy_ms < 100, `${busy_ms} ms`);
  assert(message.length < 2_000, `${message.length} characters`);
});
