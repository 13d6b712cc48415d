/** The OpenAPI 3.1 document: the route table's routes, and the schemas that validate them. Imported when somebody asks for it. */
import * as z from "zod";
import manifest from "../../deno.json" with { type: "json" };
import { isObject, type JsonObject, type JsonSchema } from "../sdk/json.ts";
import { entryJsonSchemas, otherSchema } from "../sdk/schemas/events.ts";
import { STATUS } from "./problems.ts";
import { codesOf, type Route, type RouteAnswer, ROUTES } from "./route_table.ts";
import { ANSWERS, BODIES, QUERIES, SHARED } from "./schemas.ts";

const texts = new Map<string, string>();

/** Returns the document's text; made once for each base path. */
export function openApiText(basePath: string): string {
  let text = texts.get(basePath);
  if (text === undefined) texts.set(basePath, text = JSON.stringify(openApiDocument(basePath)));
  return text;
}

/** Returns the document. @param basePath Path that the API is mounted under; empty for none. */
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
  return Object.entries(query.properties).map(([name, given]) => {
    const { description, ...schema } = isObject(given) ? given : {};
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
    description: "itself a mount plan: it has a `session` key",
    required: ["session"],
  };
  const orPlan = { schema: { anyOf: [schema, plan] } };
  const content = route.takes_plans
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
    const response = byStatus[STATUS[code]] ??= { description: "" };
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
      ? "frames with the seq as id, the name as event, and as data the JSON of:"
      : type === "application/x-ndjson"
      ? "lines with the JSON of:"
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

/** Returns the schema of every query, and every other one, which the document refers to by name. */
function namedSchemas(): { queries: Map<string, JsonSchema>; components: Record<string, JsonSchema> } {
  const registry = z.registry<{ id: string }>();
  const named = { ...SHARED, ...BODIES, ...ANSWERS, ...QUERIES };
  for (const [id, schema] of Object.entries(named)) registry.add(schema, { id });
  const { schemas } = z.toJSONSchema(registry, {
    io: "input",
    unrepresentable: "any", // what a custom schema is, its `meta` says
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

/** Adds a component for each canonical event, such as `Event.tool.pre`, and says that an `Event` is one of them or another. */
function addEvents(components: Record<string, JsonSchema>): void {
  const events = Object.entries(entryJsonSchemas()).map(([event, schema]) => {
    const id = `Event.${event.replace(":", ".")}`;
    components[id] = schema;
    return id;
  });
  components["Event.other"] = otherSchema();
  components.Event = { ...components.Event, anyOf: [...events, "Event.other"].map(reference) };
}
