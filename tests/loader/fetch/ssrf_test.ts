import { temporaryFolder } from "../../support/folder.ts";
import { assert, assertEquals } from "../../assert.ts";
import { contextOf, loaderOf, policyOf, refusal, serveFiles, specOf } from "../../support/loader.ts";
import { hostSpellings } from "./spellings.ts";
import { findImports } from "../../../src/loader/bundler/imports.ts";
import type { Bundler } from "../../../src/loader/types.ts";

/** A listener that must receive no connection. */
function canary(): { port: number; seen: () => number } & AsyncDisposable {
  let seen = 0;
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const ended = (async () => {
    for await (const conn of listener) {
      seen++;
      conn.close();
    }
  })();
  return {
    port: listener.addr.port,
    seen: () => seen,
    async [Symbol.asyncDispose]() {
      listener.close();
      await ended;
    },
  };
}

/** Asks for every file that was fetched, and bundles nothing. */
const NEVER: Bundler = {
  bundle: (request) =>
    Promise.resolve({
      kind: "problems",
      problems: Object.keys(request.failed).map((failed_url) => ({ message: "", failed_url })),
    }),
  imports: findImports,
  close: () => Promise.resolve(),
};

/** URLs of the corpus that parse; the rest reach nothing. */
function urls(port: number): { https: URL[]; http: URL[]; all: number } {
  const hosts = hostSpellings();
  const parse = (scheme: string) =>
    hosts.map((host) => `${scheme}://${host}:${port}/mod.ts`).filter((url) => URL.canParse(url)).map((url) =>
      new URL(url)
    );
  return { https: parse("https"), http: parse("http"), all: hosts.length };
}

Deno.test("hostSpellings() has at least 250 spellings, most of which a URL takes", () => {
  const { https, all } = urls(1);
  assert(all >= 250, String(all));
  assert(https.length >= 200, String(https.length));
});

Deno.test("load() of a caller's plan sends no packet to a private address, however it is written", async () => {
  await using trap = canary();
  await using loader = loaderOf({ bundler: NEVER });
  const { https, http } = urls(trap.port);
  for (const url of [...https, ...http]) {
    const policy = policyOf({ allow: [`${url.origin}/`] }); // the allow-list is not what stops it
    const error = await refusal(() => loader.load(specOf(url.href), contextOf({ origin: "caller", policy })));
    assertEquals([url.href, error.code], [url.href, "module_source_denied"]);
  }
  assertEquals(trap.seen(), 0);
});

Deno.test("load() follows no redirect to a private address, and names the hop", async () => {
  await using trap = canary();
  const { https, http } = urls(trap.port);
  const targets = [...https, ...http];
  await using server = serveFiles(Object.fromEntries(
    targets.map((
      { href },
      index,
    ) => [`${index}.ts`, () => new Response(null, { status: 302, headers: { location: href } })]),
  ));
  await using loader = loaderOf({ bundler: NEVER });
  for (const [index, target] of targets.entries()) {
    const policy = policyOf({
      allow: [server.url, `${target.origin}/`],
      private_hosts: [`127.0.0.1:${server.port}`],
    });
    const source = specOf(`${server.url}${index}.ts`);
    const error = await refusal(() => loader.load(source, contextOf({ origin: "caller", policy })));
    assertEquals([target.href, error.code], [target.href, "module_source_denied"]);
    assert(error.message.includes(target.host), error.message);
  }
  assertEquals(trap.seen(), 0);
});

Deno.test("load() fetches no import from a private address", async () => {
  await using trap = canary();
  const { https, http } = urls(trap.port);
  const targets = [...https, ...http];
  await using server = serveFiles({
    "mod.ts": targets.map(({ href }) => `import ${JSON.stringify(href)};`).join("\n"),
  });
  await using loader = loaderOf({ bundler: NEVER });
  const origins = targets.map(({ origin }) => `${origin}/`);
  const policy = policyOf({ allow: [server.url, ...origins], private_hosts: [`127.0.0.1:${server.port}`] });
  const error = await refusal(() =>
    loader.load(specOf(`${server.url}mod.ts`), contextOf({ origin: "caller", policy }))
  );
  assertEquals(error.code, "module_source_denied");
  assertEquals(error.details.length, new Set(targets.map(({ href }) => href)).size);
  assertEquals(trap.seen(), 0);
  assertEquals(server.requests, ["/mod.ts"]);
});

Deno.test("load() refuses a name when one of its addresses is private, and connects to none", async () => {
  await using trap = canary();
  const answers = [
    ["127.0.0.1"],
    ["93.184.216.34", "127.0.0.1"],
    ["10.0.0.1"],
    ["::1"],
    ["::ffff:127.0.0.1"],
    ["0.0.0.0"],
    ["fe80::1%eth0"],
  ];
  for (const addresses of answers) {
    await using loader = loaderOf({ bundler: NEVER, lookup: () => Promise.resolve(addresses) });
    const policy = policyOf({ allow: ["https://modules.test/"] });
    const spec = specOf(`https://modules.test/mod.ts`);
    const error = await refusal(() => loader.load(spec, contextOf({ origin: "caller", policy })));
    assertEquals([addresses, error.code], [addresses, "module_source_denied"]);
  }
  assertEquals(trap.seen(), 0);
});

Deno.test("load() resolves a name once, and connects to what it checked", async () => {
  await using server = serveFiles({
    "mod.ts": `import "./a.ts";`,
    "a.ts": `import "./b.ts";`,
    "b.ts": "export {}",
  });
  let asked = 0;
  const loader = loaderOf({
    bundler: NEVER,
    lookup: () => Promise.resolve(asked++ === 0 ? ["127.0.0.1"] : ["127.0.0.2"]), // changes its mind
  });
  const host = `modules.test:${server.port}`;
  const policy = policyOf({ allow: [`http://${host}/`], private_hosts: [host] });
  await refusal(() => loader.load(specOf(`http://${host}/mod.ts`), contextOf({ origin: "caller", policy })));
  await loader.close();
  assertEquals(asked, 1);
  assertEquals(server.requests, ["/mod.ts", "/a.ts", "/b.ts"]);
});

Deno.test("load() refuses a file import of a remote module, also if a local module imports the file", async () => {
  await using temporary = await temporaryFolder();
  const file = (name: string) => `${temporary.path}/${name}`;
  await using server = serveFiles({});
  await using loader = loaderOf();
  await Deno.writeTextFile(file("own.json"), `"secret"`);
  await Deno.writeTextFile(
    file("mod.js"),
    `import own from "./own.json" with { type: "json" };
     import { theirs } from "${server.url}lib.js";
     export const mount = () => [own, theirs];`,
  );
  server.files = {
    "lib.js": `import text from "file://${
      file("own.json")
    }" with { type: "text" }; export const theirs = text;`,
  };
  const policy = policyOf({ private_hosts: [`127.0.0.1:${server.port}`] });
  const error = await refusal(() => loader.load(specOf(file("mod.js")), contextOf({ policy })));
  assertEquals([error.code, /only files may import files/.test(error.message)], ["module_invalid", true]);
  server.files = { "lib.js": `export const theirs = 1;` };
  await Deno.writeTextFile(file("mod.js"), `${await Deno.readTextFile(file("mod.js"))}\n`);
  const { module } = await loader.load(specOf(file("mod.js")), contextOf({ policy }));
  assertEquals((module.mount as () => unknown)(), ["secret", 1]);
});
