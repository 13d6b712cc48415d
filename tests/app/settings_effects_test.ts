/**
 * What every setting does, seen over the API: each is set to a small value, for the server, and in the policy of a key where it
 * may be there. The rows are compared with the table of settings: a setting without a row fails, and so a setting without effect
 * cannot be added.
 */
import { allSettings } from "../../src/policy/policy_settings.ts";
import { OVERLAY_SECTIONS } from "../../src/policy/policy_schema.ts";
import type { JsonObject } from "../../src/sdk/types.ts";
import { assertEquals } from "../assert.ts";
import { waitFor } from "preamp/testing";
import { cli } from "../../src/cli/mod.ts";
import { fakeIo } from "../support/io.ts";
import { until } from "../support/clock.ts";
import { someOf } from "../support/cases.ts";
import { runProgram, startProgram, startServer } from "../e2e/program.ts";
import { serveFiles } from "../support/loader.ts";
import { receiveSpans } from "../support/otlp_receiver.ts";
import {
  calling,
  dataUrl,
  type Json,
  planOf,
  sandboxed,
  serverWith,
  type SettingServer,
  toolModule,
  type Where,
} from "./settings_kit.ts";

/** The effect of one setting. */
interface Effect {
  /** The value. */
  value: unknown;
  /** Further settings of the server. */
  beside?: JsonObject;
  /** The effect with this value. */
  seen: unknown;
  /** The effect with the default; absent where the test would take too long. */
  usual?: unknown;
  look(server: SettingServer): Promise<unknown>;
  /** Folder of named plans. */
  plans?: URL;
}

/** Tests a setting that only has an effect on the program itself. */
interface ProgramEffect {
  look_at_program(): Promise<void>;
}

const TOOL = { tool_calls: [{ name: "large", arguments: {} }] };
const TWO_CALLS = { tool_calls: [...TOOL.tool_calls, ...TOOL.tool_calls] };
const DATA_TOOL = { module: "tool-t", source: dataUrl(toolModule("t", "return 'ok';")) };
const FROM_DATA = { modules: { allow: ["data:"] } };
const ASKING = calling("large", {}, {
  hooks: [{ module: "hooks-approval", config: { rules: [{ tool: "large", action: "ask" }] } }],
});
const SLOW = planOf([{ text: "late", delay_ms: 3_000 }]);

const stopReason = async (server: SettingServer, plan: unknown) => {
  const run = await server.run(plan);
  return typeof run === "string" ? run : run.stop_reason;
};

/** Resolves to the tool result that the model received. */
const toolResult = async (server: SettingServer, plan: unknown): Promise<string> => {
  const run = await server.run(plan);
  const { data } = await server.ask(`GET /v1/sessions/${run.session_id}/messages`);
  const result = data.find(({ role }: { role: string }) => role === "tool");
  return typeof result?.content === "string" ? result.content : JSON.stringify(result?.content);
};

/** Starts two slow runs, resolves to the result of the second, and ends both. */
const secondRun = async (server: SettingServer) => {
  const first = await server.run(SLOW, { background: true });
  const second = await server.run(SLOW, { background: true });
  for (const { id } of [first, second]) {
    if (id) await server.send(`POST /v1/runs/${id}/cancel`, { mode: "immediate" });
  }
  return second.id ? "started" : second;
};

/** Resolves to whether a plan can be explained: its modules are fetched, none is executed. */
const explained = async (server: SettingServer, source: string) => {
  const plan = planOf(["done"], { tools: [{ module: "tool-t", source }] });
  const found = await server.ask("POST /v1/plans/explain", { plan });
  return typeof found === "string" ? found : "explained";
};

const FILES = serveFiles({
  "esm/tool@1": toolModule("t", "return 1;"),
  "tool.ts": `import "./more.ts"; ${toolModule("t", "return 1;")}`,
  "more.ts": `export const more = ${JSON.stringify("x".repeat(2_000))};`,
  "moved.ts": (request) => Response.redirect(new URL("/tool.ts", request.url)),
  "silent.ts": () => new Promise<Response>((resolve) => setTimeout(() => resolve(new Response("1")), 1_000)),
});
const FETCHED = {
  modules: { allow: [FILES.url], private_hosts: [`127.0.0.1:${FILES.port}`] },
};
const fetching = (path: string, value: unknown, seen: string, usual = "explained"): Effect => ({
  value,
  beside: FETCHED,
  seen,
  usual,
  look: (server) => explained(server, FILES.url + path),
});

