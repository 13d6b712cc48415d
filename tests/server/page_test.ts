/** Tests of the page: `GET /` for browsers, and its files. */
import { assert, assertEquals, assertMatch, assertStringIncludes } from "../assert.ts";
import { createPreamp, type PreampOptions } from "../../src/server/mod.ts";

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
  assertMatch(await answer.text(), /<script type="module" src="page\/[0-9a-f]{16}\.js"><\/script>/);
  for (const accept of ["*/*", "application/json", "text/plain"]) {
    const other = await page("/", { headers: { accept } });
    assertEquals(other.headers.get("content-type"), "text/plain; charset=utf-8", accept);
    assertStringIncludes(await other.text(), "curl -N http://localhost/v1/runs");
  }
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
  }
  assertEquals((await page("/page/0000000000000000.js")).status, 404);
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

Deno.test("the page is at most 60 KB compressed", async () => {
  const html = await (await page("/", { headers: BROWSER })).text();
  let bytes = html.length;
  for (const path of filesIn(html)) {
    bytes += (await (await page(path, { headers: { "accept-encoding": "gzip" } })).bytes()).length;
  }
  assert(bytes <= 60_000, `${bytes} bytes`);
});

Deno.test("page: false answers the introduction to browsers and has no files", async () => {
  const [script] = filesIn(await (await page("/", { headers: BROWSER })).text());
  const off = open({ page: false });
  const answer = await off("/", { headers: BROWSER });
  assertEquals([answer.status, answer.headers.get("content-type")], [200, "text/html; charset=utf-8"]);
  assertStringIncludes(await answer.text(), "curl -N http://localhost/v1/runs");
  assertEquals((await off(script)).status, 404);
});
