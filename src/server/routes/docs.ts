/** Routes of the documentation: Markdown for programs, HTML for browsers. */
import { linkedPage, pageIndex, readPage } from "../../docs/pages.ts";
import { PreampError } from "../../sdk/errors.ts";
import type { RequestContext } from "../context.ts";
import { type Answer, textAnswer } from "../answers.ts";
import { preferredType } from "../negotiation.ts";
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
    handle: async (context) => respond(context, await indexOf(context), "docs/"),
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
      if (page !== undefined) return respond(context, page, "");
      const message = `Cannot find page ${JSON.stringify(name)}: see /docs for all pages`;
      throw new PreampError("not_found", message);
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
      textAnswer(await indexOf(context), 200, headersFor("text/plain; charset=utf-8")),
  },
];

/** Returns the index of the pages, which is also in the form of https://llmstxt.org. */
async function indexOf({ server }: RequestContext): Promise<string> {
  const modules = await server.runtime.modules.list();
  return pageIndex(
    modules.map(({ id, description }) => ({ name: id, summary: description })),
    (name) => `docs/${name}`,
  );
}

/**
 * Answers Markdown, or HTML when the client prefers it. `prefix` leads from the page's URL to the other
 * pages.
 */
async function respond(context: RequestContext, markdown: string, prefix: string): Promise<Answer> {
  const type = preferredType(context.request.headers.get("accept"), ["text/markdown", "text/html"]);
  if (type !== "text/html") {
    return textAnswer(markdown, 200, headersFor("text/markdown; charset=utf-8"));
  }
  return textAnswer(await htmlPage(markdown, prefix), 200, headersFor("text/html; charset=utf-8"));
}

function headersFor(type: string): Record<string, string> {
  return {
    "content-type": type,
    "vary": "accept",
    "content-security-policy":
      "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
  };
}

async function htmlPage(markdown: string, prefix: string): Promise<string> {
  const { Marked } = await import("marked");
  const renderer = new Marked({
    walkTokens(token) {
      if (token.type !== "link") return;
      const page = linkedPage(token.href);
      if (page) token.href = `${prefix}${page.name}${page.anchor}`;
    },
    renderer: {
      heading({ tokens, depth, text }) {
        return `<h${depth} id="${anchorOf(text)}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
      },
    },
  });
  const title = /^# (.*)$/m.exec(markdown)?.[1] ?? "Preamp";
  const index = prefix === "" ? "../docs" : "docs";
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>${title} · Preamp</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>${STYLE}</style></head>
<body><nav><a href="${index}">Preamp documentation</a></nav><main>
${await renderer.parse(markdown)}</main></body></html>
`;
}

/** Returns the anchor of a heading, as GitHub makes it. */
function anchorOf(heading: string): string {
  return heading.toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, "").replaceAll(" ", "-");
}

const STYLE = `
:root { color-scheme: light dark }
body { font: 16px/1.55 system-ui, sans-serif; margin: 0 auto; max-width: 54rem; padding: 1rem 1.25rem 4rem;
  overflow-wrap: break-word }
nav { border-bottom: 1px solid #8884; padding-bottom: .5rem }
h1, h2, h3 { line-height: 1.25; margin: 2rem 0 .75rem }
code { font: .875em ui-monospace, monospace; background: #8882; border-radius: 3px; padding: .1em .3em }
pre { background: #8882; border-radius: 6px; overflow-x: auto; padding: .75rem 1rem }
pre code { background: none; padding: 0 }
table { border-collapse: collapse; display: block; overflow-x: auto }
th, td { border: 1px solid #8884; padding: .35rem .6rem; text-align: left; vertical-align: top }
`;
