/**
 * Modules by URL in the real process: what runs, what is refused before a packet or before anything of it
 * executes.
 */
import { assert, assertEquals, assertMatch, assertStringIncludes } from "../assert.ts";
import type { FileServer } from "../support/loader.ts";
import { planOfFive, serveModules } from "./module_server.ts";
import type { Result } from "./after_effects.ts";
import { type Json, runCommand, type ServerProgram, startServer } from "./program.ts";

/** A folder with a plan, and a home of its own. */
interface Place extends AsyncDisposable {
  folder: string;
  write(name: string, data: unknown): Promise<void>;
  run(...args: string[]): Promise<Result>;
}

async function place(): Promise<Place> {
  const folder = await Deno.makeTempDir();
  return {
    folder,
    write: (name, data) =>
      Deno.writeTextFile(`${folder}/${name}`, typeof data === "string" ? data : JSON.stringify(data)),
    run: (...args) => runCommand(args, { cwd: folder, env: { PREAMP_HOME: `${folder}/home` } }),
    [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }),
  };
}

const RUN = ["run", "-p", "plan.yaml", "--output-format", "json-trace"] as const;
const PROMPT = "How long are 3 km?";

/** Returns what a run writes with `json-trace`. */
function traceOf({ code, stdout, stderr }: Result): { run: Json; events: Json[] } {
  assertEquals(code, 0, stderr);
  return JSON.parse(stdout);
}

function eventsOf(events: Json[], name: string): Json[] {
  return events.filter(({ event }) => event === name).map(({ data }) => data);
}

/** Returns the lock of a plan that ran: digests from the run's log, files from the server. */
async function lockOf(server: FileServer, mounted: Json[]): Promise<Json> {
  const modules: Json = {};
  const files: Json = {};
  for (const { module_id, integrity } of mounted) {
    const url = `${server.url}modules/${module_id}/mod.ts`;
    modules[url] = { url, integrity };
  }
  for (const [path, content] of Object.entries(server.files)) {
    const bytes = typeof content === "string"
      ? new TextEncoder().encode(content)
      : content as Uint8Array<ArrayBuffer>;
    const sha256 = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toHex();
    files[server.url + path] = { sha256, bytes: bytes.length };
  }
  return { version: 1, modules, files };
}

Deno.test("a plan whose five modules come from five URLs says what it loaded; locked, it runs without a request, and refuses a byte that changed", async () => {
  await using server = await serveModules();
  await using at = await place();
  await at.write("plan.yaml", planOfFive(server.url));
  const { run, events } = traceOf(await at.run(...RUN, PROMPT));
  assertEquals([run.status, run.output_text, run.tool_call_count], ["completed", "3 km are 3000 m.", 1]);
  assertEquals(run.isolation, {
    "loop-plain": "process",
    "context-list": "process",
    "provider-script": "process",
    "tool-units": "process",
    "hooks-count": "process",
  });
  const mounted = eventsOf(events, "module:mounted");
  assertEquals(mounted.map(({ type }) => type), ["orchestrator", "context", "provider", "tool", "hook"]);
  for (const { integrity } of mounted) assertMatch(integrity, /^sha256-[A-Za-z0-9+/]{43}=$/);
  assertEquals(eventsOf(events, "session:state"), [{ set: { "hooks-count": 1 } }]);
  assertEquals(run.lock_hash, null);

  await at.write("plan.lock.json", await lockOf(server, mounted));
  server.requests.length = 0;
  const { run: locked } = traceOf(await at.run(...RUN, "--frozen", PROMPT));
  assertEquals([locked.status, locked.output_text], ["completed", "3 km are 3000 m."]);
  assertMatch(locked.lock_hash, /^sha256-/);
  assertEquals(server.requests, []);

  const path = "modules/tool-units/lib/convert.ts";
  const text = new TextDecoder().decode(server.files[path] as Uint8Array);
  server.files[path] = text.replace("value *", "value /");
  await Deno.remove(`${at.folder}/home`, { recursive: true }); // nothing is cached: the bytes must come from the server
  const refused = await at.run(...RUN, PROMPT);
  assertEquals([refused.code, refused.stdout], [1, ""]);
  assertStringIncludes(refused.stderr, `${server.url}${path}`);
  assertStringIncludes(refused.stderr, "its bytes are not those of the lock");
});

