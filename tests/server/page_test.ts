/** Tests of the page: `GET /` for browsers, and its files. */
import { brotliDecompressSync } from "node:zlib";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "../assert.ts";
import type { BundleScript } from "../../src/app/page_bundle.ts";
import { createRuntime } from "../../src/app/runtime.ts";
import { createApp, createPreamp, type LogRecord, type PreampOptions } from "../../src/server/mod.ts";
import { readSources } from "../../src/server/page/build.ts";
import { Page } from "../../src/server/page/page.ts";
import { temporaryFolder } from "../support/folder.ts";

const BROWSER = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };

/** Returns a function that sends requests to a server without keys. */
function open(options: PreampOptions = {}): (path: string, init?: RequestInit) => Promise<Response> {
  const { fetch } = createPreamp({ log: null, ...options });
  return (path, init) => fetch(new Request(`http://localhost${path}`, init));
}

/** Returns the paths of the page's files, in the order script, style. */
function filesIn(html: string): [string, string] {
  const path = (attribute: string) => `/${new RegExp(`${attribute}="(page/.*?)"`).exec(html)?.[1]}`;
  return [path("src"), path("href")];
}

const page = open();

Deno.test("GET / answers the page to browsers and the introduction to others, without a key", async () => {
  const answer = await page("/", { headers: BROWSER });
  assertEquals(answer.status, 200);
  assertMatch(await answer.text(), /<script type="module" src="page\/page\.[0-9a-f]{16}\.js"><\/script>/);
  for (const accept of ["*/*", "application/json", "text/plain"]) {
    const other = await page("/", { headers: { accept } });
    assertEquals(other.headers.get("content-type"), "text/plain; charset=utf-8", accept);
    assertStringIncludes(await other.text(), "curl -N http://localhost/v1/runs");
  }
});

Deno.test("the page's addresses are relative, so that a proxy may add a path", async () => {
  const html = await (await page("/", { headers: BROWSER })).text();
  const addresses = [...html.matchAll(/(?:src|href)="(.*?)"/g)].map(([, address]) => address!);
  assertEquals(addresses.filter((address) => !/^(page\/|docs$|data:,$)/.test(address)), []);
});

