/**
 * Every built-in module gives the same run, with the same entries, when it is loaded by its source into a
 * child process.
 */
import { BUILTIN_IDS } from "../../src/app/module_table.ts";
import { defaultPolicy } from "../../src/policy/settings.ts";
import { createPreamp, type Preamp } from "../../src/server/mod.ts";
import { assert, assertEquals } from "../assert.ts";
import { serveFiles } from "../support/loader.ts";
import type { FakeServer } from "./providers/fake_server.ts";
import { configOn, fakeVendor, VENDORS } from "./providers/fake_vendor.ts";

// deno-lint-ignore no-explicit-any -- JSON of unknown shape
type Json = any;

const MODULES = new URL("../../modules/", import.meta.url);

const MCP_SERVER = new URL("../fixtures/mcp_server.js", import.meta.url).pathname;

/** The configuration of a module for its run. */
interface Setup {
  readonly config?: Json;
  readonly permissions?: Json;
  /** Added to the plan. */
  readonly plan?: Json;
}

/** Returns what a provider of a vendor is asked on a server that speaks the vendor's format. */
function vendorSetup(id: string, { url }: FakeServer): Setup {
  const { host } = new URL(url);
  return { config: configOn(url, VENDORS[id]!), permissions: { net: [host] } };
}

const SUM = { name: "calculator", arguments: { expression: "6*7" } };
const ANSWERS = [{ text: ["It ", "is 42."] }];
const RESPONSES = [{ tool_calls: [SUM] }, { text: "It is 42." }];

/** Waits in a shell until what it started last is that program, and no longer a copy of the shell. */
const STARTED = "until [ ! -d /proc/$! ] || read c </proc/$!/comm && [ $c = sleep ]; do :; done";

/**
 * @param folder A folder that modules may read and write.
 * @param page URL of a page on this machine.
 */
function setups(folder: string, page: string): Readonly<Record<string, readonly Setup[]>> {
  return {
    "context-persistent": [{
      config: { memory_files: [`${folder}/memory.md`] },
      permissions: { read: [folder] },
    }],
    "context-summarizing": [{ config: { max_tokens: 4_000 } }],
    "hooks-approval": [{ config: { rules: [{ tool: "calculator", action: "deny" }] } }],
    "hooks-logging": [{
      config: { path: `${folder}/log.jsonl` },
      permissions: { read: [folder], write: [folder] },
    }, {}],
    "hooks-redaction": [{ config: { patterns: ["4[0-9]"] } }],
    "hooks-status-context": [{
      config: { include_datetime: false },
      permissions: { read: [folder] },
    }],
    "provider-mock": [{ config: { responses: RESPONSES } }],
    "provider-replay": [{
      config: {
        events: [{
          event: "provider:response",
          data: { provider: "mock", response: { content: [{ type: "text", text: "Again." }] } },
        }],
      },
    }],
    "tool-bash": [["bash"], ["echo"]].map((run) => ({
      permissions: { read: [folder], run },
      plan: {
        providers: [mock([
          { tool_calls: [{ name: "bash", arguments: { command: "echo same" } }] },
          {
            tool_calls: [{
              name: "bash",
              arguments: { command: `sleep 300 & ${STARTED}; echo $((6 * 7)); exit 3` },
            }],
          },
          { tool_calls: [{ name: "bash", arguments: { command: "yes | head -c 100000" } }] },
          { tool_calls: [{ name: "job", arguments: { id: "7", action: "poll" } }] },
          { text: "Done." },
        ])],
      },
    })),
    "tool-filesystem": [{
      permissions: { read: [folder], write: [folder] },
      plan: {
        providers: [mock([
          { tool_calls: [{ name: "glob", arguments: { pattern: "memory.*" } }] },
          { tool_calls: [{ name: "write", arguments: { path: "note.txt", content: "Same in both." } }] },
          { tool_calls: [{ name: "read", arguments: { path: "../../etc/passwd" } }] },
          {
            tool_calls: [{
              name: "edit",
              arguments: { path: "memory.md", old_string: "R", new_string: "R" },
            }],
          },
          { text: "Done." },
        ])],
      },
    }],
    "tool-mcp": [{
      config: { servers: { mail: { command: [Deno.execPath(), "run", "--no-lock", MCP_SERVER] } } },
      permissions: { run: [Deno.execPath()] },
      plan: {
        providers: [mock([
          { tool_calls: [{ name: "mail__echo", arguments: { to: "Same in both." } }] },
          { tool_calls: [{ name: "mail__die", arguments: {} }] },
          { text: "Done." },
        ])],
      },
    }],
    "tool-search": [{
      permissions: { read: [folder] },
      plan: {
        providers: [mock([
          { tool_calls: [{ name: "grep", arguments: { pattern: "Rem\\w+", path: "memory.md" } }] },
          { text: "Found." },
        ])],
      },
    }],
    "tool-web": [{
      permissions: { net: ["127.0.0.1:1", new URL(page).host] },
      plan: {
        providers: [mock([
          { tool_calls: [{ name: "web_fetch", arguments: { url: page } }] },
          { tool_calls: [{ name: "web_fetch", arguments: { url: "http://127.0.0.1:1/" } }] },
          { tool_calls: [{ name: "web_fetch", arguments: { url: "http://10.0.0.1/" } }] },
          { tool_calls: [{ name: "web_search", arguments: { query: "deno" } }] },
          { text: "Done." },
        ])],
      },
    }],
    "tool-skills": [{
      permissions: { read: [folder] },
      plan: {
        providers: [mock([
          { tool_calls: [{ name: "skill", arguments: { name: "greet" } }] },
          { tool_calls: [{ name: "skill", arguments: { name: "absent" } }] },
          { text: "Hello." },
        ])],
      },
    }],
    "tool-task": [{
      plan: {
        agents: { helper: { description: "Helps", system: "Help." } },
        providers: [mock([
          { tool_calls: [{ name: "task", arguments: { agent: "helper", instruction: "Say it" } }] },
          { text: "Said." },
          { text: "Done." },
        ])],
      },
    }],
    "tool-todo": [{
      plan: {
        providers: [mock([
          {
            tool_calls: [{
              name: "todo",
              arguments: {
                action: "create",
                todos: [{ content: "Test", status: "pending", activeForm: "Testing" }],
              },
            }],
          },
          { text: "Noted." },
        ])],
      },
    }],
  };
}