Deno.test("nothing of any module executes when one of them is refused", async () => {
  await using server = await serveModules();
  server.files["beacon/mod.ts"] =
    `await fetch("${server.url}executed");\nexport const mount = () => ({ name: "beacon", description: "d", execute: () => "x" });`;
  const integrity = `sha256-${"A".repeat(43)}=`;
  const permissions = { net: [new URL(server.url).host] };
  const beacon = { module: "tool-beacon", source: `${server.url}beacon/mod.ts`, permissions };
  await using at = await place();
  const plan = planOfFive(server.url);
  await at.write("plan.yaml", { ...plan, tools: [beacon] });
  traceOf(await at.run(...RUN, PROMPT)); // alone it may
  assert(server.requests.includes("/executed"));
  server.requests.length = 0;
  const pinned = { module: "tool-units", source: `${server.url}modules/tool-units/mod.ts`, integrity };
  await at.write("plan.yaml", { ...plan, tools: [beacon, pinned] });
  const { code, stderr } = await at.run(...RUN, PROMPT);
  assertEquals(code, 1);
  assertStringIncludes(stderr, `expected ${integrity}`);
  assert(!server.requests.includes("/executed"));
});

Deno.test("--frozen refuses a module that nothing pins, before it is fetched", async () => {
  await using server = await serveModules();
  await using at = await place();
  await at.write("plan.yaml", planOfFive(server.url));
  const { code, stderr } = await at.run(...RUN, "--frozen", PROMPT);
  assertEquals([code, server.requests], [1, []]);
  assertStringIncludes(stderr, "preamp plan lock");
});

Deno.test("a plan file loads modules beside it by relative path; a folder means its mod.ts", async () => {
  await using at = await place();
  await Deno.mkdir(`${at.folder}/clock`);
  await at.write(
    "clock/mod.ts",
    `import { defineTool, z } from "preamp";
     const clock = defineTool({ name: "calculator", description: "d", input: z.looseObject({}), execute: () => import.meta.dirname ?? "" });
     export async function mount(coordinator: { mount(point: string, tool: object): Promise<void> }): Promise<void> {
       await coordinator.mount("tools", clock);
     }`,
  );
  await at.write(
    "plan.yaml",
    "session: {orchestrator: loop-basic, context: context-simple}\nproviders: [provider-mock]\ntools: [{module: tool-clock, source: ./clock}]\n",
  );
  const { run, events } = traceOf(await at.run(...RUN, "What is 6 × 7?"));
  assertEquals([run.status, run.tool_call_count], ["completed", 1]);
  assertEquals(eventsOf(events, "tool:post")[0].result.output, await Deno.realPath(`${at.folder}/clock`));
});

/** What a caller may load, and what only an operator may. */
interface Site {
  server: FileServer;
  program: ServerProgram;
  /** Posts a run with a plan of a caller's. */
  post(plan: unknown, more?: Record<string, unknown>): Promise<{ status: number; body: Json }>;
}

let site: Site & AsyncDisposable;
Deno.test.beforeAll(async () => {
  site = await openSite();
});
Deno.test.afterAll(async () => await site[Symbol.asyncDispose]());

