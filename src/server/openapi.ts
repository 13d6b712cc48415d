/**
 * Generates the OpenAPI 3.1 document from the route table and the schemas. Loaded on the first request for
 * the document.
 */
import * as z from "zod";
import manifest from "../../deno.json" with { type: "json" };
import { isObject, type JsonObject, type JsonSchema } from "../sdk/json.ts";
import { entryJsonSchemas, otherSchema } from "../sdk/schemas/entry_schemas.ts";
import { ERRORS } from "../sdk/errors.ts";
import { ROUTES } from "./route_table.ts";
import { codesOf, type Route, type RouteAnswer } from "./routes/route.ts";
import { BODIES, QUERIES } from "./schemas/requests.ts";
import { ANSWERS, SHARED } from "./schemas/responses.ts";

const texts = new Map<string, string>();

/** Returns the document as text; generated once for each base path. */
export function openApiText(basePath: string): string {
  let text = texts.get(basePath);
  if (text === undefined) texts.set(basePath, text = JSON.stringify(openApiDocument(basePath)));
  return text;
}

/** Generates the document. @param basePath Path prefix of the API; empty for none. */
export function openApiDocument(basePath = ""): JsonObject {
  const { queries, components } = namedSchemas();
  const paths: Record<string, JsonObject> = {};
  for (const route of ROUTES) {
    const query = route.query && queries.get(route.query);
    (paths[route.path] ??= {})[route.method.toLowerCase()] = operation(route, query);
  }
  return {
    openapi: "3.1.1",
    info: {
      title: "Preamp",
      version: manifest.version,
      license: { name: manifest.license, identifier: manifest.license },
    },
    servers: [{ url: basePath || "/" }],
    security: [{ key: [] }],
    paths,
    components: {
      schemas: components,
      securitySchemes: { key: { type: "http", scheme: "bearer" } },
    },
  };
}

function operation(route: Route, query: JsonSchema | undefined): JsonObject {
  return {
    operationId: route.id,
    summary: route.summary,
    ...(route.open ? { security: [] } : {}),
    parameters: [...pathParameters(route), ...queryParameters(query), ...headerParameters(route)],
    ...(route.body ? { requestBody: requestBody(route, route.body) } : {}),
    responses: responses(route),
  };
}

function pathParameters(route: Route): JsonObject[] {
  return route.path.split("/").filter((part) => part.startsWith("{")).map((part) => ({
    name: part.slice(1, -1),
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
}

function queryParameters(query: JsonSchema | undefined): JsonObject[] {
  if (!isObject(query?.properties)) return [];
  return Object.entries(query.properties).map(([name, property]) => {
    const { description, ...schema } = isObject(property) ? property : {};
    return { name, in: "query", ...(description === undefined ? {} : { description }), schema };
  });
}

function headerParameters(route: Route): JsonObject[] {
  return Object.entries(route.headers ?? {}).map(([name, description]) => ({
    name,
    in: "header",
    description,
    schema: { type: "string" },
  }));
}

function requestBody(route: Route, name: keyof typeof BODIES): JsonObject {
  const schema = reference(name);
  const plan = {
    type: "object",
    description: "a mount plan as the whole body: an object with a `session` key",
    required: ["session"],
  };
  const orPlan = { schema: { anyOf: [schema, plan] } };
  const content = route.accepts_plans
    ? { "application/json": orPlan, "application/yaml": orPlan, "multipart/form-data": { schema } }
    : { "application/json": { schema } };
  return { required: !route.body_optional, content };
}

function responses(route: Route): JsonObject {
  const byStatus: Record<string, { description: string; content?: JsonObject }> = {};
  for (const [status, answer] of Object.entries(route.answers)) {
    byStatus[status] = { description: answer.description, ...contentOf(answer) };
  }
  for (const code of codesOf(route)) {
    const response = byStatus[ERRORS[code].status] ??= { description: "" };
    response.description += `${response.description && "; "}${code}`;
    response.content = { ...response.content, "application/problem+json": { schema: reference("Problem") } };
  }
  return byStatus;
}

function contentOf({ content }: RouteAnswer): { content?: JsonObject } {
  if (!content) return {};
  const types = Object.entries(content).map(([type, name]) => {
    if (name === null) return [type, { schema: { type: "string" } }];
    const description = type === "text/event-stream"
      ? "events with the seq as id, the entry's name as event, and the entry as JSON in data:"
      : type === "application/x-ndjson"
      ? "one JSON document per line:"
      : undefined;
    const schema = typeof name === "string" ? reference(name) : { anyOf: name.map(reference) };
    return [type, {
      schema: description
        ? { type: "string", description, contentMediaType: "application/json", contentSchema: schema }
        : schema,
    }];
  });
  return { content: Object.fromEntries(types) };
}

function reference(name: string): JsonObject {
  return { $ref: `#/components/schemas/${name}` };
}

/**
 * Returns the schemas of queries, which are inlined, and all other schemas, which the document references by
 * name.
 */
function namedSchemas(): { queries: Map<string, JsonSchema>; components: Record<string, JsonSchema> } {
  const registry = z.registry<{ id: string }>();
  const named = { ...SHARED, ...BODIES, ...ANSWERS, ...QUERIES };
  for (const [id, schema] of Object.entries(named)) registry.add(schema, { id });
  const { schemas } = z.toJSONSchema(registry, {
    io: "input",
    unrepresentable: "any", // custom schemas have their JSON Schema in `meta`
    uri: (id) => `#/components/schemas/${id}`,
  });
  const queries = new Map<string, JsonSchema>();
  const components: Record<string, JsonSchema> = {};
  for (const [id, schema] of Object.entries(schemas)) {
    const { $schema: _, $id: __, id: ___, ...rest } = schema as JsonSchema; // an object of keywords
    if (Object.hasOwn(QUERIES, id)) queries.set(id, rest);
    else components[id] = rest;
  }
  addEvents(components);
  return { queries, components };
}

/**
 * Adds a component for each canonical event, such as `Event.tool.pre`, and defines `Event` as any of them.
 */
function addEvents(components: Record<string, JsonSchema>): void {
  const events = Object.entries(entryJsonSchemas()).map(([event, schema]) => {
    const id = `Event.${event.replace(":", ".")}`;
    components[id] = schema;
    return id;
  });
  components["Event.other"] = otherSchema();
  components.Event = { ...components.Event, anyOf: [...events, "Event.other"].map(reference) };
}
