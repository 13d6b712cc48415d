/** Routes of the page: `/`, which programs get as a short text, and the files of the page. */
import { escapeHtml } from "../../text/escape.ts";
import { PreampError } from "../../sdk/errors.ts";
import { type Answer, revalidatedAnswer, textAnswer } from "../answers.ts";
import type { Handler, RequestContext } from "../context.ts";
import { acceptsEncoding, preferredType } from "../negotiation.ts";
import { describeError } from "../log_line.ts";
import { type LoadedPage, type Page, pageHtml } from "../page/page.ts";
import type { Route } from "./route.ts";

/** Headers of everything that a browser displays or executes. */
export const BROWSER_HEADERS = {
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
};

/** Policy of HTML without scripts. */
const STATIC = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'";

/**
 * Policy of the page: only its own files and the server's API, no text as code or markup. Trusted Types
 * without a policy make every use of `innerHTML` and its like an error.
 */
export const PAGE_POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
  "img-src 'self' data:; base-uri 'self'; form-action 'none'; frame-ancestors 'none'; " +
  "require-trusted-types-for 'script'; trusted-types 'none'";

/** Answers the page to browsers, and a short introduction to others. */
const root: Handler = async (context) => {
  const { request, origin, server } = context;
  const base = origin + server.basePath;
  const type = preferredType(request.headers.get("accept"), ["text/plain", "text/html"]);
  if (type === "text/html" && server.page) return await pageAnswer(context, server.page, base);
  return type === "text/html" ? introduction(base, 200) : textAnswer(introductionText(base), 200, {
    ...BROWSER_HEADERS,
    "content-type": "text/plain; charset=utf-8",
    "vary": "accept",
    "content-security-policy": STATIC,
  });
};

async function pageAnswer(context: RequestContext, page: Page, base: string): Promise<Answer> {
  let loaded: LoadedPage;
  try {
    loaded = await page.load();
  } catch (error) {
    return introduction(base, 503, `The page cannot be built. ${reasonOf(error, context)}`);
  }
  return revalidatedAnswer(context.request, pageHtml(loaded, context.server.basePath), {
    ...BROWSER_HEADERS,
    "content-type": "text/html; charset=utf-8",
    "vary": "accept",
    "content-security-policy": PAGE_POLICY,
  });
}

/** Logs why files cannot be built; returns what a client may know of it. */
export function reasonOf(error: unknown, context: RequestContext): string {
  context.failure = { code: "internal", error: describeError(error) };
  return error instanceof Deno.errors.NotCapable
    ? "The server may not read its own files, or the packages in $DENO_DIR: start it with --allow-read."
    : `The log of the server has the reason, under ${context.request_id}.`;
}

/** Answers a file of the page or of the documentation. */
const file: Handler = async (context) => {
  const { page, docs } = context.server;
  const name = context.param("file");
  const loaded = await (name.startsWith("docs.") ? docs : page)?.load().catch(() => null); // its HTML says what failed
  const found = loaded?.files.get(name);
  if (!found) throw new PreampError("not_found", `Cannot find ${context.path}: the page has no such file`);
  const accepted = context.request.headers.get("accept-encoding");
  const coding = (["br", "gzip"] as const).find((coding) => acceptsEncoding(accepted, coding));
  const body = coding ? found[coding] : await unzipped(found.gzip);
  return {
    status: 200,
    headers: {
      ...BROWSER_HEADERS,
      ...(coding ? { "content-encoding": coding } : {}),
      "content-type": found.type,
      "content-length": String(body.length),
      "cache-control": "public, max-age=31536000, immutable",
    },
    body,
  };
};

function unzipped(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const text = ReadableStream.from([bytes]).pipeThrough(new DecompressionStream("gzip"));
  return new Response(text).bytes();
}

function exampleCommand(base: string): string {
  return [
    `curl -N ${base}/v1/runs \\`,
    '  -H "authorization: Bearer $PREAMP_API_KEY" \\',
    '  -H "content-type: application/json" -H "accept: text/event-stream" \\',
    `  -d '{"prompt": "What is 6 x 7?"}'`,
  ].join("\n");
}

function introductionText(base: string): string {
  return [
    "Preamp: an edge runtime for agents. POST a plan and a prompt, get an agent.",
    "",
    exampleCommand(base),
    "",
    `The API as OpenAPI 3.1: ${base}/openapi.json`,
    `Documentation: ${base}/docs`,
    "",
  ].join("\n");
}

/** Answers the introduction as HTML, which the page replaces. */
function introduction(base: string, status: number, note = ""): Answer {
  const openapi = new URL(`${base}/openapi.json`).pathname;
  const docs = new URL(`${base}/docs`).pathname;
  const html = [
    "<!doctype html>",
    '<html lang="en"><head><meta charset="utf-8"><title>Preamp</title>',
    '<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">',
    "</head><body>",
    "<h1>Preamp</h1>",
    ...(note === "" ? [] : [`<p role="alert">${escapeHtml(note)}</p>`]),
    "<p>An edge runtime for agents. POST a plan and a prompt, get an agent.</p>",
    `<pre>${escapeHtml(exampleCommand(base))}</pre>`,
    `<p>The API as OpenAPI 3.1: <a href="${escapeHtml(openapi)}">${escapeHtml(openapi)}</a></p>`,
    `<p>Documentation: <a href="${escapeHtml(docs)}">${escapeHtml(docs)}</a></p>`,
    "</body></html>",
    "",
  ].join("\n");
  return textAnswer(html, status, {
    ...BROWSER_HEADERS,
    "content-type": "text/html; charset=utf-8",
    "vary": "accept",
    "content-security-policy": STATIC,
    ...(status === 503 ? { "cache-control": "no-store", "retry-after": "10" } : {}),
  });
}

/** The routes. */
export const PAGE_ROUTES: readonly Route[] = [
  {
    method: "GET",
    path: "/",
    id: "page",
    summary: "The page of the server for browsers, a short introduction for others",
    open: true,
    answers: {
      200: {
        description: "the page or the introduction",
        content: { "text/plain": null, "text/html": null },
      },
      304: { description: "the client's copy of the page is current" },
      503: {
        description: "the page cannot be built; the API is not affected",
        content: { "text/html": null },
      },
    },
    handle: root,
  },
  {
    method: "GET",
    path: "/page/{file}",
    id: "pageFile",
    summary: "A file of the page or of the documentation",
    open: true,
    answers: { 200: { description: "the file", content: { "text/javascript": null, "text/css": null } } },
    codes: ["not_found"],
    handle: file,
  },
];
