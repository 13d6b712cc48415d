import { formatLock, lockOf, parseLock } from "../../src/plan/lock.ts";
import { assert, assertEquals, assertMatch } from "../assert.ts";
import {
  contextOf,
  loaderOf,
  policyOf,
  refusal,
  serveFiles,
  sharedBundler,
  specOf,
} from "../support/loader.ts";
import { integrityOf, manifestOf } from "../../src/loader/integrity.ts";

const bundler = sharedBundler();

const FILES = {
  "mod.ts":
    `import { b } from "./lib/b.ts";\nimport data from "./d.json" with { type: "json" };\nexport const mount = () => [b, data];`,
  "lib/b.ts": `export const b = 1;`,
  "d.json": `{"c": 1}`,
};

/** Flips one bit of one byte. */
function flipped(text: string, at: number): Uint8Array<ArrayBuffer> {
  const bytes = new TextEncoder().encode(text);
  bytes[at]! ^= 1;
  return bytes;
}

Deno.test("integrityOf() is the digest of paths and hashes, wherever the files are", () => {
  const sha = (letter: string) => letter.repeat(64);
  const files = (base: string) => [
    { url: `${base}agents/lib/z.ts?v=2`, sha256: sha("a"), bytes: 1 },
    { url: `${base}agents/mod.ts`, sha256: sha("b"), bytes: 1 },
    { url: `${base}up.ts`, sha256: sha("c"), bytes: 1 },
    { url: "https://other.example/x.ts", sha256: sha("d"), bytes: 1 },
    { url: "data:text/javascript,1", sha256: sha("e"), bytes: 1 },
  ];
  const one = "https://modules.example/";
  assertEquals(manifestOf(`${one}agents/mod.ts`, files(one)).map(({ path }) => path), [
    "../up.ts",
    "./lib/z.ts?v=2",
    "./mod.ts",
    `data:text/javascript,${sha("e")}`,
    "https://other.example/x.ts",
  ]);
  const digest = integrityOf(`${one}agents/mod.ts`, files(one));
  assertMatch(digest, /^sha256-[A-Za-z0-9+/]{43}=$/);
  const two = "http://127.0.0.1:9000/deep/er/";
  assertEquals(integrityOf(`${two}agents/mod.ts`, files(two).toReversed()), digest);
  const [first, ...rest] = files(one);
  assert(integrityOf(`${one}agents/mod.ts`, [{ ...first!, sha256: sha("f") }, ...rest]) !== digest);
});

Deno.test("load() takes what integrity pins, and refuses every other byte of it", async () => {
  await using server = serveFiles(FILES);
  const source = `${server.url}mod.ts`;
  await using first = loaderOf({ bundler });
  const { integrity } = await first.bundle(specOf(source), contextOf());
  await using second = loaderOf({ bundler });
  await second.load(specOf(source, { integrity }), contextOf());
  server.files = { ...FILES, "d.json": flipped(FILES["d.json"], 6) };
  await using third = loaderOf({ bundler });
  const error = await refusal(() => third.load(specOf(source, { integrity }), contextOf()));
  assertEquals(error.code, "module_integrity_mismatch");
  assert(error.message.includes(`expected ${integrity}: received sha256-`), error.message);
});

Deno.test("load() names the file when a byte differs from the lock, whichever byte, before anything runs", async () => {
  await using server = serveFiles(FILES);
  const spec = specOf(`${server.url}mod.ts`);
  await using first = loaderOf({ bundler });
  const graph = await first.bundle(spec, contextOf());
  const lock = await parseLock(formatLock(lockOf([{ source: spec.source, ...graph }])));
  for (const [name, text] of Object.entries(FILES)) {
    for (let at = 0; at < text.length; at++) {
      server.files = { ...FILES, [name]: flipped(text, at) };
      await using loader = loaderOf({
        bundler: { ...bundler, bundle: () => Promise.reject(new Error("bundled")) },
      });
      const error = await refusal(() => loader.load(spec, contextOf({ lock })));
      assertEquals([name, at, error.code], [name, at, "module_integrity_mismatch"]);
      assert(error.message.includes(`${server.url}${name}`), error.message);
    }
  }
  server.files = FILES;
  await using last = loaderOf({ bundler });
  assertEquals((await last.load(spec, contextOf({ lock, frozen: true }))).integrity, graph.integrity);
});

Deno.test("load() distinguishes BOM, CRLF and gzip: the lock has the hash of decoded bytes", async () => {
  await using server = serveFiles({ "mod.ts": "export const mount = 1;\n" });
  const spec = specOf(`${server.url}mod.ts`);
  await using first = loaderOf({ bundler });
  const lock = lockOf([{ source: spec.source, ...await first.bundle(spec, contextOf()) }]);
  const zipped = await new Response(
    new Blob(["export const mount = 1;\n"]).stream().pipeThrough(new CompressionStream("gzip")),
  ).bytes();
  const answers = {
    gzip: () => new Response(zipped, { headers: { "content-encoding": "gzip" } }),
    bom: "\uFEFFexport const mount = 1;\n",
    crlf: "export const mount = 1;\r\n",
  };
  for (const [name, answer] of Object.entries(answers)) {
    server.files = { "mod.ts": answer };
    await using loader = loaderOf({ bundler });
    const loading = loader.load(spec, contextOf({ lock })).then(() => "loaded", (error) => error.code);
    assertEquals([name, await loading], [name, name === "gzip" ? "loaded" : "module_integrity_mismatch"]);
  }
});

