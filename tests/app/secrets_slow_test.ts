/** A secret of a plan appears nowhere in the output of a run, wherever its modules put it, in any tier. */
import { assert, assertEquals, assertStringIncludes } from "../assert.ts";
import { errorCode, errorMessage } from "../../src/sdk/errors.ts";
import { runWithFiles, TIERS } from "../support/own_modules.ts";
import { temporaryFolder } from "../support/folder.ts";

const SECRET = 's3cret/"key"\\with\u001b[2J+漢字';

/** Encodings of the secret. */
const SPELLINGS = [SECRET, JSON.stringify(SECRET).slice(1, -1), encodeURIComponent(SECRET), "s3cret/"];

const PROVIDER = `
export const mount = (coordinator, { key }) => {
  let calls = 0;
  return coordinator.mount("providers", {
    name: "leaky",
    getInfo: () => ({ id: "leaky", display_name: "Leaky" }),
    listModels: () => [],
    parseToolCalls: (response) => response.tool_calls,
    complete() {
      console.log("asking with", key);
      if (++calls > 1) throw new Error("401: the key " + key + " is not known");
      const text = "x".repeat(190) + key;
      return {
        content: [{ type: "text", text }],
        tool_calls: ["reports", "throws"].map((name, at) => ({ id: "call_" + at, name, arguments: { key } })),
      };
    },
  });
};`;

const TOOLS = `
export async function mount(coordinator, { key }) {
  const tool = (name, execute) =>
    coordinator.mount("tools", { name, description: name, input_schema: { type: "object" }, execute });
  await tool("reports", (_, { progress }) => {
    progress("working with " + key);
    coordinator.session_state.kept = { [key]: key };
    return { [key]: key, url: "https://a.example/?key=" + encodeURIComponent(key) };
  });
  await tool("throws", () => { throw new Error("cannot use " + key); });
  coordinator.registerCleanup(() => { throw new Error(key); });
}`;

const HOOK = `
export function mount({ hooks }, { key }) {
  hooks.register("tool:pre", () => ({
    action: "inject_context", context_injection: "mind " + key, reason: key, user_message: key,
  }));
  hooks.register("session:end", () => { throw new Error("cannot end with " + key); });
  hooks.register("tool:post", () => hooks.emit("hooks-leaky:saw", { key, headers: { authorization: "x" } }).then(() => null));
}`;

const FILES = { "provider.js": PROVIDER, "tools.js": TOOLS, "hook.js": HOOK };
const config = { key: "${LEAK_KEY}" };

for (const tier of TIERS) {
  Deno.test(`a secret appears in no output in tier ${tier}`, async () => {
    await using temporary = await temporaryFolder();
    const folder = temporary.path;
    const path = `${folder}/events.jsonl`;
    const { run, entries, logged } = await runWithFiles(tier, FILES, {
      providers: [{ module: "provider-leaky", source: "./provider.js", config }],
      tools: [{ module: "tool-leaky", source: "./tools.js", config }],
      hooks: [
        { module: "hooks-leaky", source: "./hook.js", config },
        {
          module: "hooks-logging",
          config: { path },
          permissions: { write: [folder] },
        },
      ],
    }, { LEAK_KEY: SECRET });
    assertEquals(run.status, "failed");
    assertStringIncludes(run.error?.message ?? "", "401: the key [REDACTED] is not known");
    const file = await Deno.readTextFile(path);
    const sinks = {
      run: JSON.stringify(run),
      log: JSON.stringify(entries),
      process: JSON.stringify(logged),
      file,
    };
    for (const [name, text] of Object.entries(sinks)) {
      for (const spelling of SPELLINGS) {
        const at = text.indexOf(spelling);
        assert(at < 0, `${name}: ${text.slice(Math.max(0, at - 300), at + 60)}`);
      }
      assertStringIncludes(text, "[REDACTED]");
    }
    assertEquals(logged.some(({ event }) => event === "module_console"), true);
    assertStringIncludes(file, '"headers":{"authorization":"[REDACTED]"}');
  });
}

Deno.test("a secret appears in no error of a run that cannot start", async () => {
  const loop = "export const mount = (_, { key }) => { throw new Error('cannot mount with ' + key); };";
  const session = {
    orchestrator: { module: "loop-leaky", source: "./loop.js", config },
    context: "context-simple",
  };
  try {
    await runWithFiles("inline", { "loop.js": loop }, { session }, { LEAK_KEY: SECRET });
    assert(false, "it was started");
  } catch (error) {
    assertEquals(errorCode(error), "module_load_failed");
    assertStringIncludes(errorMessage(error), "cannot mount with [REDACTED]");
    assertEquals((error as Error).stack?.includes("s3cret/"), false);
  }
});
