/** `deno serve main.ts` and `deno run main.ts`: the module without a command line. Always from source. */
import { assertEquals, assertStringIncludes } from "../assert.ts";
import { serveFiles } from "../support/loader.ts";
import { POSTGRES, startPostgres } from "../support/postgres.ts";
import { endChild, Tail } from "../support/child_process.ts";
import { ROOT, runCommand } from "./program.ts";
import { inFolder, temporaryFolder } from "../support/folder.ts";
import { lasting, mustRun, planOf } from "./shared_store.ts";

const PERMISSIONS = ["--no-prompt", "--allow-net", "--allow-read", "--allow-env"];

interface Served {
  url: string;
  /** What it has written to stdout and stderr. */
  output(): string;
  /** Sends a signal, and resolves to the exit code. */
  end(signal: Deno.Signal): Promise<number>;
}

async function withServed(
  env: Record<string, string>,
  test: (served: Served) => Promise<void>,
  command: readonly string[] = ["serve", ...PERMISSIONS, "--host", "127.0.0.1", "--port", "0"],
): Promise<void> {
  const child = new Deno.Command(Deno.execPath(), {
    args: [...command, `${ROOT}main.ts`],
    env: { ...env, NO_COLOR: "1" },
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const stdout = new Tail(child.stdout);
  const stderr = new Tail(child.stderr);
  const end = async (signal: Deno.Signal) => {
    child.kill(signal);
    const [{ code }] = await Promise.all([child.status, stdout.closed, stderr.closed]);
    return code;
  };
  let ended = false;
  try {
    const address = await Promise.race(
      [stdout, stderr].map((tail) => tail.until((text) => text.includes("Listening on http"))),
    );
    const url = /http:\/\/[\d.:]+/.exec(address)?.[0] ?? "";
    await test({
      url,
      output: () => stdout.text + stderr.text,
      end: (signal) => {
        ended = true;
        return end(signal);
      },
    });
  } finally {
    if (!ended) await end("SIGTERM");
  }
}

async function statusOf(url: string, headers: Record<string, string> = {}): Promise<number> {
  const response = await fetch(url, { headers });
  await response.body?.cancel();
  return response.status;
}

Deno.test("deno serve main.ts answers open routes alone when no keys are configured", async () => {
  await withServed({}, async ({ url, output, end }) => {
    assertEquals(await statusOf(`${url}/healthz`), 200);
    assertEquals(await statusOf(`${url}/v1/runs`), 401);
    assertEquals(await statusOf(`${url}/v1/runs`, { authorization: "Bearer " }), 401);
    assertEquals(await end("SIGTERM"), 0);
    assertStringIncludes(output(), "No API key is configured");
  });
});

Deno.test("deno serve main.ts takes the keys of PREAMP_API_KEYS", async () => {
  await withServed({ PREAMP_API_KEYS: "a-key" }, async ({ url }) => {
    assertEquals(await statusOf(`${url}/v1/runs`, { authorization: "Bearer a-key" }), 200);
    assertEquals(await statusOf(`${url}/v1/runs`, { authorization: "Bearer another" }), 401);
  });
});

Deno.test("deno serve main.ts answers the page, which it builds without child processes and a disk", async () => {
  await withServed({}, async ({ url }) => {
    const page = await fetch(url, { headers: { accept: "text/html" } });
    const script = / src="(page\/.*?)"/.exec(await page.text())?.[1];
    assertEquals(await statusOf(`${url}/${script}`), 200);
  });
});

Deno.test("deno serve main.ts answers 500 and logs why when its settings cannot be used", async () => {
  await withServed({ PREAMP_CONFIG: "/nowhere/preamp.yaml" }, async ({ url, end, output }) => {
    assertEquals(await statusOf(`${url}/healthz`), 200);
    assertEquals(await statusOf(`${url}/v1/runs`), 500);
    assertEquals(await end("SIGTERM"), 0);
    const lines = output().split("\n").filter((line) => line !== "" && !line.startsWith("deno serve: "));
    const [health, failed, ...rest] = lines.map((line) => JSON.parse(line));
    assertEquals([health.status, failed.status, rest], [200, 500, []]);
    assertStringIncludes(failed.error.message, "/nowhere/preamp.yaml");
  });
});

for (const signal of ["SIGTERM", "SIGINT"] as const) {
  Deno.test(`deno serve main.ts exits 0 and prints nothing after ${signal} before its first request`, async () => {
    await withServed({}, async ({ end, output }) => {
      assertEquals(await end(signal), 0);
      assertEquals(output().replaceAll(/deno serve: Listening on .*\n/g, ""), "");
    });
  });

  Deno.test(`deno serve main.ts ends its streams and exits 0 after ${signal}`, async () => {
    await withServed({ PREAMP_API_KEYS: "a-key" }, async ({ url, end, output }) => {
      const stream = await fetch(`${url}/v1/runs`, {
        method: "POST",
        headers: {
          authorization: "Bearer a-key",
          "content-type": "application/json",
          accept: "text/event-stream",
        },
        body: JSON.stringify({ prompt: "What is 6 × 7?" }), // the demo waits for a person
      });
      const text = stream.text();
      const code = await end(signal);
      assertStringIncludes(await text, "event: run:start");
      assertEquals([code, output().includes("Usage")], [0, false]);
    });
  });
}

Deno.test("deno run main.ts with DENO_AUTO_SERVE exits 0 after SIGTERM", async () => {
  const env = { DENO_AUTO_SERVE: "1", DENO_SERVE_ADDRESS: "tcp:127.0.0.1:0" };
  await withServed(env, async ({ end, output }) => {
    assertEquals(await end("SIGTERM"), 0);
    assertEquals(output().includes("Usage"), false);
  }, ["run", ...PERMISSIONS]);
});

Deno.test("deno run main.ts serve needs no permission to read its own files", async () => {
  await using temporary = await temporaryFolder();
  const folder = temporary.path;
  const server = new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-prompt", "--allow-net", "--allow-env", `--allow-read=${folder}`, `${ROOT}main.ts`]
      .concat("serve", "--port", "0"),
    cwd: folder,
    stdout: "piped",
    stderr: "null",
  }).spawn();
  const lines = server.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const [url = ""] = ((await lines.read()).value ?? "").split("\n");
  assertEquals((await (await fetch(`${url}/readyz`)).json()).ok, true);
  const page = await fetch(url, { headers: { accept: "text/html" } }); // the one that needs it
  assertEquals(page.status, 503);
  assertStringIncludes(await page.text(), "start it with --allow-read");
  await lines.cancel();
  server.kill("SIGTERM");
  assertEquals((await server.status).code, 0);
});

