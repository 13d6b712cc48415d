/** What callers may do and see, and what is kept. */
import { type Effects, stopReason } from "./effect.ts";
import { planOf, type SettingServer } from "./kit.ts";

/** Effects of these settings. */
export const ACCESS: Effects = {
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
  "listen.base_path": {
    value: "/agents/",
    seen: "/agents/v1/runs",
    usual: "/v1/runs",
    look: async (server) => (await server.run(planOf(["done"]))).events_url.replace(/\/run_.*/, ""),
  },
  "metrics.open": {
    value: true,
    seen: 200,
    usual: 401,
    look: async (server) => (await server.send("GET /metrics", undefined, { authorization: "" })).status,
  },
  "page": {
    value: false,
    seen: [200, false],
    usual: [200, true],
    async look(server) {
      const response = await server.send("GET /", undefined, { authorization: "", accept: "text/html" });
      return [response.status, (await response.text()).includes('src="page/')];
    },
  },
  "store_limits.max_entries": {
    value: 5,
    seen: "log_expired",
    usual: "log",
    look: logOfFirst,
  },
  "store_limits.max_bytes": { value: 30_000, seen: "log_expired", usual: "log", look: logOfFirst },
  "store_limits.max_records": {
    value: 1,
    seen: "not_found",
    usual: "log",
    look: logOfFirst,
  },
  "retention.days": {
    value: 1,
    seen: "not_found",
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
};

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
