/** Routes of the server itself: `/`, health, metrics, the OpenAPI document and the schema of events. */
import type { Handler } from "../context.ts";
import { METRICS_TYPE } from "../../telemetry/metrics.ts";
import { jsonAnswer, textAnswer } from "../answers.ts";
import { preferredType } from "../negotiation.ts";
import { escapeHtml } from "../../text/escape.ts";
import { DOC_ROUTES } from "./docs.ts";
import { ok, type Route } from "./route.ts";

/** Path of the metrics. */
export const METRICS_PATH = "/metrics";

/** Answers a short introduction as text or HTML. */
const landing: Handler = ({ request, origin, server }) => {
  const base = origin + server.basePath;
  const html = preferredType(request.headers.get("accept"), ["text/plain", "text/html"]) === "text/html";
  return textAnswer(html ? landingPage(base) : landingText(base), 200, {
    "content-type": html ? "text/html; charset=utf-8" : "text/plain; charset=utf-8",
    "vary": "accept",
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
    '<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">',
    "</head><body>",
    "<h1>Preamp</h1>",
    "<p>An edge runtime for agents. POST a plan and a prompt, get an agent.</p>",
    `<pre>${escapeHtml(exampleCommand(base))}</pre>`,
    `<p>The API as OpenAPI 3.1: <a href="${escapeHtml(openapi)}">${escapeHtml(openapi)}</a></p>`,
    `<p>Documentation: <a href="${escapeHtml(docs)}">${escapeHtml(docs)}</a></p>`,
    "</body></html>",
    "",
  ].join("\n");
}

let events_schema: Promise<string> | undefined;

/** The routes. */
export const META_ROUTES: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/events/schema",
    id: "eventsSchema",
    summary: "The JSON Schema of every event of a log",
    answers: {
      200: {
        description: "JSON Schema 2020-12 of an entry; $defs has each canonical event by name",
        content: { "application/schema+json": "JsonSchema" },
      },
    },
    async handle() {
      events_schema ??= import("../../sdk/schemas/entry_schemas.ts").then(({ eventsJsonSchema }) =>
        JSON.stringify(eventsJsonSchema())
      );
      return textAnswer(await events_schema, 200, {
        "content-type": "application/schema+json",
        "x-content-type-options": "nosniff",
      });
    },
  },
  {
    method: "GET",
    path: "/v1/system",
    id: "system",
    summary: "Describe the server: versions, store, isolation tiers, permissions, memory",
    answers: ok("the server", "System"),
    handle: async ({ server }) => jsonAnswer(await server.runtime.system()),
  },
  {
    method: "GET",
    path: "/healthz",
    id: "health",
    summary: "Check that the process is up",
    open: true,
    answers: ok("the process is up", "Health"),
    handle: () => jsonAnswer({ status: "ok" }), // reads no other state
  },
  {
    method: "GET",
    path: "/readyz",
    id: "readiness",
    summary: "Check that the store answers and the server is not shutting down",
    open: true,
    answers: {
      ...ok("ready", "Readiness"),
      503: { description: "not ready", content: { "application/json": "Readiness" } },
    },
    async handle({ server }) {
      const readiness = await server.runtime.ready();
      return readiness.ok ? jsonAnswer(readiness) : jsonAnswer(readiness, 503, { "retry-after": "1" });
    },
  },
  {
    method: "GET",
    path: METRICS_PATH,
    id: "metrics",
    summary: "Metrics in the text format of Prometheus; without a key if the setting metrics.open is true",
    answers: { 200: { description: "the metrics", content: { "text/plain": null } } },
    handle: ({ server }) =>
      textAnswer(server.metrics.text(), 200, { "content-type": METRICS_TYPE, "cache-control": "no-store" }),
  },
  {
    method: "GET",
    path: "/openapi.json",
    id: "openApi",
    summary: "The OpenAPI document",
    open: true,
    answers: { 200: { description: "OpenAPI 3.1" } },
    async handle({ server }) {
      const { openApiText } = await import("../openapi.ts");
      return textAnswer(openApiText(server.basePath), 200, {
        "content-type": "application/json",
        "x-content-type-options": "nosniff",
      });
    },
  },
  ...DOC_ROUTES,
  {
    method: "GET",
    path: "/",
    id: "landing",
    summary: "A short introduction",
    open: true,
    answers: { 200: { description: "the introduction", content: { "text/plain": null, "text/html": null } } },
    handle: landing,
  },
];
