/** `preamp serve` as a user meets it. */
import { assert, assertEquals, assertMatch, assertStringIncludes } from "../assert.ts";
import { runCommand, type ServerProgram, startServer } from "./program.ts";
import { shell } from "./shell.ts";
import { readSse } from "../support/sse.ts";
import { temporaryFolder } from "../support/folder.ts";

const PLAN = `
session: {orchestrator: loop-streaming, context: context-simple}
providers: [provider-mock]
tools: [tool-calculator]
`;

/** The server of all tests that need no flags and do not end it. */
let server: ServerProgram;
Deno.test.beforeAll(async () => {
  server = await startServer();
});
Deno.test.afterAll(async () => await server[Symbol.asyncDispose]());

Deno.test("serve prints its address, then its page and a curl with the key it made", async () => {
  const [first = ""] = server.stdout.text.split("\n");
  assertMatch(first, /^http:\/\/127\.0\.0\.1:\d+$/);
  assertMatch(server.key, /^pk_[\w-]{43}$/);
  assertStringIncludes(
    server.stdout.text,
    `\n# Open ${first}/#key=${server.key} in a browser.\n`,
  );
  assertStringIncludes(server.stdout.text, `curl -N ${first}/v1/runs`);
  const health = await server.get("/healthz");
  assertEquals(health.status, 200);
});