Deno.test("the page's sources make no markup of text, keep nothing for ever and name no host", async () => {
  const unsafe =
    /innerHTML|outerHTML|HTML\(|document\.write|\beval\(|new Function|localStorage|["'`]https?:/i;
  const { files } = await readSources();
  const found = files.filter(({ url }) => url.includes("/page/app/"));
  assert(found.length > 10);
  assertEquals(
    found.filter(({ bytes }) => unsafe.test(new TextDecoder().decode(bytes))).map(({ url }) => url),
    [],
  );
});

Deno.test("the page's policy allows nothing but its own files and API", async () => {
  const { headers } = await page("/", { headers: BROWSER });
  assertEquals(headers.get("content-security-policy")?.split("; "), [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self' data:",
    "base-uri 'self'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ]);
  assertEquals(headers.get("referrer-policy"), "no-referrer");
  assertEquals(headers.get("x-content-type-options"), "nosniff");
  assertEquals(headers.get("cross-origin-opener-policy"), "same-origin");
});

Deno.test("the page is revalidated, its files are kept for ever", async () => {
  const first = await page("/", { headers: BROWSER });
  const etag = first.headers.get("etag")!;
  assertEquals(first.headers.get("cache-control"), "no-cache");
  for (const tag of [etag, `W/${etag}`, `"x", ${etag}`]) {
    const again = await page("/", { headers: { ...BROWSER, "if-none-match": tag } });
    assertEquals([again.status, await again.text(), again.headers.get("etag")], [304, "", etag], tag);
  }
  assertEquals((await page("/", { headers: { ...BROWSER, "if-none-match": '"x"' } })).status, 200);
  for (const path of filesIn(await first.text())) {
    const plain = await page(path);
    assertEquals(plain.headers.get("cache-control"), "public, max-age=31536000, immutable");
    const packed = await page(path, { headers: { "accept-encoding": "gzip" } });
    assertEquals(packed.headers.get("content-encoding"), "gzip");
    assertEquals(packed.headers.get("vary")?.toLowerCase(), "accept-encoding");
    const unpacked = new Response(packed.body!.pipeThrough(new DecompressionStream("gzip")));
    const text = await plain.text();
    assertEquals(await unpacked.text(), text);
    assert(!text.includes("@import"), path);
    const browser = await page(path, { headers: { "accept-encoding": "gzip, deflate, br" } });
    assertEquals(browser.headers.get("content-encoding"), "br");
    assertEquals(brotliDecompressSync(await browser.bytes()).toString(), text);
  }
  assertEquals((await page("/page/page.0000000000000000.js")).status, 404);
});

Deno.test("HEAD / and of a file have the headers of their GET", async () => {
  const [script] = filesIn(await (await page("/", { headers: BROWSER })).text());
  for (const [path, headers] of [["/", BROWSER], [script, { "accept-encoding": "gzip" }]] as const) {
    const get = await page(path, { headers });
    const head = await page(path, { method: "HEAD", headers });
    const length = String((await get.bytes()).length);
    assertEquals([head.status, (await head.bytes()).length], [200, 0]);
    assertEquals(head.headers.get("content-length"), length, path);
    for (const name of ["etag", "cache-control", "content-type", "content-encoding"]) {
      assertEquals(head.headers.get(name), get.headers.get(name), name);
    }
  }
});

Deno.test("the page is at most 90 KB, as browsers receive it", async () => {
  const html = await (await page("/", { headers: BROWSER })).text();
  let bytes = html.length;
  for (const path of filesIn(html)) {
    bytes +=
      (await (await page(path, { headers: { "accept-encoding": "gzip, deflate, br" } })).bytes()).length;
  }
  assert(bytes <= 90_000, `${bytes} bytes`);
});

Deno.test("page: false answers the introduction to browsers and has no files", async () => {
  const [script] = filesIn(await (await page("/", { headers: BROWSER })).text());
  const off = open({ page: false });
  const answer = await off("/", { headers: BROWSER });
  assertEquals([answer.status, answer.headers.get("content-type")], [200, "text/html; charset=utf-8"]);
  assertStringIncludes(await answer.text(), "curl -N http://localhost/v1/runs");
  assertEquals((await off(script)).status, 404);
});

const BUILT = { code: "build();\n" };

/** Returns a page with a cache folder, whose builds are counted and may fail. */
function pageOf(folder: string, bundle: BundleScript, monotonic = () => 0) {
  const counted = { builds: 0 };
  const page = new Page({
    cache: new URL(`file://${folder}/`),
    name: "page",
    bundle: (sources) => (counted.builds++, bundle(sources)),
    clock: { monotonic },
  });
  return { page, counted };
}

Deno.test("Page.load() builds once for all servers of a cache folder, also after it was damaged", async () => {
  await using temporary = await temporaryFolder();
  const folder = `${temporary.path}/cache`;
  const first = pageOf(folder, () => Promise.resolve(BUILT));
  const [loaded] = await Promise.all([first.page.load(), first.page.load()]);
  const second = pageOf(folder, () => Promise.resolve(BUILT));
  assertEquals((await second.page.load()).script, loaded.script);
  assertEquals([first.counted.builds, second.counted.builds], [1, 0]);
  const stored = await Deno.readTextFile(`${folder}/page.json`);
  const stale = JSON.stringify({ ...JSON.parse(stored), key: "of other sources" });
  const garbled = JSON.stringify({ ...JSON.parse(stored), style: { gzip: "%", br: "%" } });
  for (const damaged of [stored.slice(0, -9), "", "{}", "[]", "null", stale, garbled]) {
    await Deno.writeTextFile(`${folder}/page.json`, damaged);
    const again = pageOf(folder, () => Promise.resolve(BUILT));
    assertEquals((await again.page.load()).script, loaded.script);
    assertEquals(
      [again.counted.builds, await Deno.readTextFile(`${folder}/page.json`)],
      [1, stored],
      damaged,
    );
  }
  const left = await Array.fromAsync(Deno.readDir(folder), ({ name }) => name);
  assertEquals(left, ["page.json"]);
});

Deno.test("Page.load() needs no cache that can be written", async () => {
  await using temporary = await temporaryFolder();
  await Deno.writeTextFile(`${temporary.path}/file`, "");
  const { page, counted } = pageOf(`${temporary.path}/file/cache`, () => Promise.resolve(BUILT));
  await page.load();
  await page.load();
  assertEquals(counted.builds, 1);
});

Deno.test("GET / answers 503 with the reason when the page cannot be built, and builds again after 10 s", async () => {
  await using temporary = await temporaryFolder();
  let now_ms = 0;
  let failing = true;
  const bundle = () => failing ? Promise.reject(new Error("no esbuild")) : Promise.resolve(BUILT);
  const { page, counted } = pageOf(temporary.path, bundle, () => now_ms);
  const log: LogRecord[] = [];
  const { fetch } = createApp({
    ...{ runtime: createRuntime(), authenticate: null, hosts: "any", page, docs: page },
    log: (record) => void log.push(record),
  });
  const send = (path: string) => fetch(new Request(`http://localhost${path}`, { headers: BROWSER }));
  for (now_ms of [0, 9_999]) {
    const answer = await send("/");
    const html = await answer.text();
    assertEquals([answer.status, answer.headers.get("retry-after"), counted.builds], [503, "10", 1]);
    const { error, request_id } = log.at(-1)!;
    assertEquals(error?.message, "no esbuild");
    assertStringIncludes(
      html,
      `The page cannot be built. The log of the server has the reason, under ${request_id}`,
    );
    assertStringIncludes(html, '<a href="/docs">');
    const docs = await (await send("/docs/plan")).text();
    assertStringIncludes(docs, `under ${log.at(-1)!.request_id}`);
    assertEquals([log.at(-1)!.level, docs.includes("no esbuild")], ["error", false]);
    assertEquals((await send("/page/page.0000000000000000.js")).status, 404);
    assertEquals((await send("/healthz")).status, 200);
  }
  now_ms = 10_000;
  failing = false;
  assertEquals([(await send("/")).status, counted.builds], [200, 2]);
});
