/** Routes of the documentation: Markdown for programs, HTML for browsers, an index for its search. */
import { type Page, pageIndex, PAGES, readPage, UNREADABLE } from "../../docs/pages.ts";
import type { Runtime } from "../../app/types.ts";
import { PreampError } from "../../sdk/errors.ts";
import { type Answer, keptAnswer, keptText, revalidatedAnswer, textAnswer } from "../answers.ts";
import type { RequestContext } from "../context.ts";
import { preferredType } from "../negotiation.ts";
import { BROWSER_HEADERS, PAGE_POLICY, reasonOf } from "./page.ts";
import type { Route } from "./route.ts";

const CONTENT = { "text/markdown": null, "text/html": null };

/** The routes. */
export const DOC_ROUTES: readonly Route[] = [
  {
    method: "GET",
    path: "/docs",
    id: "docsIndex",
    summary: "The index of the documentation",
    open: true,
    answers: { 200: { description: "the index", content: CONTENT } },
    async handle(context) {
      if (!wantsHtml(context)) return markdownAnswer(await indexOf(context));
      const modules = await modulesOf(context);
      return await htmlAnswer(context, pageIndex(modules, (name) => `${name}.md`), undefined);
    },
  },
  {
    method: "GET",
    path: "/docs/search.json",
    id: "docsSearch",
    summary: "The sections of all pages, for the search of the documentation",
    open: true,
    answers: {
      200: { description: "the sections", content: { "application/json": null } },
      304: { description: "the client's copy is current" },
    },
    async handle(context) {
      const headers = { ...BROWSER_HEADERS, "content-type": "application/json" };
      return keptAnswer(context.request, await searchIndexOf(context), headers);
    },
  },
  {
    method: "GET",
    path: "/docs/{page}",
    id: "docsPage",
    summary: "A page of the documentation",
    open: true,
    answers: { 200: { description: "the page", content: CONTENT } },
    codes: ["not_found"],
    async handle(context) {
      const name = context.param("page").replace(/\.md$/, "");
      const page = await readPage(name);
      if (page !== undefined) {
        return wantsHtml(context) ? await htmlAnswer(context, page, name) : markdownAnswer(page);
      }
      const advice = PAGES.some((one) => one.name === name) ? UNREADABLE : "see /docs for all pages";
      throw new PreampError("not_found", `Cannot find page ${JSON.stringify(name)}: ${advice}`);
    },
  },
  {
    method: "GET",
    path: "/llms.txt",
    id: "llmsText",
    summary: "The index of the documentation for language models (llmstxt.org)",
    open: true,
    answers: { 200: { description: "the index", content: { "text/plain": null } } },
    handle: async (context) =>
      textAnswer(await indexOf(context), 200, {
        ...BROWSER_HEADERS,
        "content-type": "text/plain; charset=utf-8",
      }),
  },
];

/** Returns the index of the pages, which is also in the form of https://llmstxt.org. */
async function indexOf(context: RequestContext): Promise<string> {
  return pageIndex(await modulesOf(context), (name) => `docs/${name}`);
}

/** Returns the modules that have a page; those of an application have none. */
const modulesOf = onceForEach(async (runtime): Promise<readonly Page[]> => {
  const modules = await runtime.modules.list();
  const found = await Promise.all(
    modules.map(async ({ id, description }) =>
      await readPage(id) === undefined ? [] : [{ name: id, summary: description }]
    ),
  );
  return found.flat();
});

const searchIndexOf = onceForEach(async (_, context) => {
  const { searchSections } = await import("../docs/search_index.ts");
  const sections = await searchSections((await modulesOf(context)).map(({ name }) => name));
  return await keptText(`${JSON.stringify(sections)}\n`);
});

/** Keeps the result for each runtime, whose modules do not change; not a failure. */
function onceForEach<T>(make: (runtime: Runtime, context: RequestContext) => Promise<T>) {
  const made = new WeakMap<Runtime, Promise<T>>();
  return (context: RequestContext): Promise<T> => {
    const { runtime } = context.server;
    const known = made.get(runtime);
    if (known) return known;
    const result = make(runtime, context);
    result.catch(() => made.delete(runtime));
    made.set(runtime, result);
    return result;
  };
}

function wantsHtml({ request }: RequestContext): boolean {
  return preferredType(request.headers.get("accept"), ["text/markdown", "text/html"]) === "text/html";
}

function markdownAnswer(markdown: string): Answer {
  return textAnswer(markdown, 200, {
    ...BROWSER_HEADERS,
    "content-type": "text/markdown; charset=utf-8",
    "vary": "accept",
  });
}

/** Answers a page as HTML; `name` is undefined for the index. */
async function htmlAnswer(
  context: RequestContext,
  markdown: string,
  name: string | undefined,
): Promise<Answer> {
  const { documentHtml } = await import("../docs/document.ts");
  const { renderPage } = await import("../docs/markdown.ts");
  const page = renderPage(markdown, name === undefined ? "docs/" : "");
  const html = documentHtml({
    title: name === undefined ? "Documentation" : page.headings[0]?.text ?? name,
    name,
    page,
    pages: PAGES,
    modules: await modulesOf(context),
    files: await filesOf(context),
  });
  return revalidatedAnswer(context.request, html, {
    ...BROWSER_HEADERS,
    "content-type": "text/html; charset=utf-8",
    "vary": "accept",
    "content-security-policy": PAGE_POLICY,
  });
}

/** Returns the script and style of the pages; without them a page is readable, so a failure is only noted. */
async function filesOf(context: RequestContext) {
  try {
    return await context.server.docs?.load() ??
      { missing: "This server has no style for its documentation." };
  } catch (error) {
    return { missing: `The style of this page cannot be built. ${reasonOf(error, context)}` };
  }
}
