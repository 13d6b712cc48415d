import { assert, assertEquals, assertMatch, assertStringIncludes } from "../../assert.ts";
import { BUILTIN_IDS } from "../../../src/app/module_table.ts";
import { PAGES, readPage } from "../../../src/docs/pages.ts";
import { createPreamp, type PreampOptions } from "../../../src/server/mod.ts";
import { problemOf, testApp } from "../../support/http.ts";

const NAMES = [...PAGES.map(({ name }) => name), ...BUILTIN_IDS];

const { send } = testApp();
const get = (path: string, accept: string) => send(`GET ${path}`, { headers: { accept, authorization: "" } });

Deno.test("GET /docs/{page} answers Markdown to programs and HTML to browsers, without a key", async () => {
  for (const name of NAMES) {
    const markdown = await get(`/docs/${name}`, "*/*");
    assertEquals(markdown.headers.get("content-type"), "text/markdown; charset=utf-8");
    assertEquals(await markdown.text(), await readPage(name));
    const html = await get(`/docs/${name}`, "text/html");
    assertEquals(html.headers.get("content-type"), "text/html; charset=utf-8");
    assertStringIncludes(await html.text(), "</h1>");
  }
  assertEquals((await get("/docs/plan.md", "*/*")).status, 200);
  assertEquals(await problemOf(await get("/docs/nothing", "*/*")), "404 not_found");
  assertEquals(await problemOf(await get("/docs/..%2fplan", "*/*")), "404 not_found");
});

Deno.test("every link of the documentation leads to a page and a heading that are there", async () => {
  const pages = new Map<string, string>();
  for (const path of ["/docs", ...NAMES.map((name) => `/docs/${name}`)]) {
    pages.set(path, await (await get(path, "text/html")).text());
  }
  const wrong: string[] = [];
  for (const [from, html] of pages) {
    for (const [, href = ""] of html.matchAll(/<a [^>]*href="([^"]*)"/g)) {
      const url = new URL(href, `http://host${from}`);
      if (url.host !== "host" || url.pathname === "/") continue;
      const target = pages.get(url.pathname);
      const anchor = decodeURIComponent(url.hash.slice(1));
      if (!target || anchor && !target.includes(` id="${anchor}"`)) wrong.push(`${from} → ${href}`);
    }
  }
  assertEquals(wrong, []);
});

