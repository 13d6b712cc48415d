/** Routes of the server itself: health, metrics, the OpenAPI document and the schema of events. */
import { METRICS_TYPE } from "../../telemetry/metrics.ts";
import { mayOperate } from "../../runs/types.ts";
import { jsonAnswer, textAnswer } from "../answers.ts";
import { DOC_ROUTES } from "./docs.ts";
import { PAGE_ROUTES } from "./page.ts";
import { ok, type Route } from "./route.ts";

/** Path of the metrics. */
export const METRICS_PATH = "/metrics";

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
    path: "/v1/caller",
    id: "caller",
    summary: "Describe the caller: whose key it is, and what it may choose",
    answers: ok("the caller", "Caller"),
    handle: (_context, caller) => {
      const { name, namespace } = caller;
      return jsonAnswer({ name, namespace, owner: mayOperate(caller) });
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
  ...PAGE_ROUTES,
];
