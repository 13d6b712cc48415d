/**
 * A server with one setting of `preamp.yaml`, for all callers or for one key, and modules that show its
 * effect.
 */
import type { InProcessModule } from "../../../src/app/module_table.ts";
import { hashKey } from "../../../src/policy/api_keys.ts";
import { policyFromData } from "../../../src/policy/parse_policy.ts";
import { type SystemClock, systemClock } from "../../../src/process/system_clock.ts";
import type { Coordinator, JsonObject, ToolCallContext } from "../../../src/sdk/types.ts";
import { createPreamp } from "../../../src/server/mod.ts";
import { mergePlans } from "../../../src/plan/merge.ts";

/** Section of a setting: the server's or a key's. */
export type Where = "server" | "key";

/** JSON whose shape the test asserts. */
// deno-lint-ignore no-explicit-any
export type Json = any;

/** A server under test. */
export interface SettingServer extends AsyncDisposable {
  send(route: string, body?: unknown, headers?: Record<string, string>): Promise<Response>;
  /** Sends a request; resolves to the response's JSON, or for an error to its code. */
  ask(route: string, body?: unknown, headers?: Record<string, string>): Promise<Json>;
  /** Runs a plan to its end and resolves to the run, or for a problem to its code. */
  run(plan: unknown, more?: JsonObject): Promise<Json>;
  /** Resolves to the data of the entries of one event of a run. */
  entries(run: Json, event: string): Promise<Json[]>;
  /** Advances the clock. */
  pass(hours: number): void;
}

const KEY = "pk_of_the_settings_test";

/**
 * Keeps the bundles of all servers, so that a module is not bundled by each of them. Removed at the end of
 * the test file.
 */
const HOME = new URL(`file://${await Deno.makeTempDir()}/`);
Deno.test.afterAll(() => Deno.remove(HOME, { recursive: true }));

/** Starts a server with a setting, given by its dotted name, beside others. */
export function serverWith(
  path: string,
  value: unknown,
  where: Where,
  { beside = {}, plans = null }: { beside?: JsonObject; plans?: URL | null } = {},
): SettingServer {
  const [section = "", name = ""] = path.split(".");
  const written: JsonObject = name === "" ? { [section]: value } : { [section]: { [name]: value } };
  const auth = {
    keys: [{ name: "ci", sha256: hashKey(KEY), ...(where === "key" ? { policy: "own" } : {}) }],
  };
  const setting = value === undefined ? {} : where === "key" ? { policies: { own: written } } : written;
  const unused = where === "key" && value === undefined ? { policies: { own: {} } } : {};
  const data = [beside, unused, setting].reduce<JsonObject>((all, one) => mergePlans(all, one), { auth });
  let passed_ms = 0;
  const clock = shifted(systemClock(), () => passed_ms);
  const preamp = createPreamp({
    policy: policyFromData(data),
    modules: MODULES,
    home: HOME,
    plans,
    clock,
    env: (variable) => variable === "SETTINGS_TEST" ? "expanded" : undefined,
  });
  const send: SettingServer["send"] = (route, body, headers = {}) => {
    const [method = "", target = ""] = route.split(" ");
    return preamp.fetch(
      new Request(`http://localhost${target}`, {
        method,
        headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json", ...headers },
        ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
      }),
    );
  };
  const ask: SettingServer["ask"] = async (route, body, headers) => {
    const answer = await (await send(route, body, headers)).json();
    return answer.error?.code !== undefined && answer.object !== "run" ? answer.error.code : answer;
  };
  return {
    send,
    ask,
    run: (plan, more = {}) => ask("POST /v1/runs", { prompt: "go", plan, ...more }),
    entries: async (run, event) =>
      (await ask(`GET /v1/runs/${run.id}/events`)).data.filter((entry: Json) => entry.event === event)
        .map((entry: Json) => entry.data),
    pass: (hours) => void (passed_ms += hours * 3_600_000),
    [Symbol.asyncDispose]: preamp.close,
  };
}

function shifted(clock: SystemClock, passed_ms: () => number): SystemClock {
  return {
    ...clock,
    now: () => clock.now() + passed_ms(),
  };
}

/** Returns a plan whose model calls one tool, then answers "done". */
export function calling(tool: string, input: JsonObject = {}, more: JsonObject = {}): JsonObject {
  return planOf([{ tool_calls: [{ name: tool, arguments: input }] }, "done"], {
    tools: ["tool-shown"],
    ...more,
  });
}

/** Returns a plan whose model follows the script. */
export function planOf(
  responses: readonly unknown[],
  more: JsonObject = {},
  config: JsonObject = {},
): JsonObject {
  return {
    session: { orchestrator: "loop-streaming", context: "context-simple" },
    providers: [{ module: "provider-mock", config: { responses, ...config } }],
    ...more,
  };
}

/** Returns the `data:` URL of a module's code. */
export function dataUrl(code: string): string {
  return `data:text/javascript;base64,${new TextEncoder().encode(code).toBase64()}`;
}

/** Returns a plan with one sandboxed tool that runs this body. */
export function sandboxed(body: string, more: JsonObject = {}): JsonObject {
  return calling("t", {}, { tools: [{ module: "tool-t", source: dataUrl(toolModule("t", body)) }], ...more });
}

/** Returns the code of a module with one tool. */
export function toolModule(name: string, body: string, top = ""): string {
  return `${top}
export const mount = (coordinator) => coordinator.mount("tools", {
  name: ${JSON.stringify(name)}, description: "Shows what a setting does.",
  input_schema: { type: "object", properties: {} },
  async execute() { ${body} },
});`;
}

const MODULES: Record<string, InProcessModule> = {
  async "tool-shown"(coordinator: Coordinator) {
    const tool = (name: string, execute: (input: JsonObject, context?: ToolCallContext) => unknown) =>
      coordinator.mount("tools", {
        name,
        description: "Shows what a setting does.",
        input_schema: { type: "object", properties: {} },
        execute: (input: JsonObject, context?: ToolCallContext) =>
          Promise.resolve(execute(input, context)) as never,
      });
    await tool("large", () => "x".repeat(2_000));
    await tool("picture", () => ({
      success: true,
      content: [{ type: "image", source: { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" } }],
    }));
    await tool("slow", () => new Promise(() => {}));
    await tool("keep_file", async () => {
      const keep = coordinator.getCapability("session.keep_before") as (change: JsonObject) => unknown;
      const change = { path: "/tmp/kept/a.txt", before: "QUJD", after_sha256: null };
      return await keep(change) ?? "kept for undo";
    });
    await tool("keep", () => {
      coordinator.session_state.kept = "x".repeat(2_000);
      return "kept";
    });
  },
  "hooks-silent"(coordinator: Coordinator) {
    coordinator.hooks.register("tool:pre", () => new Promise<never>(() => {}), { timeout_ms: 0 });
  },
  "hooks-two"(coordinator: Coordinator) {
    for (const event of ["session:start", "session:end"]) coordinator.hooks.register(event, () => null);
  },
  "hooks-lingering"(coordinator: Coordinator) {
    coordinator.hooks.register("session:end", () => null);
    return () => new Promise<void>(() => {});
  },
};