const OWN_PLANS = new URL(`file://${await Deno.makeTempDir()}/`);
const own = planOf(["done"], { tools: [DATA_TOOL] });
await Deno.writeTextFile(new URL("own.yaml", OWN_PLANS), JSON.stringify(own));

const EFFECTS: Record<string, Effect | ProgramEffect> = {
  plans: {
    async look_at_program() {
      await using server = await startServer(["--plans", OWN_PLANS.pathname]);
      assertEquals((await server.get("/v1/plans")).body.data.map(({ name }: JsonObject) => name), ["own"]);
    },
  },
  model: {
    async look_at_program() {
      await using server = await startServer(["--model", "mock/x"], { env: { PREAMP_MODEL: "mocc/y" } });
      assertEquals((await server.post("/v1/runs", { prompt: "hi" })).status, 200);
      await using other = await startServer([], { env: { PREAMP_MODEL: "mocc/y" } });
      assertEquals((await other.post("/v1/runs", { prompt: "hi" })).body.error.code, "request_invalid");
    },
  },
  store: {
    async look_at_program() {
      const flags = ["--store", `sqlite:${await Deno.makeTempDir()}/runs.db`];
      let id = "";
      {
        await using server = await startServer(flags);
        id = (await server.post("/v1/runs", { prompt: "hi", plan: planOf(["done"]) })).body.id;
      }
      await using server = await startServer(flags);
      assertEquals((await server.get(`/v1/runs/${id}`)).body.output_text, "done");
    },
  },
  "listen.host": {
    async look_at_program() {
      await using program = await startProgram(["serve", "--port", "0", "--listen.host", "127.0.0.2"]);
      const text = await program.stdout.until((text) => text.includes("\n"));
      assertEquals(new URL(text.split("\n")[0] ?? "").hostname, "127.0.0.2");
    },
  },
  "listen.port": {
    async look_at_program() {
      using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
      const { port } = listener.addr as Deno.NetAddr;
      const { code, stderr } = await runProgram(["serve", "--listen.port", String(port)]);
      assertEquals([code, stderr.includes(`127.0.0.1:${port}: the port is already in use`)], [1, true]);
    },
  },
  "listen.behind_proxy": {
    async look_at_program() {
      const usual = await listenersOf([]);
      assertEquals([usual, await listenersOf(["--listen.behind_proxy", "true"])], [1, 0]);
    },
  },
  "listen.trusted_proxies": {
    async look_at_program() {
      const clients = [];
      for (const flags of [[], ["--listen.trusted_proxies", "127.0.0.1"]]) {
        await using server = await startServer(flags);
        await (await server.fetch("/healthz", { headers: { "x-forwarded-for": "192.0.2.1" } })).body
          ?.cancel();
        const log = await server.stderr.until((text) => text.includes('"/healthz"'));
        clients.push(/"client":"([^"]*)"/.exec(log)?.[1]);
      }
      assertEquals(clients, ["127.0.0.1", "192.0.2.1"]);
    },
  },
  "cors.origins": {
    value: ["https://app.example.com"],
    seen: "https://app.example.com",
    usual: "forbidden",
    async look(server) {
      const response = await server.send("GET /v1/runs", undefined, { origin: "https://app.example.com" });
      const { error } = await response.json();
      return response.headers.get("access-control-allow-origin") ?? error.code;
    },
  },
  "metrics.open": {
    value: true,
    seen: 200,
    usual: 401,
    look: async (server) => (await server.send("GET /metrics", undefined, { authorization: "" })).status,
  },
  "tracing.content": {
    async look_at_program() {
      for (const content of ["true", "false"]) {
        await using receiver = receiveSpans();
        const env = { ...receiver.env, PREAMP_TRACING_CONTENT: content };
        await runProgram(["run", "What is 6 x 7?"], { env });
        const agents = receiver.spans.filter(({ name }) => name === "invoke_agent");
        assertEquals(
          agents.map(({ attributes }) => "gen_ai.input.messages" in attributes),
          agents.map(() => content === "true"),
        );
        assertEquals(agents.length > 0, true);
      }
    },
  },
  "store_limits.max_entries": {
    value: 5,
    seen: "log_expired",
    usual: "log",
    look: logOfFirst,
  },
  "store_limits.max_bytes": { value: 20_000, seen: "log_expired", usual: "log", look: logOfFirst },
  "store_limits.max_records": {
    value: 1,
    seen: "not_found",
    usual: "log",
    look: logOfFirst,
  },
  "retention.log_days": {
    value: 1,
    seen: "log_expired",
    usual: "log",
    async look(server) {
      const run = await server.run(planOf(["done"]));
      server.pass(25);
      return await logOf(server, run);
    },
  },
  "retention.idempotency_hours": {
    value: 1,
    seen: "another run",
    usual: "the same run",
    async look(server) {
      const send = () =>
        server.ask("POST /v1/runs", { prompt: "go", plan: planOf(["done"]) }, { "idempotency-key": "k" });
      const first = await send();
      server.pass(2);
      return (await send()).id === first.id ? "the same run" : "another run";
    },
  },
  "rates.requests_per_minute": {
    value: 1,
    seen: "rate_limited",
    usual: [],
    async look(server) {
      await server.ask("GET /v1/runs");
      const found = await server.ask("GET /v1/runs");
      return found.data ?? found;
    },
  },
  "rates.runs_per_minute": {
    value: 1,
    seen: "rate_limited",
    usual: "end_turn",
    async look(server) {
      await server.run(planOf(["done"]));
      return await stopReason(server, planOf(["done"]));
    },
  },
  "auth.keys": {
    value: undefined, // the test kit gives every server a key
    seen: [200, 401],
    async look(server) {
      const statuses = [];
      for (const headers of [{}, { authorization: "Bearer another" }]) {
        const response = await server.send("GET /v1/runs", undefined, headers);
        await response.body?.cancel();
        statuses.push(response.status);
      }
      return statuses;
    },
  },
  "modules.allow": {
    value: ["data:"],
    seen: "explained",
    usual: "module_source_denied",
    look: (server) => explained(server, DATA_TOOL.source),
  },
  "modules.inline": {
    value: ["data:"],
    beside: FROM_DATA,
    seen: "inline",
    usual: "process",
    look: (server) => tierOf(server, { plan: planOf(["done"], { tools: [DATA_TOOL] }) }),
  },
  "modules.frozen": {
    value: true,
    beside: FROM_DATA,
    seen: "module_pin_required",
    usual: "explained",
    look: (server) => explained(server, DATA_TOOL.source),
  },
  "modules.private_hosts": {
    value: FETCHED.modules.private_hosts,
    beside: { modules: { allow: [FILES.url] } },
    seen: "explained",
    usual: "module_source_denied",
    look: (server) => explained(server, `${FILES.url}tool.ts`),
  },
  "modules.esm_host": {
    value: `${FILES.url}esm`,
    beside: FETCHED,
    seen: "explained",
    usual: "module_source_denied", // the default is not in modules.allow
    look: (server) => explained(server, "npm:tool@1"),
  },
  "env.allow": {
    value: ["SETTINGS_TEST"],
    seen: "[REDACTED]", // values of variables are redacted
    usual: "policy_refused",
    async look(server) {
      const run = await server.run(planOf(["${SETTINGS_TEST}"]));
      return run.output_text ?? run;
    },
  },
  "permissions.max": {
    value: { net: ["api.example.com"] },
    seen: "end_turn",
    usual: "policy_refused",
    look: (server) =>
      stopReason(
        server,
        planOf(["done"], { tools: [{ module: "tool-shown", permissions: { net: ["api.example.com"] } }] }),
      ),
  },
  "isolation.urls_from_callers": {
    value: "process", // the only value yet
    beside: FROM_DATA,
    seen: "process",
    look: (server) => tierOf(server, { plan: planOf(["done"], { tools: [DATA_TOOL] }) }),
  },
  "isolation.urls_from_operator": {
    value: "worker",
    seen: "worker",
    usual: "process",
    plans: OWN_PLANS,
    look: (server) => tierOf(server, { plan_ref: "own" }),
  },
  "isolation.memory_mb": {
    value: 64,
    beside: FROM_DATA,
    seen: "tool_memory_exceeded",
    usual: "ok",
    look: (server) =>
      toolOutcome(
        server,
        sandboxed(
          "const kept = []; for (let i = 0; i < 100; i++) kept.push(new Uint8Array(2 ** 20).fill(i)); return 'ok';",
        ),
      ),
  },
  "isolation.cpu_s": {
    value: 1,
    beside: FROM_DATA,
    seen: "tool_timeout",
    look: (server) => toolOutcome(server, sandboxed("for (;;);")),
  },
  "isolation.load_timeout_s": {
    value: 1,
    beside: FROM_DATA,
    seen: true,
    async look(server) {
      const silent = toolModule("t", "", "await new Promise(() => {});");
      const run = await server.run(
        planOf(["done"], { tools: [{ module: "tool-t", source: dataUrl(silent) }] }),
      );
      return run.warnings[0]?.message.endsWith("its top level was not done within 1 s");
    },
  },
  "isolation.max_guests": {
    value: 1,
    beside: FROM_DATA,
    seen: "overloaded",
    look: (server) => stopReason(server, TWO_GUESTS),
  },
  "isolation.max_guests_per_session": {
    value: 1,
    beside: FROM_DATA,
    seen: "overloaded",
    usual: "end_turn",
    look: (server) => stopReason(server, TWO_GUESTS),
  },
  "limits.max_iterations": {
    value: 1,
    seen: "limit:max_iterations",
    usual: "end_turn",
    look: (server) => stopReason(server, calling("large")),
  },
  "limits.max_tool_calls": {
    value: 0,
    seen: "limit:max_tool_calls",
    usual: "end_turn",
    look: (server) => stopReason(server, calling("large")),
  },
  "limits.max_total_tokens": {
    value: 300,
    seen: "limit:max_total_tokens",
    usual: "end_turn",
    look: (server) => stopReason(server, calling("large")),
  },
  "limits.max_cost_usd": {
    value: "0.000001",
    seen: "limit:max_cost_usd",
    usual: "end_turn",
    look: (server) =>
      stopReason(
        server,
        planOf([TOOL, "done"], { tools: ["tool-shown"] }, { prices: { input: "3", output: "15" } }),
      ),
  },
  "limits.max_duration_s": {
    value: 0.1,
    seen: "limit:max_duration_s",
    look: (server) => stopReason(server, SLOW),
  },
  "limits.max_answer_tool_calls": {
    value: 1,
    seen: "max_answer_tool_calls",
    usual: "end_turn",
    look: (server) => boundPassed(server, planOf([TWO_CALLS, "done"], { tools: ["tool-shown"] })),
  },
  "limits.max_answer_blocks": {
    value: 1,
    seen: "max_answer_blocks",
    usual: "end_turn",
    look: (server) => boundPassed(server, planOf([{ thinking: "hm", text: "done" }])),
  },
  "limits.max_hooks": {
    value: 1,
    seen: "max_hooks",
    usual: "end_turn",
    look: (server) => boundPassed(server, planOf(["done"], { hooks: ["hooks-two"] })),
  },
  "limits.max_concurrent_runs": { value: 1, seen: "too_many_runs", usual: "started", look: secondRun },
  "limits.max_runs_per_key": { value: 1, seen: "too_many_runs", usual: "started", look: secondRun },
  "limits.max_body_bytes": {
    value: 50,
    seen: "body_too_large",
    usual: "end_turn",
    look: (server) => stopReason(server, planOf(["done"])),
  },
  "limits.max_plan_bytes": {
    value: 50,
    seen: "plan_limit_exceeded",
    usual: "end_turn",
    look: (server) => stopReason(server, planOf(["done"])),
  },
  "limits.max_plan_nodes": {
    value: 3,
    seen: "plan_limit_exceeded",
    usual: "end_turn",
    look: (server) => stopReason(server, planOf(["done"])),
  },
  "limits.max_plan_depth": {
    value: 1,
    seen: "plan_limit_exceeded",
    usual: "end_turn",
    look: (server) => stopReason(server, planOf(["done"])),
  },
  "limits.max_plan_aliases": {
    value: 0,
    seen: "plan_limit_exceeded",
    usual: "end_turn",
    look: (server) =>
      stopReason(
        server,
        "session: {orchestrator: &loop loop-streaming, context: context-simple}\ndescription: *loop\nproviders: [provider-mock]",
      ),
  },
  "limits.max_module_bytes": fetching("tool.ts", 100, "module_too_large"),
  "limits.max_graph_bytes": fetching("tool.ts", 1_000, "module_too_large"),
  "limits.max_graph_files": fetching("tool.ts", 1, "module_too_large"),
  "limits.max_redirects": fetching("moved.ts", 0, "module_fetch_failed"),
  "limits.fetch_timeout_s": fetching("silent.ts", 0.1, "module_fetch_timeout", "module_invalid"),
  "limits.tool_timeout_s": {
    value: 0.1,
    seen: "tool_timeout",
    look: (server) => toolOutcome(server, calling("slow")),
  },
  "limits.hook_timeout_s": {
    value: 0.1,
    seen:
      'Denied by hook: Hook "handler-1" failed: Cannot wait for hook "handler-1" on tool:pre: no answer within 100 ms',
    look: (server) =>
      toolResult(server, calling("large", {}, { tools: ["tool-shown"], hooks: ["hooks-silent"] })),
  },
  "limits.approval_timeout": {
    value: 0.1,
    seen: ["timeout"],
    usual: [],
    async look(server) {
      const run = await server.run(ASKING);
      const denied = () => server.entries(run, "approval:denied");
      const [{ expires_at }] = await server.entries(run, "approval:required") as [Json];
      const soon = Date.parse(expires_at) < Date.now() + 10_000; // by default it is 300 s
      if (soon) await waitFor(async () => (await denied()).length > 0, { timeout_ms: 30_000 });
      return (await denied()).map(({ decision }) => decision);
    },
  },
  "limits.cleanup_timeout_s": {
    value: 0.1,
    seen: true,
    async look(server) {
      const run = await server.run(planOf(["done"], { hooks: ["hooks-lingering"] }));
      const [cleanup] = await server.entries(run, "session:cleanup");
      return cleanup.failed.length > 0;
    },
  },
  "limits.max_tool_output_bytes": {
    value: 1_000,
    beside: FROM_DATA,
    seen: "tool_output_exceeded",
    usual: "ok",
    look: (server) => toolOutcome(server, sandboxed("return 'x'.repeat(5_000);")),
  },
  "limits.max_tool_result_bytes": {
    value: 500,
    seen: true,
    usual: false,
    look: async (server) => (await toolResult(server, calling("large"))).length < 1_000,
  },
  "limits.max_log_entries": {
    value: 5,
    seen: "limit:max_log_entries",
    usual: "end_turn",
    look: (server) => stopReason(server, calling("large")),
  },
  "limits.max_log_bytes": {
    value: 1_000,
    seen: "limit:max_log_bytes",
    usual: "end_turn",
    look: (server) => stopReason(server, calling("large")),
  },
  "limits.max_session_state_bytes": {
    value: 1_000,
    seen: true,
    usual: false,
    look: async (server) => (await toolResult(server, calling("keep"))).includes("at most 1000 bytes"),
  },
  "limits.max_depth": {
    value: 0,
    seen: 0,
    usual: 1,
    look: spawned,
  },
  "limits.max_sessions": { value: 1, seen: 0, usual: 1, look: spawned },
  "limits.page_limit": {
    value: 1,
    seen: 1,
    usual: 2,
    async look(server) {
      await server.run(planOf(["done"]));
      await server.run(planOf(["done"]));
      return (await server.ask("GET /v1/runs")).data.length;
    },
  },
  "limits.max_page_limit": {
    value: 1,
    seen: ["request_invalid", "request_invalid", "request_invalid", "request_invalid"],
    usual: [1, 1, 1, 2],
    async look(server) {
      const run = await server.run(planOf(["done"]));
      const lists = ["/v1/runs", "/v1/sessions", `/v1/sessions/${run.session_id}/runs`];
      const found = [];
      for (const list of [...lists, `/v1/sessions/${run.session_id}/messages`]) {
        const page = await server.ask(`GET ${list}?limit=2`);
        found.push(page.data?.length ?? page);
      }
      return found;
    },
  },
};