function mock(responses: Json): Json {
  return { module: "provider-mock", config: { responses, chunk_chars: 8 } };
}

/** Returns the plan of a module's run; without `source` the module is built in. */
function planOf(id: string, { config, permissions, plan }: Setup, source?: string): Json {
  const spec = {
    module: id,
    ...(config ? { config } : {}),
    ...(permissions ? { permissions } : {}),
    ...(source === undefined ? {} : { source }),
  };
  const kind = id.split("-")[0]!;
  const whole: Json = {
    session: {
      orchestrator: kind === "loop" ? spec : "loop-streaming",
      context: kind === "context" ? spec : "context-simple",
    },
    system: "Be brief.",
    providers: [mock(RESPONSES)],
    tools: ["tool-calculator"],
    hooks: [],
    ...plan,
  };
  if (kind === "provider") whole.providers = [spec];
  else if (kind === "tool") whole.tools = whole.tools.filter((tool: string) => tool !== id).concat(spec);
  else if (kind === "hooks") whole.hooks = [spec];
  return whole;
}

/** Warnings about the configs of fake vendors. */
const EXPECTED: ReadonlySet<string> = new Set(["secret_literal", "price_unknown"]);

/** Resolves to the entries of a run of a named plan, without values that differ between runs. */
async function entriesOf(preamp: Preamp, plan: string): Promise<Json[]> {
  const send = async (path: string, init: RequestInit = {}) => {
    const headers = { "content-type": "application/json" };
    return await (await preamp.fetch(new Request(`http://localhost${path}`, { ...init, headers }))).json();
  };
  const run = await send("/v1/runs", {
    method: "POST",
    body: JSON.stringify({ prompt: "What is 6 × 7?", plan_ref: plan }),
  });
  const warnings = run.warnings.filter(({ code }: Json) => !EXPECTED.has(code));
  assertEquals([run.status, warnings], ["completed", []], JSON.stringify(run.error));
  const { data } = await send(`/v1/runs/${run.id}/events?limit=1000`);
  const names = new Map<string, string>();
  const named = (text: string) => {
    if (!names.has(text)) names.set(text, `${text.includes("_") ? text.split("_")[0] : "id"} ${names.size}`);
    return names.get(text);
  };
  return joinOutput(data).map(({ event, data }: Json) => {
    // a built-in module reports no name and version
    const { name: _, version: __, provides: ___, ...mounted } = data;
    const compared = event === "module:mounted" ? mounted : data;
    const json = JSON.stringify(
      { event, data: compared },
      (key, value) => VOLATILE.has(key) ? undefined : value,
    );
    return JSON.parse(
      json.replace(
        /\b(?:run|ses|turn|grp|call|req|apr|evt|sub)_[A-Za-z0-9]{8,}(?:_[0-9a-z]+)?|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g,
        named as () => string,
      ),
    );
  });
}