Deno.test("a $PREAMP_HOME that may not be read counts as absent, and /readyz and the log say so", async () => {
  await using temporary = await temporaryFolder();
  await using home = await temporaryFolder();
  await Deno.mkdir(`${temporary.path}/plans`);
  await Deno.writeTextFile(`${temporary.path}/plans/mine.json`, JSON.stringify(planOf(0)));
  await using server = await startReading(temporary.path, [temporary.path], { PREAMP_HOME: home.path });
  for (const body of [{ plan_ref: "mine" }, { plan: planOf(0) }]) {
    const response = await fetch(`${server.url}/v1/runs`, {
      method: "POST",
      headers: SENDS,
      body: JSON.stringify({ prompt: "What is 6 × 7?", ...body }),
    });
    const { status, output_text } = await response.json();
    assertEquals([response.status, status, output_text], [200, "completed", "It is 42."]);
  }
  const readiness = await (await fetch(`${server.url}/readyz`)).json();
  assertEquals(readiness.ok, true);
  for (const text of [readiness.home, server.log.text]) {
    assertStringIncludes(text, "this process may not read $PREAMP_HOME");
  }
});

Deno.test("broken source overrides are no fault of a caller", async () => {
  await using temporary = await temporaryFolder();
  const home = `${temporary.path}/home`;
  await Deno.mkdir(home);
  await Deno.writeTextFile(`${home}/sources.yaml`, "sources: { tool-x: [1] }");
  await using server = await startReading(temporary.path, [temporary.path], { PREAMP_HOME: home });
  const response = await fetch(`${server.url}/v1/runs`, {
    method: "POST",
    headers: SENDS,
    body: JSON.stringify({ prompt: "What is 6 × 7?" }),
  });
  const { error } = await response.json();
  assertEquals([response.status, error.code, error.message.includes("sources")], [500, "internal", false]);
  assertStringIncludes(await server.log.until((text) => text.includes("must be text")), "sources.yaml");
});

/** Starts `serve` in a folder with the permission to read these folders and none to write. */
async function startReading(cwd: string, read: readonly string[], env: Record<string, string>) {
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "--no-prompt",
      "--allow-net",
      "--allow-env",
      `--allow-read=${read.join(",")}`,
      `${ROOT}main.ts`,
    ]
      .concat("serve", "--port", "0", "--plans", "plans"),
    cwd,
    env: { PREAMP_API_KEYS: "a-key", ...env },
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const [stdout, log] = [new Tail(child.stdout), new Tail(child.stderr)];
  const [url = ""] = (await stdout.until((text) => text.includes("\n"))).split("\n");
  return {
    url,
    log,
    async [Symbol.asyncDispose]() {
      endChild(child, "SIGTERM");
      await Promise.all([child.status, stdout.closed, log.closed]);
    },
  };
}