const TWO_GUESTS = planOf(["done"], {
  tools: [DATA_TOOL, { module: "tool-u", source: dataUrl(toolModule("u", "return 1;")) }],
});

/** Resolves to the limit that the error or a warning of a run names, else to how it ended. */
async function boundPassed(server: SettingServer, plan: unknown): Promise<unknown> {
  const run = await server.run(plan);
  const said = JSON.stringify([run.error, run.warnings, run]);
  return /limits\.(max_\w+)/.exec(said)?.[1] ?? run.stop_reason;
}

/** Runs a plan twice; resolves to what remains of the first run's log. */
async function logOfFirst(server: SettingServer): Promise<unknown> {
  const first = await server.run(planOf(["done"]));
  for (let more = 0; more < 3; more++) await server.run(planOf(["done"]));
  return await logOf(server, first);
}

async function logOf(server: SettingServer, run: { id: string }): Promise<unknown> {
  const found = await server.ask(`GET /v1/runs/${run.id}/events`);
  return found.data ? "log" : found;
}

/** Resolves to the type of the error that a tool ended with, else `ok`. */
async function toolOutcome(server: SettingServer, plan: unknown): Promise<unknown> {
  const run = await server.run(plan);
  const [failed] = await server.entries(run, "tool:error");
  const [done] = await server.entries(run, "tool:post");
  return failed?.error?.type ?? done?.result?.error?.type ?? (done ? "ok" : run);
}