/** Joins the output of a call that follows itself: how a program's output is cut depends on the time. */
function joinOutput(entries: readonly Json[]): Json[] {
  const joined: Json[] = [];
  for (const entry of entries) {
    const last = joined.at(-1);
    const follows = entry.event === "tool:output" && last?.event === entry.event &&
      last.data.tool_call_id === entry.data.tool_call_id && last.data.stream === entry.data.stream;
    if (follows) last.data.text += entry.data.text;
    else joined.push(entry);
  }
  return joined;
}

/**
 * Fields that differ between runs: times, durations, sources of modules, and token counts that depend on ids.
 */
const VOLATILE: ReadonlySet<string> = new Set([
  ...["timestamp", "ts", "duration_ms", "plan_hash", "isolation", "integrity", "ended_at", "created_at"],
  ...["started_at", "created", "updated", "elapsed_ms", "input_tokens", "total_tokens", "tokens"],
]);

Deno.test("every built-in module gives the same run when it is loaded by path", async (t) => {
  const folder = await Deno.realPath(await Deno.makeTempDir());
  const policy = defaultPolicy();
  policy.isolation.load_timeout_s = policy.limits.hook_timeout_s = 60;
  const headers = { "content-type": "text/html" };
  await using pages = serveFiles({ page: () => new Response("<h1>Title</h1><p>Text", { headers }) });
  const preamp = createPreamp({ authenticate: null, policy, plans: new URL(`file://${folder}/`) });
  try {
    await Deno.writeTextFile(`${folder}/memory.md`, "Remember this.");
    await Deno.mkdir(`${folder}/skills/greet/parts`, { recursive: true });
    await Deno.writeTextFile(
      `${folder}/skills/greet/SKILL.md`,
      "---\nname: greet\ndescription: Greets people\n---\nSay hello.",
    );
    await Deno.writeTextFile(`${folder}/skills/greet/parts/names.txt`, "Ada");
    let tested = 0;
    for await (const { name, isDirectory } of Deno.readDir(MODULES)) {
      if (!isDirectory || !BUILTIN_IDS.has(name)) continue;
      tested++;
      await t.step(name, async () => {
        const source = new URL(`${name}/mod.ts`, MODULES).href;
        const vendor = VENDORS[name];
        await using server = vendor && fakeVendor(vendor, ANSWERS);
        const all = server ? [vendorSetup(name, server)] : setups(folder, `${pages.url}page`)[name] ?? [{}];
        for (const setup of all) {
          await Deno.writeTextFile(`${folder}/note.txt`, "");
          await Deno.writeTextFile(`${folder}/built-in.json`, JSON.stringify(planOf(name, setup)));
          await Deno.writeTextFile(`${folder}/by-path.json`, JSON.stringify(planOf(name, setup, source)));
          const built_in = await entriesOf(preamp, "built-in");
          await Deno.writeTextFile(`${folder}/note.txt`, "");
          const by_path = await entriesOf(preamp, "by-path");
          assert(built_in.length > 5);
          assertEquals(by_path, built_in);
        }
      });
    }
    assert(tested >= 14);
  } finally {
    await preamp.close();
    await Deno.remove(folder, { recursive: true });
  }
});
