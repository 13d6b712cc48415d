import { assert, assertEquals } from "../../assert.ts";
import { BUILTIN_IDS } from "../../../src/app/module_table.ts";
import { PAGES, readPage } from "../../../src/docs/pages.ts";
import { renderPage, sectionsOf } from "../../../src/server/docs/markdown.ts";

const NAMES = [...PAGES.map(({ name }) => name), ...BUILTIN_IDS];

/** Returns the HTML of a text, in one line. */
const html = (markdown: string, prefix = "") => renderPage(markdown, prefix).html.trim();

Deno.test("renderPage() displays markup as text", () => {
  const hostile = [
    "<script>alert(1)</script>",
    "text <img src=x onerror=alert(1)> text",
    "<a href='javascript:alert(1)'>x</a>",
    "<!-- comment --> <style>*{}</style>",
    "# <svg onload=alert(1)>",
    "## A <b>title</b>",
    "| a | <i>b</i> |\n|---|---|\n| <u>c</u> | d |",
    "`<code>` and &lt;b&gt;",
    '```"><script>\n</code></pre><script>alert(1)</script>\n```',
    '```js" onmouseover="alert(1)\nx\n```',
    "- <details open>\n\n  <iframe src=//example.com></iframe>",
    "<https://example.com/<script>>",
  ].join("\n\n");
  const tags = [...html(hostile).matchAll(/<(\/?[a-z0-9]+)([^>]*)>/g)];
  const allowed = /^\/?(p|h1|h2|a|div|table|thead|tbody|tr|th|td|code|pre|ul|li)$/;
  assertEquals(tags.map(([, name]) => name).filter((name) => !allowed.test(name!)), []);
  const attributes = tags.flatMap(([, , text]) =>
    [...text!.matchAll(/([\w-]+)="[^"]*"/g)].map(([, name]) => name!)
  );
  assertEquals([...new Set(attributes)].sort(), ["class", "href", "id"]);
  assertEquals(tags.filter(([, , text]) => text!.replace(/ [\w-]+="[^"]*"/g, "") !== ""), []);
});

Deno.test("renderPage() links pages, headings and the web, and nothing else", () => {
  const link = (href: string, prefix = "") => /href="([^"]*)"/.exec(html(`[x](${href})`, prefix))?.[1];
  assertEquals(link("plan.md#keys"), "plan#keys");
  assertEquals(link("../tool-todo/README.md", "docs/"), "docs/tool-todo");
  assertEquals(link("#keys"), "#keys");
  assertEquals(link("https://example.com/?a=1&b=2"), "https://example.com/?a=1&amp;b=2");
  for (
    const href of [
      "javascript:alert(1)",
      "JavaScript:alert(1)",
      "java\tscript:alert(1)",
      "data:text/html,x",
      "vbscript:x",
      "file:///etc/passwd",
      "//example.com",
      "/v1/runs",
      "../LICENSE",
      "&#106;avascript:alert(1)",
    ]
  ) assertEquals(link(href), undefined, href);
});

Deno.test("renderPage() gives each heading an anchor of its own, as GitHub does", () => {
  const { html, headings } = renderPage(
    "# A page\n\n## `on_limit`, what?\n\n## Twice\n\n## Twice\n\n### Ünder é\n",
    "",
  );
  assertEquals(headings, [
    { depth: 1, text: "A page", anchor: "a-page" },
    { depth: 2, text: "on_limit, what?", anchor: "on_limit-what" },
    { depth: 2, text: "Twice", anchor: "twice" },
    { depth: 2, text: "Twice", anchor: "twice-1" },
    { depth: 3, text: "Ünder é", anchor: "ünder-é" },
  ]);
  for (const { anchor } of headings) assert(html.includes(` id="${anchor}">`), anchor);
});

Deno.test("every page renders with anchors that are unique, and without markup of its own", async () => {
  for (const name of NAMES) {
    const markdown = await readPage(name);
    assert(markdown !== undefined, name);
    const { html, headings } = renderPage(markdown, "");
    assertEquals(new Set(headings.map(({ anchor }) => anchor)).size, headings.length, name);
    assertEquals(headings.filter(({ depth }) => depth === 1).length, 1, name);
    const prose = html.replace(/<pre>[^]*?<\/pre>|<code>[^]*?<\/code>/g, "");
    assertEquals(/&lt;\w[^&]*&gt;/.exec(prose)?.[0], undefined, `${name} has markup in its prose`);
  }
});

Deno.test("sectionsOf() returns the text below each heading, code and tables included", () => {
  const markdown = [
    "lost",
    "# Title",
    "A **bold** [link](plan.md) and `code` & more.",
    "## Part",
    "- one\n- two\n  - three",
    "| a | b |\n|---|---|\n| c | d |",
    "```sh\npreamp run\n```",
    "### Empty",
  ].join("\n\n");
  assertEquals(sectionsOf(markdown).map(({ text, anchor, body }) => [text, anchor, body]), [
    ["Title", "title", "A bold link and code & more."],
    ["Part", "part", "one two three a b c d preamp run"],
    ["Empty", "empty", ""],
  ]);
});
