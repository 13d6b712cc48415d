/** What the limits of a run, a plan and a page do. */
import { waitFor } from "preamp/testing";
import { policyFromData } from "../../../src/policy/parse_policy.ts";
import { PreampError } from "../../../src/sdk/errors.ts";
import { assertEquals } from "../../assert.ts";
import { createPreamp } from "../../../src/server/mod.ts";
import { MemoryStore } from "../../../src/store/memory.ts";
import { CHAT } from "../../modules/provider_openai/vendors.ts";
import { configOn, fakeVendor } from "../../modules/providers/fake_vendor.ts";
import { type Effects, stopReason, toolOutcome } from "./effect.ts";
import { calling, type Json, planOf, type SettingServer } from "./kit.ts";

const TOOL = { tool_calls: [{ name: "large", arguments: {} }] };
const TWO_CALLS = { tool_calls: [...TOOL.tool_calls, ...TOOL.tool_calls] };
const ASKING = calling("large", {}, {
  hooks: [{ module: "hooks-approval", config: { rules: [{ tool: "large", action: "ask" }] } }],
});
const SLOW = planOf([{ text: "late", delay_ms: 3_000 }]);

/** Resolves to the tool result that the model received. */
const toolResult = async (server: SettingServer, plan: unknown): Promise<string> => {
  const run = await server.run(plan);
  const { data } = await server.ask(`GET /v1/sessions/${run.session_id}/messages`);
  const result = data.find(({ role }: { role: string }) => role === "tool");
  return typeof result?.content === "string" ? result.content : JSON.stringify(result?.content);
};

/** A run whose store goes away is left after `store_wait_s`. */
async function leavesRuns(): Promise<void> {
  const store = new MemoryStore();
  const commit = store.commit.bind(store);
  let commits = 0;
  store.commit = (...args) => {
    if (++commits > 1) throw new PreampError("overloaded", "Cannot use the store");
    return commit(...args);
  };
  const left = Promise.withResolvers<void>();
  const preamp = createPreamp({
    policy: policyFromData({ limits: { store_wait_s: 0.1 } }),
    store,
    authenticate: null,
    plans: null,
    runtime_log: (_level, event) => event === "run_left" && left.resolve(),
  });
  const body = JSON.stringify({ prompt: "go", plan: planOf(["done"]), background: true });
  const headers = { "content-type": "application/json" };
  await preamp.fetch(new Request("http://localhost/v1/runs", { method: "POST", headers, body }));
  await left.promise;
  await preamp.close();
}

/** An answer with more bytes than the limit is refused; as far as the limit it is read. */
async function boundsAnswers(): Promise<void> {
  await using vendor = fakeVendor(CHAT, [{ text: ["Hello"] }]);
  const providers = [{ module: "provider-openai", config: configOn(vendor.url, CHAT) }];
  const body = JSON.stringify({ prompt: "go", plan: { ...planOf([]) as Json, providers } });
  const headers = { "content-type": "application/json" };
  const codes = [];
  for (const max_answer_bytes of [10, 100_000]) {
    const policy = policyFromData({
      limits: { max_answer_bytes },
      permissions: { max: { net: [new URL(vendor.url).host] } },
    });
    const preamp = createPreamp({ policy, authenticate: null, plans: null });
    const request = new Request("http://localhost/v1/runs", { method: "POST", headers, body });
    const run = await (await preamp.fetch(request)).json();
    codes.push(/limits\.max_\w+/.exec(JSON.stringify(run.error ?? run))?.[0] ?? run.status);
    await preamp.close();
  }
  assertEquals(codes, ["limits.max_answer_bytes", "completed"]);
}

/** Starts two slow runs, resolves to the result of the second, and ends both. */
const secondRun = async (server: SettingServer) => {
  const first = await server.run(SLOW, { background: true });
  const second = await server.run(SLOW, { background: true });
  for (const { id } of [first, second]) {
    if (id) await server.send(`POST /v1/runs/${id}/cancel`, { mode: "immediate" });
  }
  return second.id ? "started" : second;
};

/** Opens two event streams of a run; resolves to the status of the second. */
const secondStream = async (server: SettingServer) => {
  const { id } = await server.run(SLOW, { background: true });
  const open = () => server.send(`GET /v1/runs/${id}/events`, undefined, { accept: "text/event-stream" });
  const streams = [await open(), await open()];
  await Promise.all(streams.map(({ body }) => body?.cancel()));
  await server.send(`POST /v1/runs/${id}/cancel`, { mode: "immediate" });
  return streams[1]!.status;
};

/** Effects of these settings. */
export const LIMITS: Effects = {
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
  "limits.max_answer_bytes": { look_at_program: boundsAnswers },
  "limits.max_hooks": {
    value: 1,
    seen: "max_hooks",
    usual: "end_turn",
    look: (server) => boundPassed(server, planOf(["done"], { hooks: ["hooks-two"] })),
  },
  "limits.max_concurrent_runs": { value: 1, seen: "too_many_runs", usual: "started", look: secondRun },
  "limits.max_runs_per_key": { value: 1, seen: "too_many_runs", usual: "started", look: secondRun },
  "limits.max_streams": { value: 1, seen: 429, usual: 200, look: secondStream },
  "limits.max_streams_per_key": { value: 1, seen: 429, usual: 200, look: secondStream },
  "limits.store_wait_s": { look_at_program: leavesRuns },
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
  "limits.tool_timeout_s": {
    value: 0.1,
    seen: "tool_timeout",
    look: (server) => toolOutcome(server, calling("slow")),
  },
  "limits.hook_timeout_s": {
    value: 0.1,
    seen: 'Denied by hook: Hook "handler-1" failed: no answer within 100 ms',
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
      if (soon) await waitFor(async () => (await denied()).length > 0);
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
  "limits.max_tool_result_bytes": {
    value: 500,
    seen: true,
    usual: false,
    look: async (server) => (await toolResult(server, calling("large"))).length < 1_000,
  },
  "limits.max_tool_image_bytes": {
    value: 4,
    seen: true,
    usual: false,
    look: async (server) => /image\/png, 12 bytes/.test(await toolResult(server, calling("picture"))),
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
  "limits.max_undo_bytes": {
    value: 1,
    beside: { permissions: { max: { write: ["/tmp/kept"] } } },
    seen: false,
    usual: true,
    async look(server) {
      const tools = [{ module: "tool-shown", permissions: { write: ["/tmp/kept"] } }];
      return (await toolResult(server, calling("keep_file", {}, { tools }))).includes("kept for undo");
    },
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

/** Resolves to the limit that the error or a warning of a run names, else to how it ended. */
async function boundPassed(server: SettingServer, plan: unknown): Promise<unknown> {
  const run = await server.run(plan);
  const said = JSON.stringify([run.error, run.warnings, run]);
  return /limits\.(max_\w+)/.exec(said)?.[1] ?? run.stop_reason;
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
