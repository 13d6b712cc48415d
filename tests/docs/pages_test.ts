import { assert, assertEquals } from "../assert.ts";
import { BUILTIN_IDS } from "../../src/app/module_table.ts";
import { linkedPage, pageIndex, PAGES, readPage } from "../../src/docs/pages.ts";

const FOLDER = new URL("../../src/docs/", import.meta.url);

Deno.test("PAGES names every file of src/docs, and its README lists the same pages", async () => {
  const files: string[] = [];
  for await (const { name } of Deno.readDir(FOLDER)) if (name.endsWith(".md")) files.push(name);
  assertEquals(files.sort(), [...PAGES.map(({ name }) => `${name}.md`), "README.md"].sort());
  const index = await Deno.readTextFile(new URL("README.md", FOLDER));
  const rows = [...index.matchAll(/^\| \[([a-z]+)\]\(\1\.md\) +\| (.*?) +\|$/gm)];
  assertEquals(rows.map(([, name, summary]) => ({ name, summary })), [...PAGES]);
});

Deno.test("README.md links the page of every built-in module", async () => {
  const readme = await Deno.readTextFile(new URL("../../README.md", FOLDER));
  const linked = [...readme.matchAll(/\[([a-z-]+)\]\(modules\/\1\/README\.md\)/g)].map(([, id]) => id!);
  assertEquals(linked.sort(), [...BUILTIN_IDS].sort());
});

Deno.test("readPage() returns each page and each module's README, and nothing else", async () => {
  for (const { name } of PAGES) assert((await readPage(name))?.startsWith("# "), name);
  for (const id of BUILTIN_IDS) assert((await readPage(id))?.startsWith(`# `), id);
  for (const name of ["", "nothing", "README", "..", "../plan", "plan.md", "/etc/passwd", "plan\0"]) {
    assertEquals(await readPage(name), undefined, name);
  }
});

Deno.test("linkedPage() reads links between pages and leaves others", () => {
  assertEquals(linkedPage("plan.md"), { name: "plan", anchor: "" });
  assertEquals(linkedPage("http.md#errors"), { name: "http", anchor: "#errors" });
  for (const folder of ["../../modules/", "../"]) {
    assertEquals(linkedPage(`${folder}tool-todo/README.md`), { name: "tool-todo", anchor: "" });
  }
  assertEquals(linkedPage("../../src/docs/http.md#errors"), { name: "http", anchor: "#errors" });
  for (const href of ["https://example.com/plan.md", "README.md", "../x.md", "#plan"]) {
    assertEquals(linkedPage(href), undefined, href);
  }
});

Deno.test("pageIndex() lists every page and module with a link", () => {
  const index = pageIndex([{ name: "tool-x", summary: "Does x." }], (name) => `/docs/${name}`);
  for (const { name } of PAGES) assert(index.includes(`- [${name}](/docs/${name}): `), name);
  assert(index.includes("- [tool-x](/docs/tool-x): Does x."));
});
