import type { Bundler } from "../../src/loader/types.ts";
import { lockOf } from "../../src/plan/lock.ts";
import { assert, assertEquals, assertStrictEquals } from "../assert.ts";
import {
  contextOf,
  loaderOf,
  policyOf,
  refusal,
  serveFiles,
  sharedBundler,
  specOf,
} from "../support/loader.ts";
import { temporaryFolder } from "../support/folder.ts";

const shared = sharedBundler();

/** Returns a bundler that counts. */
function counting(): Bundler & { count: number } {
  return {
    ...shared,
    count: 0,
    bundle(request, client) {
      this.count++;
      return shared.bundle(request, client);
    },
  };
}

const FILES = {
  "mod.ts":
    `import { b } from "./b.ts";\nexport const state = { calls: 0 };\nexport const mount = () => [b, ++state.calls];`,
  "b.ts": "export const b = 1;",
};

async function inFolder(test: (folder: URL) => Promise<void>): Promise<void> {
  await using temporary = await temporaryFolder();
  const folder = temporary.path;
  await test(new URL(`file://${folder}/`));
}

Deno.test("load() of a graph that is current makes no request and no bundle", async () => {
  await using server = serveFiles(FILES);
  const bundler = counting();
  await using loader = loaderOf({ bundler });
  const first = await loader.load(specOf(`${server.url}mod.ts`), contextOf());
  const again = await loader.load(specOf(`${server.url}mod.ts`), contextOf());
  assertStrictEquals(again.module, first.module);
  assertEquals([server.requests.length, bundler.count], [2, 1]);
});

Deno.test("load() of one graph twenty times at once fetches and bundles it once", async () => {
  await using server = serveFiles(FILES);
  const bundler = counting();
  await using loader = loaderOf({ bundler });
  const spec = specOf(`${server.url}mod.ts`);
  await Promise.all(Array.from({ length: 20 }, () => loader.load(spec, contextOf())));
  assertEquals([server.requests.length, bundler.count], [2, 1]);
});

Deno.test("load() asks servers again when their time is over, and bundles what changed only", async () => {
  await using server = serveFiles(FILES);
  const bundler = counting();
  let now = 0;
  await using loader = loaderOf({ bundler, fresh_ms: 1000, monotonic: () => now });
  const spec = specOf(`${server.url}mod.ts`);
  const first = await loader.bundle(spec, contextOf());
  now = 999;
  await loader.bundle(spec, contextOf());
  assertEquals([server.requests.length, bundler.count], [2, 1]);
  now = 1001;
  await loader.bundle(spec, contextOf());
  assertEquals([server.requests.length, bundler.count], [4, 1]);
  server.files = { ...FILES, "b.ts": "export const b = 2;" };
  now = 2002;
  assert((await loader.bundle(spec, contextOf())).integrity !== first.integrity);
  assertEquals([server.requests.length, bundler.count], [6, 2]);
});

Deno.test("load() keeps a graph as long as its servers say (RFC 9111)", async () => {
  const answer = (value: string) => () =>
    new Response("export const mount = 1;", { headers: { "cache-control": value } });
  await using server = serveFiles({
    "no.ts": answer("no-cache"),
    "long.ts": answer("public, max-age=3600, immutable"),
  });
  let now = 0;
  await using loader = loaderOf({ bundler: counting(), fresh_ms: 1000, monotonic: () => now });
  for (now of [0, 500, 3_000_000, 3_700_000]) {
    for (const path of ["no.ts", "long.ts"]) await loader.bundle(specOf(server.url + path), contextOf());
  }
  assertEquals(server.requests.filter((path) => path === "/no.ts").length, 4);
  assertEquals(server.requests.filter((path) => path === "/long.ts").length, 2);
});