/** Starts a server for the tests over HTTP: each has files of its own, below `wrong/` and `modules/`. */
async function openSite(): Promise<typeof site> {
  await using opened = new AsyncDisposableStack();
  const server = opened.use(await serveModules());
  const at = opened.use(await place());
  const inline = ["modules/", "amplifier/", "wrong/"].map((path) => server.url + path);
  const program = opened.use(
    await startServer([
      "--modules.allow",
      [...inline, `${server.url}guests/`].join(","),
      "--modules.inline",
      inline.join(","),
      "--modules.private_hosts",
      `127.0.0.1:${server.port}`,
    ], { env: { PREAMP_HOME: `${at.folder}/home` }, cwd: at.folder }),
  );
  const all = opened.move();
  return {
    server,
    program,
    post: (plan, more) => program.post("/v1/runs", { prompt: PROMPT, plan, ...more }),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** Calls `test` with the server, of whose requests none was counted. */
async function onSite(test: (site: Site) => Promise<void>): Promise<void> {
  site.server.requests.length = 0;
  await test(site);
}

const BUILT_IN = {
  session: { orchestrator: "loop-basic", context: "context-simple" },
  providers: ["provider-mock"],
};

Deno.test("over HTTP: callers' modules run from modules.inline, and their errors name file and line", () =>
  onSite(async ({ server, program, post }) => {
    const ran = await post(planOfFive(server.url));
    assertEquals([ran.status, ran.body.output_text], [200, "3 km are 3000 m."]);

    const failing = await post(planOfFive(server.url, { input: { value: 1, from: "parsec", to: "m" } }));
    const { body } = await program.get(`${failing.body.events_url}?limit=1000`);
    const [{ error }] = eventsOf(body.data, "tool:error");
    const thrown = await Deno.readTextFile(
      new URL("../fixtures/modules/tool-units/lib/convert.ts", import.meta.url),
    );
    const lines = thrown.split("\n");
    const line = lines.findIndex((text) => text.includes("throw new RangeError")) + 1;
    assertEquals(error, {
      type: "RangeError",
      msg: 'Cannot convert lengths: there is no unit "parsec"',
      at: `${server.url}modules/tool-units/lib/convert.ts:${line}:${lines[line - 1]!.indexOf("new") + 1}`,
    });
  }));

Deno.test("the server's log has the file and line where a hook threw", () =>
  onSite(async ({ server, program, post }) => {
    server.files["wrong/hook.ts"] = `
type Handler = () => never;
const handler: Handler = () => {
  throw new Error("no such counter");
};
export async function mount(coordinator: { hooks: { register(event: string, handler: Handler): void } }): Promise<void> {
  coordinator.hooks.register("execution:start", handler);
}`;
    const hooks = [{ module: "hooks-x", source: `${server.url}wrong/hook.ts` }];
    const { status, body } = await post({ ...BUILT_IN, hooks });
    assertEquals([status, body.status], [200, "completed"]);
    const lines = (await program.stderr.until((text) => text.includes("no such counter"))).split("\n");
    const { message, at } = JSON.parse(lines.find((line) => line.includes("no such counter"))!);
    assertStringIncludes(message, "no such counter");
    assertEquals(at, `${server.url}wrong/hook.ts:4:9`);
  }));

Deno.test("over HTTP: what a caller may not load is refused before a packet is sent", () =>
  onSite(async ({ server, post }) => {
    const tool = (source: string) => ({ ...BUILT_IN, tools: [{ module: "tool-x", source }] });
    const cases: [string, number, string][] = [
      [`${server.url}elsewhere/mod.ts`, 403, "module_source_denied"],
      [`${server.url}modules/..%2felsewhere/mod.ts`, 403, "module_source_denied"],
      [`http://localhost:${server.port}/modules/tool-units/mod.ts`, 403, "module_source_denied"],
      [`http://2130706433:${server.port}/elsewhere/mod.ts`, 403, "module_source_denied"],
      ["file:///etc/passwd", 403, "module_source_denied"],
      ["data:text/javascript,export const mount = 1", 403, "module_source_denied"],
      ["zip+https://example.com/a.zip", 400, "plan_invalid"],
    ];
    for (const [source, status, code] of cases) {
      const answer = await post(tool(source));
      assertEquals([source, answer.status, answer.body.error?.code], [source, status, code]);
    }
    const weaker = { module: "tool-x", source: `${server.url}guests/mod.ts`, isolation: "inline" };
    const refused = await post({ ...BUILT_IN, tools: [weaker] });
    assertEquals([refused.status, refused.body.error?.code], [403, "policy_refused"]);
    assertEquals(server.requests, []);
  }));

Deno.test("over HTTP: a module that cannot be had is a problem with its code, and leaves no run", () =>
  onSite(async ({ server, program, post }) => {
    const runs = async () => (await program.get("/v1/runs?limit=1000")).body.data.length;
    const before = await runs();
    Object.assign(server.files, {
      "wrong/syntax.ts": "export const a = 1;\nexport const = 2;",
      "wrong/gone.ts": `import "./nowhere.ts";\nexport const mount = 1;`,
      "wrong/bare.ts": `import lodash from "lodash";\nexport const mount = lodash;`,
      "wrong/no_mount.ts": "export const tool = 1;",
      "wrong/throws.ts": `throw new Error("at once");\nexport const mount = 1;`,
    });
    const wrong = (path: string, more = {}) => ({
      module: "tool-x",
      source: `${server.url}wrong/${path}`,
      ...more,
    });
    const cases: [Json, Record<string, unknown>, number, string, string][] = [
      [wrong("syntax.ts"), {}, 422, "module_invalid", "wrong/syntax.ts:2:14"],
      [wrong("gone.ts"), {}, 502, "module_fetch_failed", "wrong/gone.ts:1:8"],
      [wrong("nothing.ts"), {}, 502, "module_fetch_failed", "wrong/nothing.ts"],
      [wrong("bare.ts"), {}, 422, "module_invalid", "wrong/bare.ts:1:20"],
      [wrong("no_mount.ts"), {}, 422, "module_invalid", "it must export mount"],
      [
        wrong("throws.ts", { integrity: `sha256-${"A".repeat(43)}=` }),
        {},
        409,
        "module_integrity_mismatch",
        "wrong/throws.ts",
      ],
      [wrong("throws.ts"), { lock: { version: 2 } }, 422, "lock_invalid", "version"],
    ];
    for (const [tool, more, status, code, text] of cases) {
      const { status: given, body } = await post({ ...BUILT_IN, tools: [tool] }, more);
      assertEquals([tool.source, given, body.error?.code], [tool.source, status, code]);
      assertStringIncludes(JSON.stringify(body), text);
    }
    const loop = { ...BUILT_IN, session: { orchestrator: wrong("throws.ts"), context: "context-simple" } };
    const unmounted = await post(loop);
    assertEquals([unmounted.status, unmounted.body.error.code], [422, "module_load_failed"]);
    assertStringIncludes(unmounted.body.detail, `${server.url}wrong/throws.ts:1:7`);
    assertEquals(await runs(), before);

    const skipped = await post({ ...BUILT_IN, tools: [wrong("throws.ts")] });
    assertEquals([skipped.status, skipped.body.status], [200, "completed"]);
    const [warning] = skipped.body.warnings;
    assertStringIncludes(warning.message, "at once");
  }));

Deno.test("over HTTP: a graph of TypeScript, JSON, text and bytes", () =>
  onSite(async ({ server, post }) => {
    Object.assign(server.files, {
      "modules/kinds/mod.ts": `
        import data from "./data.json" with { type: "json" };
        import text from "./text.txt" with { type: "text" };
        import bytes from "./raw.bin" with { type: "bytes" };
        import { tag } from "./tag.tsx";
        export const mount = () => ({ name: "kinds", description: [data.a, text, [...bytes].join(), tag].join("|"), execute: () => "x" });`,
      "modules/kinds/data.json": `{"a": 1}`,
      "modules/kinds/text.txt": "text",
      "modules/kinds/raw.bin": Uint8Array.of(0, 255),
      "modules/kinds/tag.tsx":
        `/** @jsx h */\nconst h = (name: string) => name;\nexport const tag: string = <b />;`,
    });
    const plan = {
      ...BUILT_IN,
      hooks: [],
      tools: [{ module: "tool-kinds", source: `${server.url}modules/kinds/mod.ts` }],
    };
    const ran = await post(plan);
    assertEquals([ran.status, ran.body.isolation["tool-kinds"]], [200, "inline"]);
  }));

Deno.test("over HTTP: a lock in the request applies, and the run has its hash", () =>
  onSite(async ({ server, program, post }) => {
    const five = planOfFive(server.url);
    const first = await post(five);
    assertEquals(first.body.lock_hash, null);
    const { body } = await program.get(`${first.body.events_url}?limit=1000`);
    const lock = await lockOf(server, eventsOf(body.data, "module:mounted"));
    const locked = await post(five, { lock });
    assertEquals([locked.status, locked.body.output_text], [200, "3 km are 3000 m."]);
    assertMatch(locked.body.lock_hash, /^sha256-/);
    const path = `${server.url}modules/tool-units/mod.ts`;
    lock.modules[path].integrity = `sha256-${"A".repeat(43)}=`;
    const refused = await post(five, { lock });
    assertEquals([refused.status, refused.body.error.code], [409, "module_integrity_mismatch"]);
    assertStringIncludes(refused.body.detail, path);
    const again = await post(undefined, { session_id: locked.body.session_id });
    assertEquals([again.status, again.body.lock_hash], [200, locked.body.lock_hash]); // a session keeps its plan's lock
    delete lock.modules[path];
    const partial = await post(five, { lock });
    assertEquals(partial.body.warnings.map(({ code }: Json) => code), ["module_not_locked"]);
  }));

Deno.test("Amplifier's example modules run when they come from URLs", () =>
  onSite(async ({ server, post }) => {
    const by = (module: string, path: string, config = {}) => ({ module, source: server.url + path, config });
    const examples = await post({
      session: {
        orchestrator: by("loop-simple", "amplifier/simple_orchestrator.ts"),
        context: by("context-example", "amplifier/simple_context.ts"),
      },
      providers: [
        by("provider-example", "amplifier/mock_provider.ts", {
          api_key: "k",
          response: "Hello from the example.",
        }),
      ],
      tools: [
        by("tool-example", "amplifier/calculator_tool.ts"),
        by("tool-quick-start", "amplifier/quick_start_tool.ts"),
        by("tool-complete", "amplifier/complete_tool.ts"),
      ],
      hooks: [by("hooks-example", "amplifier/timing_hook.ts")],
    });
    assertEquals([examples.status, examples.body.status, examples.body.output_text], [
      200,
      "completed",
      "Hello from the example.",
    ]);
    assertEquals(examples.body.warnings, []);
    assertEquals(Object.keys(examples.body.isolation).length, 7);
    const others = await post({
      ...BUILT_IN,
      tools: [
        by("tool-schema-method", "amplifier/schema_method_tool.ts"),
        by("tool-complete", "amplifier/placeholder_tool.ts"),
      ],
    });
    assertEquals([others.status, others.body.status, Object.keys(others.body.isolation).length], [
      200,
      "completed",
      5,
    ]);
  }));