Deno.test("a page has a title, all pages with the current one marked, its contents and its neighbours", async () => {
  const html = await (await get("/docs/http", "text/html")).text();
  assertStringIncludes(html, "<title>HTTP API · Preamp</title>");
  for (const name of NAMES) assertStringIncludes(html, `<a href="${name}"`);
  assertEquals([...html.matchAll(/<a [^>]*aria-current="page"[^>]*>([^<]*)/g)].map(([, text]) => text), [
    "http",
  ]);
  const [, contents = ""] = /<nav class="contents"[^>]*>([^]*?)<\/nav>/.exec(html) ?? [];
  const headings = (await readPage("http"))!.match(/^##+ .*$/gm)!;
  assertEquals(contents.match(/<li/g)?.length, headings.length);
  assertMatch(html, /<a href="\w+" rel="prev">[^]*<a href="\w+" rel="next">/);
  const index = await (await get("/docs", "text/html")).text();
  assertStringIncludes(index, "<title>Documentation · Preamp</title>");
});

Deno.test("GET /docs and /llms.txt list every page", async () => {
  for (const [path, accept] of [["/docs", "*/*"], ["/docs", "text/html"], ["/llms.txt", "*/*"]] as const) {
    const text = await (await get(path, accept)).text();
    for (const name of NAMES) assertStringIncludes(text, `docs/${name}`);
    assert(!text.includes("provider-prompted"), "a module of the application has no page");
  }
});

const HTML = { accept: "text/html" };

/** Returns a function that sends requests to a server without keys. */
function open(options: PreampOptions = {}): (path: string, init?: RequestInit) => Promise<Response> {
  const { fetch } = createPreamp({ log: null, authenticate: null, ...options });
  return (path, init) => fetch(new Request(`http://localhost${path}`, init));
}

/** Resolves to the script and the style of a page. */
async function filesOf(fetch: ReturnType<typeof open>, path: string): Promise<Response[]> {
  const html = await (await fetch(path, { headers: HTML })).text();
  const urls = [/<script [^>]*src="(.*?)"/, /<link rel="stylesheet" href="(.*?)"/].map((tag) => {
    const [, url = ""] = tag.exec(html) ?? [];
    assert(url, `${path} has no ${tag.source}`);
    return new URL(url, `http://localhost${path}`).pathname;
  });
  return await Promise.all(urls.map((url) => fetch(url, { headers: { "accept-encoding": "gzip" } })));
}

Deno.test("the documentation has its own script, at most 4 KB compressed, and style; also without the page", async () => {
  for (const fetch of [open(), open({ page: false })]) {
    for (const path of ["/docs", "/docs/plan"]) {
      const [script, style] = await filesOf(fetch, path);
      assertEquals(
        [script!.headers.get("content-type"), style!.headers.get("content-type")],
        ["text/javascript; charset=utf-8", "text/css; charset=utf-8"],
      );
      const { length } = await script!.bytes();
      assert(length > 500 && length <= 4_000, `${length} bytes`);
    }
  }
});

Deno.test("the documentation is served under a base path", async () => {
  const fetch = open({ basePath: "/agents" });
  for (const path of ["/agents/docs", "/agents/docs/plan"]) {
    for (const file of await filesOf(fetch, path)) {
      assertEquals(file.status, 200);
      await file.body?.cancel();
    }
  }
  const html = await (await fetch("/agents/docs/plan", { headers: HTML })).text();
  assertStringIncludes(html, '<a class="home" href="../">');
});

Deno.test("the documentation has the policy of the page, and no style or script inside", async () => {
  const fetch = open();
  const page = await fetch("/", { headers: HTML });
  const docs = await fetch("/docs/plan", { headers: HTML });
  const policy = docs.headers.get("content-security-policy")!;
  assertEquals(policy, page.headers.get("content-security-policy"));
  assert(!policy.includes("unsafe"));
  const html = await docs.text();
  assertEquals(html.match(/<style|<script(?! type="module" src=)| style=| on\w+=/g), null);
});

Deno.test("pages and search index are revalidated", async () => {
  const fetch = open();
  for (const [path, headers] of [["/docs/plan", HTML], ["/docs", HTML], ["/docs/search.json", {}]] as const) {
    const first = await fetch(path, { headers });
    assertEquals([first.status, first.headers.get("cache-control")], [200, "no-cache"], path);
    await first.body?.cancel();
    const again = await fetch(path, { headers: { ...headers, "if-none-match": first.headers.get("etag")! } });
    assertEquals([again.status, await again.text()], [304, ""], path);
  }
});

Deno.test("GET /docs/search.json answers the sections of all pages", async () => {
  const sections: { page: string }[] = await (await open()("/docs/search.json")).json();
  assertEquals([...new Set(sections.map(({ page }) => page))], NAMES);
});

Deno.test("a page whose style cannot be built says so and is readable", async () => {
  const html = await (await get("/docs/plan", "text/html")).text();
  assertMatch(html, /<p role="alert">This server has no style/);
  assertStringIncludes(html, "</h1>");
});

Deno.test("without the right to read files, the index is answered and a page is not found; no failure stays", async () => {
  const { readTextFile } = Deno;
  const fetch = open();
  const denied = open();
  const notCapable = () => Promise.reject(new Deno.errors.NotCapable("Requires read access to /home/me"));
  try {
    Deno.readTextFile = notCapable;
    for (const path of ["/docs", "/llms.txt", "/docs/search.json"]) {
      assertEquals((await denied(path)).status, 200, path);
    }
    assertStringIncludes(await (await denied("/docs/http")).text(), "start it with --allow-read");
    Deno.readTextFile = () => Promise.reject(new Error("Too many open files"));
    assertEquals((await fetch("/docs/search.json")).status, 500);
  } finally {
    Deno.readTextFile = readTextFile;
  }
  assertStringIncludes(await (await fetch("/docs/search.json")).text(), "tool-calculator");
});

Deno.test("GET /docs/search.json is compressed once for all clients, and has a length in each form", async () => {
  const app = testApp();
  const ask = (headers: Record<string, string> = {}, method = "GET") =>
    app.send(`${method} /docs/search.json`, { headers: { ...headers, authorization: "" } });
  const original = CompressionStream;
  let made = 0;
  globalThis.CompressionStream = class extends original {
    constructor(format: CompressionFormat) {
      super(format);
      made++;
    }
  };
  try {
    const plain = await ask();
    const text = await plain.text();
    assertEquals(plain.headers.get("content-length"), String(new TextEncoder().encode(text).length));
    for (let time = 0; time < 3; time++) {
      const answer = await ask({ "accept-encoding": "gzip, br" });
      assertEquals([answer.headers.get("content-encoding"), answer.headers.get("vary")], [
        "gzip",
        "Accept-Encoding",
      ]);
      const bytes = await answer.bytes();
      assertEquals(answer.headers.get("content-length"), String(bytes.length));
      const unzipped = ReadableStream.from([bytes]).pipeThrough(new DecompressionStream("gzip"));
      assertEquals(await new Response(unzipped).text(), text);
      assertEquals(answer.headers.get("etag"), plain.headers.get("etag"));
    }
    const tag = plain.headers.get("etag")!;
    assertEquals((await ask({ "if-none-match": `W/${tag}` })).status, 304);
    const head = await ask({ "accept-encoding": "gzip" }, "HEAD");
    assertEquals([head.status, await head.text()], [200, ""]);
    assertEquals(made, 1);
  } finally {
    globalThis.CompressionStream = original;
  }
});