Deno.test("load() sees a file that was edited", async () => {
  await inFolder(async (folder) => {
    const base_url = new URL("plan.yaml", folder).href;
    const bundler = counting();
    await using loader = loaderOf({ bundler });
    const spec = specOf("./mod.ts", { base_url });
    const url = new URL("mod.ts", folder);
    await Deno.writeTextFile(url, "export const mount = () => 1;");
    await Deno.utime(url, 1_000_000, 1_000_000);
    const first = await loader.load(spec, contextOf({ base_url }));
    assertStrictEquals((await loader.load(spec, contextOf({ base_url }))).module, first.module);
    assertEquals(bundler.count, 1);
    await Deno.writeTextFile(url, "export const mount = () => 2;"); // as long, a moment later
    const edited = await loader.load(spec, contextOf({ base_url }));
    assertEquals((edited.module.mount as () => number)(), 2);
    await Deno.writeTextFile(url, "export const mount = () => 3;");
    const again = await loader.load(spec, contextOf({ base_url }));
    assertEquals((again.module.mount as () => number)(), 3);
  });
});

Deno.test("load() of a pinned graph from disk makes no request, also when its server is gone", async () => {
  await inFolder(async (cache_dir) => {
    let spec, lock;
    {
      await using server = serveFiles(FILES);
      await using loader = loaderOf({ bundler: counting(), cache_dir });
      spec = specOf(`${server.url}mod.ts`);
      const graph = await loader.bundle(spec, contextOf());
      lock = lockOf([{ source: spec.source, ...graph }]);
    }
    const bundler = counting();
    await using loader = loaderOf({ bundler, cache_dir });
    const { module } = await loader.load(spec, contextOf({ lock, frozen: true }));
    assertEquals((module.mount as () => unknown)(), [1, 1]);
    assertEquals(bundler.count, 0);
    assertEquals((await refusal(() => loader.load(spec!, contextOf()))).code, "module_fetch_failed"); // unpinned: not current
  });
});

Deno.test("load() uses the disk cache when the bytes are unchanged", async () => {
  await using server = serveFiles(FILES);
  await inFolder(async (cache_dir) => {
    for (const count of [1, 0]) {
      const bundler = counting();
      await using loader = loaderOf({ bundler, cache_dir });
      await loader.bundle(specOf(`${server.url}mod.ts`), contextOf());
      assertEquals(bundler.count, count);
    }
  });
});

Deno.test("load() takes nothing from a disk that was altered, torn or is not to be written", async () => {
  await using server = serveFiles({ "mod.ts": "export const mount = () => 'honest';" });
  await inFolder(async (cache_dir) => {
    const spec = specOf(`${server.url}mod.ts`);
    await using first = loaderOf({ bundler: counting(), cache_dir });
    const { integrity } = await first.bundle(spec, contextOf());
    for (
      const alter of [
        (text: string) => text.replace("honest", "forged"),
        (text: string) => text.slice(0, 200),
        () => "",
      ]
    ) {
      for await (const { name } of Deno.readDir(new URL("bundles-3/", cache_dir))) {
        const url = new URL(`bundles-3/${name}`, cache_dir);
        if (name.endsWith(".bundle")) await Deno.writeTextFile(url, alter(await Deno.readTextFile(url)));
      }
      await using loader = loaderOf({ bundler: counting(), cache_dir });
      const { module } = await loader.load({ ...spec, integrity }, contextOf());
      assertEquals((module.mount as () => string)(), "honest");
    }
    const file = new URL("file", cache_dir);
    await Deno.writeTextFile(file, "");
    await using loader = loaderOf({ bundler: counting(), cache_dir: new URL("file/", cache_dir) });
    await loader.load(spec, contextOf());
  });
});

