/** The HTML document around a page: links to all pages, the contents of this one, and the search. */
import type { Page } from "../../docs/pages.ts";
import { escapeHtml } from "../../text/escape.ts";
import type { Heading, RenderedPage } from "./markdown.ts";

/** A page and its surroundings. */
export interface DocumentOptions {
  /** Title of the page without the program's name. */
  readonly title: string;
  /** Name of the page; undefined for the index. */
  readonly name: string | undefined;
  readonly page: RenderedPage;
  readonly pages: readonly Page[];
  readonly modules: readonly Page[];
  /** Paths of the style and of the script below `/`, or why they are missing. */
  readonly files: { readonly style: string; readonly script: string } | { readonly missing: string };
}

/** Returns the document. Its links are relative, so that a reverse proxy may serve it under any path. */
export function documentHtml({ title, name, page, pages, modules, files }: DocumentOptions): string {
  const [root, index, folder] = name === undefined ? ["./", "docs", "docs/"] : ["../", "../docs", ""];
  const link = (to: string, text: string, more = "") =>
    `<a href="${escapeHtml(`${folder}${to}`)}"${to === name ? ' aria-current="page"' : ""}${more}>${
      escapeHtml(text)
    }</a>`;
  const list = (of: readonly Page[]) =>
    `<ul>${of.map(({ name }) => `<li>${link(name, name)}</li>`).join("")}</ul>`;
  const place = pages.findIndex((one) => one.name === name);
  const [previous, next] = place < 0 ? [] : [pages[place - 1], pages[place + 1]];
  const [head, notice] = "missing" in files ? ["", `<p role="alert">${escapeHtml(files.missing)}</p>\n`] : [
    `<link rel="stylesheet" href="${root}${escapeHtml(files.style)}">
<script type="module" src="${root}${escapeHtml(files.script)}"></script>
`,
    "",
  ];
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>${escapeHtml(title)} · Preamp</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
${head}</head>
<body>
${notice}<a class="skip" href="#text">Skip to the text</a>
<header>
<a class="home" href="${root}">preamp</a>
<a href="${index}"${name === undefined ? ' aria-current="page"' : ""}>documentation</a>
<form role="search" data-folder="${folder}" hidden>
<input type="search" placeholder="Search" aria-label="Search the documentation" role="combobox"
 aria-expanded="false" aria-controls="results" aria-autocomplete="list" autocomplete="off" spellcheck="false"
 maxlength="100"><kbd aria-hidden="true">/</kbd>
<div id="results" role="listbox" aria-label="Results" hidden></div>
<p class="status" role="status"></p>
</form>
</header>
<div class="columns">
<nav class="pages" aria-label="Pages"><details><summary>All pages</summary>
${list(pages)}<p>Built-in modules</p>${list(modules)}
</details></nav>
${contentsOf(page.headings)}
<main id="text">
${page.html}<footer>${previous ? link(previous.name, `← ${previous.name}`, ' rel="prev"') : "<span></span>"}${
    next ? link(next.name, `${next.name} →`, ' rel="next"') : "<span></span>"
  }</footer>
</main>
</div>
</body>
</html>
`;
}

/** Returns the contents of a page: headings of the second and third level; empty for fewer than two. */
function contentsOf(headings: readonly Heading[]): string {
  const shown = headings.filter(({ depth }) => depth === 2 || depth === 3);
  if (shown.length < 2) return "";
  const items = shown.map(({ depth, text, anchor }) =>
    `<li class="level${depth}"><a href="#${escapeHtml(anchor)}">${escapeHtml(text)}</a></li>`
  );
  return `<nav class="contents" aria-label="On this page"><details><summary>On this page</summary>
<ul>${items.join("")}</ul></details></nav>`;
}