Deno.test("load() wants a pin for every module when frozen, before any request", async () => {
  await using server = serveFiles(FILES);
  await using loader = loaderOf({ bundler });
  const spec = specOf(`${server.url}mod.ts`);
  for (const context of [contextOf({ frozen: true }), contextOf({ policy: policyOf({ frozen: true }) })]) {
    const error = await refusal(() => loader.load(spec, context));
    assertEquals(error.code, "module_pin_required");
    assertMatch(error.message, /run preamp plan lock/);
  }
  assertEquals(server.requests, []);
});

Deno.test("load() takes no unpinned import below a pinned module", async () => {
  await using server = serveFiles(FILES);
  const spec = specOf(`${server.url}mod.ts`);
  await using first = loaderOf({ bundler });
  const lock = lockOf([{ source: spec.source, ...await first.bundle(spec, contextOf()) }]);
  const files = Object.fromEntries(Object.entries(lock.files).filter(([url]) => !url.endsWith("b.ts")));
  await using loader = loaderOf({ bundler });
  const error = await refusal(() => loader.load(spec, contextOf({ lock: { ...lock, files } })));
  assertEquals(error.code, "module_pin_required");
  assert(error.message.includes(`${server.url}lib/b.ts`), error.message);
});

Deno.test("load() refuses a plan and a lock that contradict each other", async () => {
  await using server = serveFiles(FILES);
  const spec = specOf(`${server.url}mod.ts`);
  await using loader = loaderOf({ bundler });
  const graph = await loader.bundle(spec, contextOf());
  const integrity = `sha256-${"A".repeat(43)}=`;
  const lock = lockOf([{ source: spec.source, ...graph }]);
  const error = await refusal(() => loader.load({ ...spec, integrity }, contextOf({ lock })));
  assertEquals(error.code, "module_integrity_mismatch");
  assertMatch(error.message, /the plan pins .* and the lock/);
});

Deno.test("load() finds a locked file beside the plan wherever the folder is", async () => {
  const lockIn = async (folder: string) => {
    await Deno.mkdir(`${folder}/tools`);
    await Deno.writeTextFile(
      `${folder}/tools/mod.ts`,
      `import "../../${folder.split("/").at(-1)}/x.ts"; export const mount = 1;`,
    );
    await Deno.writeTextFile(`${folder}/x.ts`, "export {}");
    const base_url = `file://${folder}/plan.yaml`;
    const spec = specOf("./tools/mod.ts", { base_url });
    await using loader = loaderOf({ bundler });
    return lockOf([{ source: spec.source, ...await loader.bundle(spec, contextOf({ base_url })) }], base_url);
  };
  const folder = await Deno.makeTempDir();
  const lock = await lockIn(folder);
  assertEquals(Object.keys(lock.files), ["./tools/mod.ts", "./x.ts"]);
  assertEquals(lock.modules["./tools/mod.ts"]?.url, "./tools/mod.ts");
  await Deno.writeTextFile(`${folder}/x.ts`, "export { }");
  const base_url = `file://${folder}/plan.yaml`;
  await using loader = loaderOf({ bundler });
  const error = await refusal(() =>
    loader.load(specOf("./tools/mod.ts", { base_url }), contextOf({ base_url, lock }))
  );
  assertEquals(error.code, "module_integrity_mismatch");
  assertMatch(
    error.message,
    /Cannot load \.\/x\.ts: its bytes are not those of the lock.*run preamp plan lock/,
  );
  await Deno.remove(folder, { recursive: true });
});

Deno.test("load() compares with the lock however the plan spells the address", async () => {
  await using server = serveFiles({ ...FILES });
  const { port } = server;
  const spec = specOf(`${server.url}mod.ts`);
  await using first = loaderOf({ bundler });
  const lock = lockOf([{ source: spec.source, ...await first.bundle(spec, contextOf()) }]);
  const spellings = [
    `${server.url}mod.ts#x`,
    `${server.url}mod.ts?`,
    `${server.url}a/../mod.ts`,
    `HTTP://127.1:${port}/mod.ts`,
    `http://2130706433:${port}/mod.ts`,
  ];
  const load = async (spelling: string, frozen: boolean) => {
    await using loader = loaderOf({ bundler });
    return await loader.load(specOf(spelling), contextOf({ lock, frozen })).then(
      () => "loaded",
      ({ code }) => code,
    );
  };
  for (const spelling of spellings) {
    assertEquals([spelling, await load(spelling, true)], [spelling, "loaded"]);
  }
  const other = `export const mount = () => "other";`;
  const escaped = ["%6Dod.ts", "mo%64%2Ets"];
  server.files = { "mod.ts": other, alias: () => Response.redirect(`${server.url}mod.ts?`) };
  for (const path of escaped) server.files[path] = other;
  for (const spelling of [...spellings, ...[...escaped, "alias"].map((path) => server.url + path)]) {
    assertEquals([spelling, await load(spelling, false)], [spelling, "module_integrity_mismatch"]);
  }
});

Deno.test("load() holds a file that the lock has to its bytes, whichever module imports it", async () => {
  await using server = serveFiles({ ...FILES, "other.ts": `export { b as mount } from "./lib/./%62.ts?";` });
  const spec = specOf(`${server.url}mod.ts`);
  await using first = loaderOf({ bundler });
  const lock = lockOf([{ source: spec.source, ...await first.bundle(spec, contextOf()) }]);
  server.files["lib/%62.ts"] = "export const b = () => 2;";
  await using loader = loaderOf({ bundler });
  const error = await refusal(() => loader.load(specOf(`${server.url}other.ts`), contextOf({ lock })));
  assertEquals(error.code, "module_integrity_mismatch");
});