Deno.test("deno run main.ts without arguments prints the usage and exits 2", async () => {
  const { code, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", ...PERMISSIONS, `${ROOT}main.ts`],
  }).output();
  assertEquals(code, 2);
  assertStringIncludes(new TextDecoder().decode(stderr), "Usage: preamp");
});

Deno.test("deno serve main.ts continues the runs of a process that was killed, from its first request on", () =>
  inFolder((folder) =>
    lasting(3_000, async (delay_ms) => {
      const env = { PREAMP_STORE: `sqlite:${folder}/runs.db`, PREAMP_API_KEYS: "a-key" };
      const command = [
        "serve",
        ...PERMISSIONS,
        `--allow-write=${folder}`,
        "--host",
        "127.0.0.1",
        "--port",
        "0",
      ];
      let id = "";
      await withServed(env, async ({ url, end }) => {
        const response = await fetch(`${url}/v1/runs`, {
          method: "POST",
          headers: { ...SENDS, prefer: "respond-async" },
          body: JSON.stringify({ prompt: "What is 6 × 7?", plan: planOf(delay_ms) }),
        });
        id = (await response.json()).id;
        await mustRun({ fetch: (path) => fetch(url + path, { headers: SENDS }) }, id);
        await end("SIGKILL");
      }, command);
      await withServed(env, async ({ url, output }) => {
        assertEquals(await statusOf(`${url}/healthz`), 200);
        const headers = { ...SENDS, accept: "application/x-ndjson" };
        const entries = (await (await fetch(`${url}/v1/runs/${id}/events`, { headers })).text()).trim().split(
          /\n+/,
        );
        const names = entries.map((line) => JSON.parse(line).event);
        assertEquals([names.at(-1), names.filter((name) => name === "run:end").length], ["run:end", 1]);
        const run = await (await fetch(`${url}/v1/runs/${id}`, { headers: SENDS })).json();
        assertEquals([run.status, run.output_text], ["completed", "It is 42."]);
        assertStringIncludes(output(), '"code":"run_continued"');
      }, command);
    })
  ));

/** What a request sends besides its body. */
const SENDS = { authorization: "Bearer a-key", "content-type": "application/json" };

/** A plan whose model takes `delay_ms` before its tool shouts. */
const slowPlan = (delay_ms: number, source: string) => ({
  session: { orchestrator: "loop-basic", context: "context-simple" },
  providers: [{
    module: "provider-mock",
    config: {
      responses: [{ tool_calls: [{ name: "shout", arguments: { text: "hi" } }] }, {
        text: "Done.",
        delay_ms,
      }],
    },
  }],
  tools: [{ module: "tool-shout", source }],
});

const SHOUT = `export function mount(coordinator) {
  const execute = (input) => Promise.resolve({ success: true, output: input.text.toUpperCase() });
  const input_schema = { type: "object", properties: { text: { type: "string" } }, required: ["text"] };
  coordinator.mount("tools", { name: "shout", description: "Shouts", input_schema, execute });
}`;