async function tierOf(server: SettingServer, plan: JsonObject): Promise<unknown> {
  const found = await server.ask("POST /v1/plans/explain", plan);
  return found.modules?.find(({ module }: { module: string }) => module === "tool-t")?.isolation ?? found;
}

/** Resolves to how many sub-agents a run had. */
async function spawned(server: SettingServer): Promise<number> {
  const run = await server.run(
    planOf([{ tool_calls: [{ name: "task", arguments: { instruction: "x", agent: "a" } }] }, "done"], {
      tools: ["tool-task"],
      agents: {
        a: { description: "Helps.", providers: [{ module: "provider-mock", config: { response: "ok" } }] },
      },
    }),
  );
  return (await server.entries(run, "task:agent_spawned")).length;
}

/** Serves for a moment; resolves to how many listeners were opened beside the HTTP server's. */
async function listenersOf(flags: readonly string[]): Promise<number> {
  const { listen } = Deno;
  let count = 0;
  Object.assign(Deno, {
    listen(options: Deno.TcpListenOptions) {
      count++;
      return listen(options);
    },
  });
  const io = fakeIo();
  try {
    const done = cli(["serve", "--port", "0", ...flags], io);
    await until(() => io.stdout.includes("http://"));
    io.stop();
    await done;
  } finally {
    Object.assign(Deno, { listen });
  }
  return count;
}

