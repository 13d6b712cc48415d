import { lockOf } from "../../../src/plan/lock.ts";
import { assertEquals, assertMatch } from "../../assert.ts";
import {
  contextOf,
  loaderOf,
  policyOf,
  refusal,
  serveFiles,
  sharedBundler,
  specOf,
} from "../../support/loader.ts";
import { temporaryFolder } from "../../support/folder.ts";

const bundler = sharedBundler();

const FILES = {
  "mod.ts": `export const mount = () => "mod";`,
  "src/main.ts": `export { mount } from "./lib.ts";`,
  "src/lib.ts": `export const mount = () => "main";`,
};
const EXPORTS = `{ "name": "x", "exports": { ".": "./src/main.ts", "./other": "./mod.ts" } }`;

async function mounted(source: string, context = contextOf(), base_url?: string): Promise<unknown> {
  await using loader = loaderOf({ bundler });
  const { module } = await loader.load(specOf(source, base_url === undefined ? {} : { base_url }), context);
  return (module.mount as () => unknown)();
}

async function inFolder(files: Record<string, string>, test: (folder: URL) => Promise<void>): Promise<void> {
  await using temporary = await temporaryFolder();
  const folder = temporary.path;
  for (const [name, text] of Object.entries(files)) {
    const path = `${folder}/${name}`;
    await Deno.mkdir(path.slice(0, path.lastIndexOf("/")), { recursive: true });
    await Deno.writeTextFile(path, text);
  }
  await test(new URL(`file://${folder}/`));
}

Deno.test("load() of a URL that ends in a slash takes what deno.json exports, else mod.ts", async () => {
  await using server = serveFiles({ ...FILES });
  assertEquals(await mounted(server.url), "mod");
  assertEquals(server.requests, ["/deno.json", "/mod.ts"]);
  for (const config of [EXPORTS, `{"exports": "./src/main.ts"}`]) {
    server.files["deno.json"] = config;
    assertEquals(await mounted(server.url), "main");
  }
  assertEquals(await mounted(`${server.url}mod.ts`), "mod");
  for (const answer of [`{"imports": {}}`, "<!doctype html>", () => new Response("", { status: 403 })]) {
    server.files["deno.json"] = answer;
    assertEquals(await mounted(server.url), "mod");
  }
});

Deno.test("load() of a local folder means the same, with and without a dot in its name", () =>
  inFolder({
    "tool/mod.ts": FILES["mod.ts"],
    "main/mod.ts": FILES["mod.ts"],
    "main/deno.json": EXPORTS,
    "main/src/main.ts": FILES["src/main.ts"],
    "main/src/lib.ts": FILES["src/lib.ts"],
    "my.tool/mod.ts": FILES["mod.ts"],
  }, async (folder) => {
    const { href } = new URL("plan.yaml", folder);
    const expected = {
      "./tool": "mod",
      "./tool/": "mod",
      "./main": "main",
      "./main/mod.ts": "mod",
      "./my.tool": "mod",
      [new URL("main", folder).href]: "main",
      [new URL("main", folder).pathname]: "main",
    };
    for (const [source, name] of Object.entries(expected)) {
      assertEquals([source, await mounted(source, contextOf({ base_url: href }), href)], [source, name]);
    }
  }));

Deno.test("load() refuses a folder whose deno.json cannot be read, or leads elsewhere", async () => {
  await using server = serveFiles({ ...FILES });
  const cases: [string | (() => Response), string, RegExp][] = [
    ["{", "module_invalid", /^Cannot read http.*deno\.json: it is not valid JSON/],
    [`{"exports": "../x.ts"}`, "module_invalid", /"exports" does not name a file/],
    [`{"exports": "./a/../../x.ts"}`, "module_invalid", /"exports" names a file outside of its folder/],
    [`{"exports": {"./a": "./b.ts"}}`, "module_invalid", /"exports" does not name a file/],
    [`{"exports": ["./mod.ts"]}`, "module_invalid", /"exports" does not name a file/],
    [`{"exports": "./none.ts"}`, "module_fetch_failed", /none\.ts: its server answered 404/],
    ["x".repeat(300_000), "module_invalid", /it has 300000 bytes/],
    [() => new Response("", { status: 500 }), "module_fetch_failed", /deno\.json: its server answered 500/],
  ];
  for (const [answer, code, message] of cases) {
    server.files["sub/deno.json"] = answer;
    await using loader = loaderOf({ bundler });
    const error = await refusal(() => loader.prepare(specOf(`${server.url}sub/`), contextOf()));
    assertEquals(error.code, code);
    assertMatch(error.message, message);
  }
});

Deno.test("a deno.json that says what a folder's entry is belongs to what is pinned", async () => {
  await using server = serveFiles({ ...FILES });
  const spec = specOf(server.url);
  const lock = async () => {
    await using loader = loaderOf({ bundler });
    return lockOf([{ source: spec.source, ...await loader.bundle(spec, contextOf()) }]);
  };
  const load = (locked: Awaited<ReturnType<typeof lock>>) =>
    mounted(server.url, contextOf({ lock: locked })).catch(({ code }) => code);
  const plain = await lock();
  assertEquals(Object.keys(plain.files), [`${server.url}mod.ts`]);
  server.files["deno.json"] = EXPORTS;
  const exported = await lock();
  assertEquals(
    Object.keys(exported.files),
    ["deno.json", "src/lib.ts", "src/main.ts"].map((path) => server.url + path),
  );
  assertEquals([await load(plain), await load(exported)], ["module_pin_required", "main"]);
  server.files["deno.json"] = `${EXPORTS} `;
  assertEquals(await load(exported), "module_integrity_mismatch");
  delete server.files["deno.json"];
  assertEquals([await load(plain), await load(exported)], ["mod", "module_pin_required"]);
});

Deno.test("load() of an unpinned folder sees a deno.json that appears, changes and goes", () =>
  inFolder({ "mod.ts": FILES["mod.ts"], "a.ts": `export const mount = () => "a";` }, async (folder) => {
    await using loader = loaderOf({ bundler });
    const old = new Date(Date.now() - 60_000);
    const write = async (text: string) => {
      await Deno.writeTextFile(new URL("deno.json", folder), text);
      await Deno.utime(new URL("deno.json", folder), old, old);
    };
    for (const name of ["mod.ts", "a.ts"]) await Deno.utime(new URL(name, folder), old, old);
    const mount = async () => {
      const { module } = await loader.load(specOf(folder.href), contextOf());
      return (module.mount as () => unknown)();
    };
    assertEquals(await mount(), "mod");
    await write(`{"exports": "./a.ts"}`);
    assertEquals(await mount(), "a");
    await write(`{}`);
    assertEquals(await mount(), "mod");
    await write(`{"exports":"./a.ts"}`);
    assertEquals(await mount(), "a");
    await Deno.remove(new URL("deno.json", folder));
    assertEquals(await mount(), "mod");
  }));

Deno.test("a caller's folder is asked for within the allow-list alone", async () => {
  await using server = serveFiles({ ...FILES, "deno.json": EXPORTS });
  const caller = (allow: string[]) =>
    contextOf({ origin: "caller", policy: policyOf({ allow, private_hosts: ["127.0.0.1"] }) });
  assertEquals(await mounted(server.url, caller([server.url])), "main");
  server.requests.length = 0;
  assertEquals(await mounted(server.url, caller([`${server.url}mod.ts`])), "mod");
  assertEquals(server.requests, ["/mod.ts"]);
});