/** Folder with a named plan `default`, which was vendored from a server that has ended. */
const HOSTED = await Deno.realPath(await Deno.makeTempDir());
Deno.test.beforeAll(async () => {
  await using server = serveFiles({ "shout.js": SHOUT });
  const plan = JSON.stringify(slowPlan(7_000, `${server.url}shout.js`));
  await Deno.writeTextFile(`${HOSTED}/default.json`, plan);
  const vendored = await runCommand(["plan", "vendor", "--inline", "default.json", "-o", "plans"], {
    cwd: HOSTED,
  });
  assertEquals(vendored.code, 0, vendored.stderr);
  const manifest = JSON.parse(await Deno.readTextFile(`${ROOT}deno.json`));
  const own = Object.entries<string>(manifest.imports)
    .map(([name, target]) => [name, target.replace(/^\.\//, `file://${ROOT}`)]);
  const config = { imports: Object.fromEntries(own), compilerOptions: manifest.compilerOptions };
  await Deno.writeTextFile(`${HOSTED}/deno.json`, JSON.stringify(config));
});
Deno.test.afterAll(() => Deno.remove(HOSTED, { recursive: true }));

/**
 * Calls `body` with a program that was started as Deno Deploy starts it, by DENO_AUTO_SERVE and without
 * unstable features.
 */
async function withHosted(
  env: Record<string, string>,
  body: (served: Served) => Promise<void>,
  flags: readonly string[] = [],
): Promise<void> {
  await using home = await temporaryFolder();
  const host = { DENO_AUTO_SERVE: "1", DENO_SERVE_ADDRESS: "tcp:127.0.0.1:0", PREAMP_API_KEYS: "a-key" };
  const settings = { PREAMP_PLANS: `${HOSTED}/plans` };
  const options = ["--no-prompt", "--allow-all", "--no-lock", "--config", `${HOSTED}/deno.json`];
  await withServed(
    { PREAMP_HOME: home.path, ...host, ...settings, ...env },
    body,
    ["run", ...options, ...flags],
  );
}

Deno.test("as on Deno Deploy: a vendored plan answers, and no response is silent while its model takes 7 s", () =>
  withHosted({}, async ({ url, output }) => {
    const post = (accept: string) =>
      fetch(`${url}/v1/runs`, {
        method: "POST",
        headers: { ...SENDS, accept },
        body: JSON.stringify({ prompt: "hello" }),
      });
    const [json, sse] = await Promise.all([post("application/json"), post("text/event-stream")]);
    const ndjson = await fetch(`${url}/v1/runs/${sse.headers.get("preamp-run-id")}/events`, {
      headers: { ...SENDS, accept: "application/x-ndjson" },
    });
    const [text, events, lines] = await Promise.all([json, sse, ndjson].map((response) => response.text()));
    const beats = [/^ */.exec(text!)![0].length, events!.split(": ping\n\n").length - 1];
    assertEquals(beats.map((count) => count >= 2), [true, true], `${beats} heartbeats in 7 s`);
    const run = JSON.parse(text!);
    assertEquals([json.status, run.status, run.output_text], [200, "completed", "Done."]);
    assertEquals(run.isolation["tool-shout"], "inline");
    assertStringIncludes(events!, '"output":"HI"');
    assertStringIncludes(lines!, "\n\n");

    const refused = await fetch(`${url}/v1/runs`, {
      method: "POST",
      headers: { ...SENDS, prefer: "respond-async" },
      body: JSON.stringify({ prompt: "hello" }),
    });
    const { error } = await refused.json();
    assertEquals([refused.status, error.code], [403, "forbidden"]);
    assertStringIncludes(error.message, "Cannot start a run in the background");

    const logged = output().split("\n").filter((line) => line.startsWith("{")).map((line) =>
      JSON.parse(line)
    );
    const { store, background, isolation } = logged.find(({ code }) => code === "serving");
    assertEquals([store, background, isolation.process], ["memory", false, true]);
  }));

Deno.test("as on Deno Deploy: with a database, runs continue in the background", () =>
  inFolder(async (folder) => {
    await withHosted({ PREAMP_STORE: `sqlite:${folder}/runs.db` }, async ({ url }) => {
      const response = await fetch(`${url}/v1/runs`, {
        method: "POST",
        headers: { ...SENDS, prefer: "respond-async" },
        body: JSON.stringify({ prompt: "hello" }),
      });
      assertEquals([response.status, (await response.json()).status], [202, "running"]);
    }, ["--unstable-cron"]);
  }));

Deno.test({
  name: "as on Deno Deploy: the store is the database of DATABASE_URL, or of PGHOST",
  ignore: POSTGRES === null,
  async fn() {
    await using database = await startPostgres();
    const { hostname: PGHOST, port: PGPORT, username: PGUSER } = new URL(database.url);
    for (const env of [{ DATABASE_URL: database.url }, { PGHOST, PGPORT, PGUSER, PGDATABASE: "postgres" }]) {
      await withHosted(env, async ({ url, output }) => {
        assertEquals(await statusOf(`${url}/readyz`), 200);
        assertStringIncludes(output(), '"store":"postgres","background":true');
      });
    }
  },
});

Deno.test("as on Deno Deploy: a DATABASE_URL of another database is refused, without its text", () =>
  withHosted({ DATABASE_URL: "mysql://ada:hunter2@127.0.0.1/x" }, async ({ url, output, end }) => {
    assertEquals(await statusOf(`${url}/v1/runs`, SENDS), 500);
    assertEquals(await end("SIGTERM"), 0);
    assertStringIncludes(output(), "Cannot use DATABASE_URL: must be postgres://");
    assertEquals(output().includes("hunter2"), false);
  }));