Deno.test("load() shares nothing between name spaces, origins and policies", async () => {
  await using server = serveFiles(FILES);
  await inFolder(async (cache_dir) => {
    const bundler = counting();
    await using loader = loaderOf({ bundler, cache_dir });
    const modules = { allow: [server.url], private_hosts: ["127.0.0.1"] };
    const contexts = [
      contextOf({ namespace: "a" }),
      contextOf({ namespace: "b" }),
      contextOf({ namespace: "a", policy: policyOf({ private_hosts: ["127.0.0.1"] }) }),
      contextOf({ namespace: "a", origin: "caller", policy: policyOf(modules) }),
    ];
    const { integrity } = await loader.bundle(specOf(`${server.url}mod.ts`), contexts[0]!);
    const seen = new Set<unknown>();
    for (const [index, context] of contexts.entries()) {
      const { module } = await loader.load(specOf(`${server.url}mod.ts`, { integrity }), context);
      assertEquals((module.mount as () => unknown)(), [1, 1]);
      seen.add(module);
      assertEquals([server.requests.length, bundler.count], [2 * (index + 1), index + 1]);
    }
    assertEquals(seen.size, contexts.length);
    const closed = contextOf({ namespace: "a", origin: "caller" }); // its policy allows nothing: what is known does not matter
    const error = await refusal(() => loader.load(specOf(`${server.url}mod.ts`, { integrity }), closed));
    assertEquals(error.code, "module_source_denied");
  });
});

Deno.test("load() never reaches what is kept by another hash", async () => {
  await using server = serveFiles(FILES);
  await using loader = loaderOf({ bundler: counting() });
  const spec = specOf(`${server.url}mod.ts`);
  const { integrity } = await loader.bundle(spec, contextOf());
  const other = `sha256-${"A".repeat(43)}=`;
  assertEquals(
    (await refusal(() => loader.load({ ...spec, integrity: other }, contextOf()))).code,
    "module_integrity_mismatch",
  );
  await loader.load({ ...spec, integrity }, contextOf());
});

Deno.test("load() rejects for the caller that aborts, and continues for the others", async () => {
  const { promise, resolve } = Promise.withResolvers<Response>();
  await using server = serveFiles({ "mod.ts": () => promise });
  await using loader = loaderOf({ bundler: counting() });
  const spec = specOf(`${server.url}mod.ts`);
  const controller = new AbortController();
  const others = loader.load(spec, contextOf());
  const mine = loader.load(spec, contextOf({ signal: controller.signal })).then(
    () => "loaded",
    (error) => error.name,
  );
  controller.abort();
  assertEquals(await mine, "AbortError");
  resolve(new Response("export const mount = 1;"));
  assertEquals((await others).module.mount, 1);
});

Deno.test("close() ends what is under way", async () => {
  await using server = serveFiles({ "mod.ts": () => new Promise<Response>(() => {}) });
  const loader = loaderOf({ bundler: counting() });
  const loading = loader.load(specOf(`${server.url}mod.ts`), contextOf()).then(
    () => "loaded",
    (error) => error.message,
  );
  await loader.close();
  assertEquals(await loading, "Cannot load a module: the server is closing");
});

Deno.test("load() hears of a pinned file of this machine that changed, in memory and on disk", async () => {
  await using temporary = await temporaryFolder();
  const folder = temporary.path;
  const base_url = `file://${folder}/plan.yaml`;
  const cache_dir = new URL(`file://${folder}/cache/`);
  await Deno.writeTextFile(`${folder}/lib.ts`, "export const one = 1;");
  await Deno.writeTextFile(
    `${folder}/mod.ts`,
    `import { one } from "./lib.ts";\nexport const mount = () => one;`,
  );
  const spec = specOf("./mod.ts", { base_url });
  const context = contextOf({ base_url });
  await using first = loaderOf({ bundler: counting(), cache_dir });
  const { integrity } = await first.load(spec, context);
  const pinned = { ...spec, integrity };
  await first.load(pinned, context);
  await Deno.writeTextFile(`${folder}/lib.ts`, "export const one = 2;");
  await using second = loaderOf({ bundler: counting(), cache_dir });
  for (const loader of [first, second]) {
    assertEquals((await refusal(() => loader.load(pinned, context))).code, "module_integrity_mismatch");
  }
  await Deno.writeTextFile(`${folder}/lib.ts`, "export const one = 1;");
  await second.load(pinned, context);
});