Deno.test("every setting has a row that shows its effect", () => {
  assertEquals(Object.keys(EFFECTS).sort(), allSettings().map(({ path }) => path).sort());
});

const tests: [name: string, run: () => Promise<void>][] = [];
for (const { path, for_keys } of allSettings()) {
  const effect = EFFECTS[path];
  if (effect === undefined) continue; // reported above
  if ("look_at_program" in effect) {
    tests.push([`${path} has an effect`, effect.look_at_program]);
    continue;
  }
  const { value, beside = {}, seen, usual, look, plans = null } = effect;
  const per_key = for_keys === undefined &&
    OVERLAY_SECTIONS.some((section) => path.startsWith(`${section}.`));
  for (const where of per_key ? ["server", "key"] as const : ["server"] as const satisfies readonly Where[]) {
    tests.push([`${path} has an effect${where === "key" ? " in the policy of a key" : ""}`, async () => {
      await using server = serverWith(path, value, where, { beside, plans });
      assertEquals(await look(server), seen);
    }]);
  }
  if (usual === undefined) continue;
  tests.push([`${path} has another effect by default`, async () => {
    await using server = serverWith(path, undefined, "server", { beside, plans });
    assertEquals(await look(server), usual);
  }]);
}
for (const [name, run] of someOf(tests, 50)) Deno.test(name, run);

Deno.test("everything that these tests started has ended", async () => {
  await FILES[Symbol.asyncDispose]();
  await Deno.remove(OWN_PLANS, { recursive: true });
});
