import { assert, assertEquals, assertStringIncludes } from "../../assert.ts";
import { PAGES, readPage } from "../../../src/docs/pages.ts";
import { problemOf, testApp } from "../../support/http.ts";

const { send } = testApp();
const get = (path: string, accept: string) => send(`GET ${path}`, { headers: { accept, authorization: "" } });

Deno.test("GET /docs/{page} answers Markdown to programs and HTML to browsers, without a key", async () => {
  for (const { name } of PAGES) {
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

Deno.test("links between pages point to existing pages and headings", async () => {
  const links: { from: string; to: string; anchor: string }[] = [];
  for (const { name } of PAGES) {
    const html = await (await get(`/docs/${name}`, "text/html")).text();
    for (const [, href] of html.matchAll(/<a href="([^"]*)"/g)) {
      const url = new URL(href!, `http://host/docs/${name}`); // one group
      if (url.host === "host") links.push({ from: name, to: url.pathname, anchor: url.hash.slice(1) });
    }
  }
  assert(links.length > PAGES.length);
  for (const { from, to, anchor } of links) {
    const answer = await get(to, "text/html");
    assertEquals(answer.status, 200, `${from} → ${to}`);
    const html = await answer.text();
    if (anchor) assertStringIncludes(html, `id="${anchor}"`, `${from} → ${to}#${anchor}`);
  }
});

Deno.test("GET /docs and /llms.txt list every page", async () => {
  for (const [path, accept] of [["/docs", "*/*"], ["/docs", "text/html"], ["/llms.txt", "*/*"]] as const) {
    const text = await (await get(path, accept)).text();
    for (const { name } of PAGES) assertStringIncludes(text, `docs/${name}`);
  }
});
