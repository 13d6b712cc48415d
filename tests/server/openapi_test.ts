import { assert, assertEquals } from "../assert.ts";
import { openApiDocument } from "../../src/server/openapi.ts";
import { type ErrorCode, ERRORS } from "../../src/sdk/errors.ts";
import { ROUTES } from "../../src/server/route_table.ts";
import { codesOf } from "../../src/server/routes/route.ts";
import { BODIES } from "../../src/server/schemas/requests.ts";
import { ANSWERS, SHARED } from "../../src/server/schemas/responses.ts";
import { EVENT_DATA } from "../../src/sdk/schemas/event_data.ts";
import { isObject } from "../../src/sdk/json.ts";
import { testApp } from "../support/http.ts";

// deno-lint-ignore no-explicit-any -- a document of many shapes, read field by field
const document: any = JSON.parse(JSON.stringify(openApiDocument()));

Deno.test("GET /openapi.json returns the document without a key", async () => {
  const { send } = testApp();
  const response = await send("GET /openapi.json", { headers: { authorization: "" } });
  assertEquals(response.headers.get("content-type"), "application/json");
  assertEquals(await response.json(), document);
});

Deno.test("openApiDocument() contains the base path as server URL", () => {
  assertEquals(document.servers, [{ url: "/" }]);
});

Deno.test("openApiDocument() states maxima of numbers in a query that the server accepts", async () => {
  const { send } = testApp();
  const { parameters } = document.paths["/v1/runs/{id}/events"].get;
  const { schema } = parameters.find(({ name }: { name: string }) => name === "after");
  const response = await send(`GET /v1/runs/run_unknown/events?after=${schema.maximum}`);
  await response.body?.cancel();
  assertEquals(response.status, 404);
});

Deno.test("openApiDocument() contains every route exactly once", () => {
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.keys(item as object).map((method) => `${method.toUpperCase()} ${path}`)
  );
  assertEquals(operations.sort(), ROUTES.map(({ method, path }) => `${method} ${path}`).sort());
  const ids = ROUTES.map(({ id }) => id);
  assertEquals(new Set(ids).size, ids.length);
});

Deno.test("openApiDocument() lists every error code, and each route's codes at their status", () => {
  assertEquals(document.components.schemas.ErrorCode.enum, Object.keys(ERRORS));
  for (const route of ROUTES) {
    const { responses } = document.paths[route.path][route.method.toLowerCase()];
    for (const code of codesOf(route)) {
      const response = responses[ERRORS[code].status];
      assert(response.description.split("; ").includes(code), `${route.id} ${code}`);
      assertEquals(response.content["application/problem+json"].schema.$ref, "#/components/schemas/Problem");
    }
  }
});

Deno.test("openApiDocument() lists log_expired for the routes that read a log, storage_full for those that change a run", () => {
  const idsWith = (code: ErrorCode) =>
    ROUTES.filter((route) => codesOf(route).includes(code)).map(({ id }) => id);
  assertEquals(idsWith("log_expired"), [
    "listRunEvents",
    "replayRun",
    "listRequests",
    "listApprovals",
    "decideApproval",
  ]);
  const changing = ["createRun", "deleteRun", "cancelRun", "steerRun", "replayRun", "decideApproval"];
  assertEquals(changing.filter((id) => !idsWith("storage_full").includes(id)), []);
});

Deno.test("openApiDocument() describes path parameters, and security of routes that need a key", () => {
  for (const { method, path, open } of ROUTES) {
    const operation = document.paths[path][method.toLowerCase()];
    const named = operation.parameters.filter((parameter: { in: string }) => parameter.in === "path")
      .map(({ name }: { name: string }) => `{${name}}`);
    assertEquals(named, path.split("/").filter((part) => part.startsWith("{")));
    assertEquals(operation.security, open ? [] : undefined);
  }
});

Deno.test("openApiDocument() has no dangling reference and no unused schema", () => {
  const used = new Set<string>();
  (function visit(value: unknown): void {
    if (Array.isArray(value)) return value.forEach(visit);
    if (!isObject(value)) return;
    if (typeof value.$ref === "string") used.add(value.$ref);
    Object.values(value).forEach(visit);
  })(document);
  const defined = Object.keys(document.components.schemas).map((name) => `#/components/schemas/${name}`);
  assertEquals([...used].sort(), defined.sort());
  const events = [...Object.keys(EVENT_DATA), "other"].map((event) => `Event.${event.replace(":", ".")}`);
  const named = [...Object.keys({ ...BODIES, ...ANSWERS, ...SHARED }), ...events];
  assertEquals(Object.keys(document.components.schemas).sort(), named.sort());
});

Deno.test("openApiDocument() has required fields, closed request bodies and open response bodies", () => {
  const { RunRequest, Run } = document.components.schemas;
  assertEquals([RunRequest.required, RunRequest.additionalProperties], [["prompt"], false]);
  assertEquals(Run.additionalProperties, undefined);
  assertEquals(Object.keys(RunRequest.properties).sort(), [
    "background",
    "if_busy",
    "limits",
    "lock",
    "metadata",
    "mode",
    "model",
    "on_disconnect",
    "plan",
    "plan_ref",
    "prompt",
    "session_id",
    "workspace",
  ]);
  const parameters = document.paths["/v1/runs"].get.parameters.map(({ name }: { name: string }) => name);
  assertEquals(parameters, ["session_id", "status", "limit", "cursor"]);
});

Deno.test("openApiDocument() lists the accepted media types", () => {
  const { content } = document.paths["/v1/runs"].post.requestBody;
  assertEquals(Object.keys(content), ["application/json", "application/yaml", "multipart/form-data"]);
  const answers = document.paths["/v1/runs"].post.responses[200].content;
  assertEquals(Object.keys(answers), ["application/json", "text/plain", "text/event-stream"]);
});