Deno.test("serve runs what it printed when it is pasted into two shells", async () => {
  const [, , ask = "", answer = ""] = server.stdout.text.split(/^# .*\n/m);
  const asking = shell(ask);
  // the second shell's commands need a run that waits
  await waitingRun(server);
  const answered = JSON.parse(await shell(answer));
  assertEquals(answered.status, "granted");
  const events = await asking;
  assertStringIncludes(events, "event: tool:post");
  assertStringIncludes(events, '"output_text":"6 × 7 is 42."');
});

Deno.test("serve streams a run that waits for an approval, which another request gives", async () => {
  const stream = await server.fetch("/v1/runs", {
    method: "POST",
    headers: { accept: "text/event-stream", "content-type": "application/json" },
    body: JSON.stringify({ prompt: "What is 6 × 7?" }),
  });
  assertEquals(stream.status, 200);
  const names: string[] = [];
  let run_id = "";
  for await (const { data } of readSse(stream)) {
    const entry = JSON.parse(data);
    names.push(entry.event);
    run_id = entry.run_id;
    if (entry.event !== "approval:required") continue;
    const { status, body } = await server.post(`/v1/runs/${run_id}/approvals/${entry.data.approval_id}`, {
      decision: "allow",
    });
    assertEquals([status, body.status, body.decided_by], [200, "granted", "key:generated"]);
  }
  assertEquals(names.at(-1), "run:end");
  assert(names.indexOf("approval:granted") < names.indexOf("tool:post"));
  const { body: run } = await server.get(`/v1/runs/${run_id}`);
  assertEquals([run.status, run.tool_call_count], ["completed", 1]);
});

Deno.test("serve takes a YAML plan as the body, as curl --data-binary sends it", async () => {
  const response = await server.fetch(`/v1/runs?prompt=${encodeURIComponent("compute 6*7")}`, {
    method: "POST",
    headers: { "content-type": "application/yaml" },
    body: PLAN,
  });
  const run = await response.json();
  assertEquals([response.status, run.status, run.tool_call_count], [200, "completed", 1]);
  assertStringIncludes(run.output_text, "42");
});

Deno.test("serve answers 401 without its key, and nothing but open routes", async () => {
  const refused = await fetch(`${server.url}/v1/runs`);
  assertEquals(refused.status, 401);
  await refused.body?.cancel();
  const open = await fetch(`${server.url}/readyz`);
  assertEquals(open.status, 200);
  await open.body?.cancel();
});

Deno.test("serve takes the keys of PREAMP_API_KEYS and never shows them", async () => {
  const key = "first-of-two-keys";
  await using server = await startServer([], { env: { PREAMP_API_KEYS: `${key},another-key` } });
  const answer = await fetch(`${server.url}/v1/runs`, { headers: { authorization: `Bearer ${key}` } });
  assertEquals(answer.status, 200);
  await answer.body?.cancel();
  assertStringIncludes(server.stdout.text, "Bearer $PREAMP_API_KEY");
  assert(!server.stdout.text.includes(key) && !server.stderr.text.includes(key));
});

Deno.test("serve --no-auth takes requests without a key", async () => {
  await using server = await startServer(["--no-auth"]);
  const answer = await fetch(`${server.url}/v1/runs`);
  assertEquals(answer.status, 200);
  await answer.body?.cancel();
  assert(!server.stdout.text.includes("Bearer"));
});

for (const name of ["plnas", import.meta.filename!]) {
  Deno.test(`serve warns when the folder of plans is ${name}, which is no folder`, async () => {
    await using server = await startServer(["--no-auth", "--plans", name]);
    await server.stderr.until((text) => text.includes(`Cannot find the folder of plans \\"${name}\\"`));
    assertEquals((await server.get("/v1/plans")).body, { data: [], next_cursor: null });
  });
}

Deno.test("serve warns when the setting model names a provider that does not exist", async () => {
  await using server = await startServer(["--no-auth"], { env: { PREAMP_MODEL: "antropic/x" } });
  await server.stderr.until((text) => text.includes('there is no provider \\"antropic\\"'));
});

Deno.test("serve refuses a foreign Host, as a rebound name sends it", async () => {
  await using server = await startServer(["--no-auth"]);
  const { port } = new URL(server.url);
  const connection = await Deno.connect({ hostname: "127.0.0.1", port: Number(port) });
  await connection.write(
    new TextEncoder().encode("GET /v1/runs HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"),
  );
  assertMatch(await new Response(connection.readable).text(), /^HTTP\/1\.1 403 /);
});

Deno.test("serve refuses an open door, an unknown flag, a bad value and a store it does not have", async () => {
  const refusals: [string[], string][] = [
    [["--host", "0.0.0.0"], "PREAMP_API_KEYS"],
    [["--host", "0.0.0.0", "--no-auth"], "loopback"],
    [["--prot", "0"], "did you mean --port?"],
    [["--port", "99999"], "--port"],
    [["--limits.max_cost_usd", "much"], "--limits.max_cost_usd"],
    [["--store", "redis://127.0.0.1"], "sqlite:PATH"],
    [["--log-format", "xml"], "json or pretty"],
    [["somewhere"], "somewhere"],
  ];
  for (const [args, message] of refusals) {
    const { code, stdout, stderr } = await runCommand(["serve", ...args]);
    assertEquals([args, code, stdout], [args, 2, ""]);
    assertStringIncludes(stderr, message);
  }
});

Deno.test("serve names the wrong flag, variable or line of preamp.yaml, and applies them in this order", async () => {
  await using temporary = await temporaryFolder();
  const folder = temporary.path;
  await Deno.writeTextFile(
    `${folder}/preamp.yaml`,
    "limits:\n  max_iterations: 7\n  max_tool_calls: 8\n  max_duration_s: 9\n",
  );
  const trusted = { PREAMP_TRUST: "1" };
  const env = { ...trusted, PREAMP_LIMITS_MAX_TOOL_CALLS: "18", PREAMP_LIMITS_MAX_DURATION_S: "19" };
  {
    await using server = await startServer(["--limits.max_duration_s", "29"], { cwd: folder, env });
    const { body } = await server.post("/v1/runs", { prompt: "hi", plan: PLAN });
    const { max_iterations, max_tool_calls, max_duration_s } = body.limits;
    assertEquals([max_iterations, max_tool_calls, max_duration_s], [7, 18, 29]);
  }
  const variable = await runCommand(["serve"], {
    cwd: folder,
    env: { PREAMP_LIMITS_MAX_TOOL_CALLS: "many" },
  });
  assertEquals(variable.code, 2);
  assertStringIncludes(variable.stderr, "PREAMP_LIMITS_MAX_TOOL_CALLS");
  await Deno.writeTextFile(`${folder}/preamp.yaml`, "limits:\n  max_iteration: 7\n");
  const document = await runCommand(["serve"], { cwd: folder, env: trusted });
  assertEquals(document.code, 3);
  assertStringIncludes(document.stderr, "preamp.yaml:2:");
});

Deno.test("serve exits 1 and says so when its port is in use", async () => {
  const { code, stderr } = await runCommand(["serve", "--port", new URL(server.url).port]);
  assertEquals(code, 1);
  assertStringIncludes(stderr, "the port is already in use");
});

for (const signal of ["SIGTERM", "SIGINT"] as const) {
  Deno.test(`serve drains on ${signal} without a store that lasts: readers get the end of the run, exits 0`, async () => {
    await using server = await startServer(["--store", "memory"]);
    const read = (method: string, path: string, accept: string) =>
      server.fetch(path, {
        method,
        headers: { accept, "content-type": "application/json" },
        ...(method === "POST" ? { body: JSON.stringify({ prompt: "What is 6 × 7?" }) } : {}),
      });
    const sse = await read("POST", "/v1/runs", "text/event-stream");
    const run_id = sse.headers.get("preamp-run-id") ?? "";
    await waitingRun(server);
    const ndjson = await read("GET", `/v1/runs/${run_id}/events`, "application/x-ndjson");
    server.kill(signal);
    const [frames, lines, ended] = await Promise.all([sse.text(), ndjson.text(), server.ended]);
    assertEquals([ended.code, ended.signal], [0, null]);
    const framed = /\nevent: run:end\ndata: (.*)\n\n$/.exec(frames)?.[1] ?? "null";
    const line = lines.trimEnd().split("\n").at(-1) ?? "null";
    for (const last of [JSON.parse(framed), JSON.parse(line)]) {
      assertEquals([last?.event, last?.data.run.id, last?.data.run.status], ["run:end", run_id, "cancelled"]);
    }
  });
}

Deno.test("serve logs one line of JSON for each request, with its id", async () => {
  const response = await server.fetch("/v1/sessions/none");
  await response.body?.cancel();
  const id = response.headers.get("preamp-request-id") ?? "";
  const text = await server.stderr.until((text) => text.includes(id) && text.endsWith("\n"));
  const lines = text.trim().split("\n").map((line) => JSON.parse(line));
  const found = lines.find((line) => line.request_id === id);
  assertEquals([found.status, found.path, found.code], [404, "/v1/sessions/none", "not_found"]);
});

Deno.test("serve --log-format pretty writes lines for a person", async () => {
  await using server = await startServer(["--log-format", "pretty"]);
  await server.get("/healthz");
  const text = await server.stderr.until((text) => text.includes("/healthz"));
  assertMatch(text, /^\d\d:\d\d:\d\d\.\d{3} info {4} {0,1}200 {2}GET {3}\/healthz/m);
});

/** Resolves when a run waits for a person. */
async function waitingRun(
  server: { get(path: string): Promise<{ body: { data: unknown[] } }> },
): Promise<void> {
  while ((await server.get("/v1/runs?status=awaiting_approval")).body.data.length === 0);
}

Deno.test("serve writes lines of JSON alone, also for HEAD and for a run that is cancelled with its client", async () => {
  await using server = await startServer(["--log-format", "json"]);
  const { body: run } = await server.post("/v1/runs", {
    prompt: "Hello",
    on_disconnect: "cancel",
    plan: {
      session: { orchestrator: "loop-basic", context: "context-simple" },
      providers: [{ module: "provider-mock", config: { response: "Hello." } }],
    },
  });
  assertEquals(run.status, "completed");
  for (const path of ["/healthz", "/openapi.json", `/v1/runs/${run.id}`, `/v1/runs/${run.id}/events`]) {
    const headers = { "accept-encoding": "identity" }; // before 2.9 Deno compresses what is small, too
    const get = await server.fetch(path, { headers });
    const head = await server.fetch(path, { method: "HEAD", headers });
    assertEquals([head.status, await head.text()], [200, ""]);
    assertEquals(head.headers.get("content-length"), get.headers.get("content-length"));
    await get.body?.cancel();
  }
  server.kill("SIGTERM");
  const { code, stderr } = await server.ended;
  const lines = stderr.trimEnd().split("\n");
  assertEquals([code, lines.filter((line) => !line.startsWith('{"level":'))], [0, []]);
});

Deno.test("serve warns of a broken plan in the folder of plans once it listens", async () => {
  await using folder = await temporaryFolder();
  await Deno.writeTextFile(
    `${folder.path}/good.yaml`,
    "session: {orchestrator: loop-basic, context: context-simple}\nmodel: mock\n",
  );
  await Deno.writeTextFile(`${folder.path}/bad.yaml`, "session: {orchestrator: loop-basic}\nmodel: [\n");
  await using server = await startServer(["--plans", folder.path]);
  const text = await server.stderr.until((text) => text.includes("plan_invalid"));
  assertStringIncludes(text, "bad:");
  assert(!text.includes('"good"'));
});
