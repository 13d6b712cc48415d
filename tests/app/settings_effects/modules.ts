/** Where modules come from and what a sandbox may use; most start a bundler or a sandbox. */
import type { JsonObject } from "../../../src/sdk/types.ts";
import { serveFiles } from "../../support/loader.ts";
import { type Effect, type Effects, stopReason, toolOutcome } from "./effect.ts";
import { dataUrl, planOf, sandboxed, type SettingServer, toolModule } from "./kit.ts";

const DATA_TOOL = { module: "tool-t", source: dataUrl(toolModule("t", "return 'ok';")) };
const FROM_DATA = { modules: { allow: ["data:"] } };

/** Resolves to whether a plan can be explained: its modules are fetched, none is executed. */
const explained = async (server: SettingServer, source: string) => {
  const plan = planOf(["done"], { tools: [{ module: "tool-t", source }] });
  const found = await server.ask("POST /v1/plans/explain", { plan });
  return typeof found === "string" ? found : "explained";
};

/** Server of module files. */
export const FILES = serveFiles({
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

/** Effects of these settings. */
export const MODULES: Effects = {
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
  "mcp.servers": {
    value: { mail: { url: "http://127.0.0.1:1/mcp" } },
    seen: "Cannot connect to server",
    usual: "lists no servers",
    async look(server) {
      const run = await server.run(
        planOf(["done"], { tools: [{ module: "tool-mcp", config: { listed: ["mail"] } }] }),
      );
      return /Cannot connect to server|lists no servers/.exec(run.warnings[0]?.message ?? "")?.[0];
    },
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
    seen: "policy_refused",
    usual: "end_turn",
    look: (server) => stopReason(server, TWO_GUESTS),
  },
  "limits.max_module_bytes": fetching("tool.ts", 100, "module_too_large"),
  "limits.max_graph_bytes": fetching("tool.ts", 1_000, "module_too_large"),
  "limits.max_graph_files": fetching("tool.ts", 1, "module_too_large"),
  "limits.max_redirects": fetching("moved.ts", 0, "module_fetch_failed"),
  "limits.fetch_timeout_s": fetching("silent.ts", 0.1, "module_fetch_timeout", "module_invalid"),
  "limits.max_tool_output_bytes": {
    value: 1_000,
    beside: FROM_DATA,
    seen: "tool_output_exceeded",
    usual: "ok",
    look: (server) => toolOutcome(server, sandboxed("return 'x'.repeat(5_000);")),
  },
};

const TWO_GUESTS = planOf(["done"], {
  tools: [DATA_TOOL, { module: "tool-u", source: dataUrl(toolModule("u", "return 1;")) }],
});

async function tierOf(server: SettingServer, plan: JsonObject): Promise<unknown> {
  const found = await server.ask("POST /v1/plans/explain", plan);
  return found.modules?.find(({ module }: { module: string }) => module === "tool-t")?.isolation ?? found;
}
