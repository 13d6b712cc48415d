/** Runs whose modules are all loaded from files replay as they were recorded, in every tier. */
import { assertEquals } from "../assert.ts";
import type { JsonObject } from "../../src/sdk/json.ts";
import { runWithFiles, TIERS } from "../support/own_modules.ts";

const MODULES = new URL("../../modules/", import.meta.url);

/** A module of this repository as a file beside the plan. */
const copy = (id: string) => `export * from ${JSON.stringify(new URL(`${id}/mod.ts`, MODULES).href)};\n`;

/** Tools that use every feature of tools, and a cleanup that fails. */
const TOOLS = `
export async function mount(coordinator) {
  const tool = (name, execute, more) =>
    coordinator.mount("tools", { name, description: "The " + name, input_schema: { type: "object" }, execute, ...more });
  await tool("throws", () => { throw Object.assign(new RangeError("too far"), { code: "E_FAR" }); });
  await tool("fails", () => ({ success: false, error: { message: "no luck", type: "Luck" } }));
  await tool("strict", () => "never", { input_schema: { type: "object", required: ["n"] } });
  await tool("talks", async (_, call) => {
    call.progress("one");
    await coordinator.hooks.emit("tool-odd:said", { token: 5, n: 1 });
    return { secret: "tulips", list: [1, null, -0] };
  });
  await tool("knows", ({ phrase }) => "it is " + phrase);
  coordinator.registerCleanup(() => { throw new Error("the door is stuck"); });
  return () => {};
}`;

/** A hook that uses every feature of hooks, and cleans up. */
const HOOK = `
export function mount(coordinator) {
  coordinator.hooks.register("tool:pre", (_, data) => data.tool_name === "talks"
    ? { action: "modify", data: { ...data, tool_input: { password: "roses" } } } : null);
  coordinator.hooks.register("provider:request", (_, data) => data.iteration === 1
    ? { action: "inject_context", context_injection: "Mind the gap.", context_injection_role: "user" } : null);
  coordinator.hooks.register("tool:post", async (_, data) => {
    coordinator.session_state.seen = [data.tool_name];
    return { action: "continue", user_message: "Seen.", user_message_level: "info" };
  });
  return () => {};
}`;

/** A hook that asks, and allows when no person answers in time. */
const ASKS = `
export function mount(coordinator) {
  coordinator.hooks.register("tool:pre", () => ({
    action: "ask_user", approval_prompt: "Sure?", approval_timeout: 0.05, approval_default: "allow",
  }));
  return () => {};
}`;

const call = (name: string, args: JsonObject = {}) => ({ name, arguments: args });

const RESPONSES = [
  { tool_calls: [call("throws"), call("fails"), call("strict", { m: 1 }), call("unknown")] },
  { thinking: "well", tool_calls: [call("talks"), call("knows", { phrase: "open-sesame-1" })] },
  { text: "The phrase is open-sesame-1, and the tulips are red." },
];

const PLANS: Record<string, JsonObject> = {
  "an approval of a call that contains a secret": {
    providers: [{ module: "provider-mock", config: { responses: RESPONSES.slice(1) } }],
    tools: [{ module: "tool-odd", source: "./tools.js", config: { phrase: "${PHRASE}" } }],
    hooks: [{ module: "hooks-asks", source: "./asks.js" }],
  },
  "every kind of module": {
    session: {
      orchestrator: { module: "loop-own", source: "./loop.js" },
      context: { module: "context-own", source: "./context.js" },
    },
    providers: [{
      module: "provider-own",
      source: "./provider.js",
      config: { responses: RESPONSES, chunk_chars: 8 },
    }],
    tools: [{ module: "tool-odd", source: "./tools.js", config: { phrase: "${PHRASE}" } }],
    hooks: [{ module: "hooks-own", source: "./hook.js" }],
  },
};

for (const [name, plan] of Object.entries(PLANS)) {
  for (const tier of TIERS) {
    Deno.test(`a run replays equal in tier ${tier}: ${name}`, async () => {
      const files = {
        "loop.js": copy("loop-streaming"),
        "context.js": copy("context-simple"),
        "provider.js": copy("provider-mock"),
        "tools.js": TOOLS,
        "hook.js": HOOK,
        "asks.js": ASKS,
      };
      const { run, entries } = await runWithFiles(tier, files, plan, { PHRASE: "open-sesame-1" });
      assertEquals([run.status, run.error], ["completed", null]);
      assertEquals(JSON.stringify([run, entries]).includes("open-sesame"), false);
    });
  }
}
