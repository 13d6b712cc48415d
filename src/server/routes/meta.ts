/** What is open to everyone: whether the server lives, what it offers, what it is. */
import { type Handler, jsonResponse } from "../context.ts";
import { preferredType } from "../negotiation.ts";
import { textResponse } from "../text_response.ts";

/** `GET /readyz`: the store answers and no drain is under way, else 503 with the reasons; and which tiers modules can have. */
export const readiness: Handler = async (call) => {
  const { ok, reasons, isolation, bundler } = await call.env.server.runtime.ready();
  const body = { ok, reasons, isolation, bundler };
  return ok ? jsonResponse(body) : jsonResponse(body, 503, { "retry-after": "1" });
};

/** `GET /openapi.json`. */
export const openApi: Handler = async (call) => {
  const { openApiText } = await import("../openapi.ts");
  return textResponse(await openApiText(call.env.server.basePath), 200, {
    "content-type": "application/json",
    "x-content-type-options": "nosniff",
  });
};

let events_schema: Promise<string> | undefined;

/** `GET /v1/events/schema`: the JSON Schema of every event. */
export const eventsSchema: Handler = async () => {
  events_schema ??= import("../../sdk/schemas/events.ts").then(({ eventsJsonSchema }) =>
    JSON.stringify(eventsJsonSchema())
  );
  return textResponse(await events_schema, 200, {
    "content-type": "application/schema+json",
    "x-content-type-options": "nosniff",
  });
};

/** `GET /`: what this is, as text or as a page. */
export const landing: Handler = (call) => {
  const base = new URL(call.req.url).origin + call.env.server.basePath;
  const html = preferredType(call.req.raw.headers.get("accept"), ["text/plain", "text/html"]) === "text/html";
  return textResponse(html ? landingPage(base) : landingText(base), 200, {
    "content-type": html ? "text/html; charset=utf-8" : "text/plain; charset=utf-8",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
  });
};

function exampleCommand(base: string): string {
  return [
    `curl -N ${base}/v1/runs \\`,
    '  -H "authorization: Bearer $PREAMP_API_KEY" \\',
    '  -H "content-type: application/json" -H "accept: text/event-stream" \\',
    `  -d '{"prompt": "What is 6 x 7?"}'`,
  ].join("\n");
}

function landingText(base: string): string {
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

function landingPage(base: string): string {
  const openapi = new URL(`${base}/openapi.json`).pathname;
  const docs = new URL(`${base}/docs`).pathname;
  return [
    "<!doctype html>",
    '<html lang="en"><head><meta charset="utf-8"><title>Preamp</title>',
    '<meta name="viewport" content="width=device-width"></head><body>',
    "<h1>Preamp</h1>",
    "<p>An edge runtime for agents. POST a plan and a prompt, get an agent.</p>",
    `<pre>${escapeHtml(exampleCommand(base))}</pre>`,
    `<p>The API as OpenAPI 3.1: <a href="${escapeHtml(openapi)}">${escapeHtml(openapi)}</a></p>`,
    `<p>Documentation: <a href="${escapeHtml(docs)}">${escapeHtml(docs)}</a></p>`,
    "</body></html>",
    "",
  ].join("\n");
}

/** A host name comes from the request; `URL` leaves none of these in it, and that is not relied on. */
function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll(
    '"',
    "&quot;",
  );
}
