/** The keys of real providers: sent to the vendor's own address, and in no output. */
import { createRuntime } from "../../src/app/runtime.ts";
import { defaultPolicy } from "../../src/policy/settings.ts";
import type { Caller } from "../../src/runs/types.ts";
import type { JsonObject } from "../../src/sdk/json.ts";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "../assert.ts";
import { ANTHROPIC } from "../modules/providers/anthropic_wire.ts";
import { fakeServer } from "../modules/providers/fake_server.ts";

const OPERATOR: Caller = { name: "terminal", namespace: "local", origin: "operator" };
const STRANGER: Caller = { name: "stranger", namespace: "api", origin: "caller" };
const KEY = "sk-canary/0123456789+abc";
/** Encodings of the key. */
const SPELLINGS = [KEY, JSON.stringify(KEY).slice(1, -1), encodeURIComponent(KEY), btoa(KEY)];

/** Variable of the key and address of each vendor. */
const VENDORS: Readonly<Record<string, { variable: string; address: string }>> = {
  "provider-anthropic": { variable: "ANTHROPIC_API_KEY", address: "https://api.anthropic.com" },
  "provider-gemini": { variable: "GEMINI_API_KEY", address: "https://generativelanguage.googleapis.com" },
  "provider-openai": { variable: "OPENAI_API_KEY", address: "https://api.openai.com" },
};

/** Runs `test` while requests to `address` go to `url`, and all others fail. */
async function redirected(address: string, url: string, test: () => Promise<void>): Promise<void> {
  const original = globalThis.fetch;
  globalThis.fetch = (input, init) => {
    const target = input instanceof Request ? input.url : String(input);
    if (!target.startsWith(`${address}/`)) return Promise.reject(new TypeError(`not permitted: ${target}`));
    return original(url + target.slice(address.length), input instanceof Request ? input : init);
  };
  try {
    await test();
  } finally {
    globalThis.fetch = original;
  }
}

function planOf(module: string, config: JsonObject = {}): JsonObject {
  return {
    session: { orchestrator: "loop-streaming", context: "context-simple" },
    providers: [{ module, config: { max_retries: 0, ...config } }],
  };
}

/** Runs a plan and returns everything that anybody can read. */
async function outputsOf(plan: JsonObject, env: Readonly<Record<string, string>>, caller = OPERATOR) {
  const logged: unknown[] = [];
  const runtime = createRuntime({
    env: (name) => env[name],
    log: (...line) => void logged.push(line),
  });
  try {
    const explained = await runtime.plans.explain({ plan }, OPERATOR);
    const handle = await runtime.runs.create({ prompt: "Hello", plan }, caller);
    const run = await handle.settled("end");
    const entries = await runtime.runs.events(caller, run.id, { limit: 1000 });
    return { run, outputs: { run, entries, logged, explained } };
  } finally {
    await runtime.close();
  }
}

function assertNoKey(outputs: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(outputs)) {
    const text = Deno.inspect(value, { depth: 20, strAbbreviateSize: Infinity }) + JSON.stringify(value);
    for (const spelling of SPELLINGS) {
      const at = text.indexOf(spelling);
      assert(at < 0, `${name}: ${text.slice(Math.max(0, at - 200), at + 60)}`);
    }
  }
}

for (const [module, { variable, address }] of Object.entries(VENDORS)) {
  for (const caller of [OPERATOR, STRANGER]) {
    Deno.test(`${module}, ${caller.origin}: the key of the variable goes to the vendor and is in no output`, async () => {
      await using server = fakeServer(({ headers, path }) => {
        const message = `not today: ${path} ${JSON.stringify([...headers])}`; // a server that repeats what it got
        return Response.json({ error: { type: "x", code: 400, message } }, { status: 400 });
      });
      await redirected(address, server.url, async () => {
        const { run, outputs } = await outputsOf(planOf(module, { raw: true }), { [variable]: KEY }, caller);
        assertEquals(run.status, "failed");
        assertStringIncludes(run.error?.message ?? "", "not today");
        assert(JSON.stringify([...server.requests[0]!.headers]).includes(KEY), "the key was not sent");
        assertNoKey(outputs);
      });
    });
  }

  Deno.test(`${module}: the key of the variable goes to no other address`, async () => {
    await using server = fakeServer(() => Response.json({}, { status: 500 }));
    const plan = planOf(module, { base_url: server.url });
    const { variable: name } = VENDORS[module]!;
    const runtime = createRuntime({ env: (asked) => asked === name ? KEY : undefined });
    try {
      await runtime.runs.create({ prompt: "Hello", plan }, OPERATOR).then((handle) => handle.settled("end"))
        .catch(() => {});
      assert(!JSON.stringify(server.requests.map(({ headers }) => [...headers])).includes(KEY));
    } finally {
      await runtime.close();
    }
  });

  Deno.test(`${module}: a caller's plan may neither name the variable nor another address`, async () => {
    const policy = defaultPolicy();
    policy.permissions.max = { ...policy.permissions.max, net: ["127.0.0.1:1"] };
    const runtime = createRuntime({ policy, env: (name) => name === variable ? KEY : undefined });
    const refused = (config: JsonObject) =>
      assertRejects(() => runtime.runs.create({ prompt: "Hello", plan: planOf(module, config) }, STRANGER));
    try {
      await refused({ api_key: `\${${variable}}` });
      await refused({ base_url: "http://127.0.0.1:1", api_key: `\${${variable}}` });
      await refused({ base_url: "http://127.0.0.1:1" });
      await refused({ base_url: "http://127.0.0.1:2", api_key: "own" });
    } finally {
      await runtime.close();
    }
  });
}

Deno.test("a key that a model repeats is in no output, streamed and with raw bodies", async () => {
  const halves = [`The key is ${KEY.slice(0, 9)}`, `${KEY.slice(9)}.`];
  await using server = fakeServer(() =>
    new Response(ANTHROPIC.events({ text: halves }).join(""), {
      headers: { "content-type": "text/event-stream" },
    })
  );
  await redirected("https://api.anthropic.com", server.url, async () => {
    const env = { ANTHROPIC_API_KEY: KEY };
    const { run, outputs } = await outputsOf(planOf("provider-anthropic", { raw: true }), env);
    assertEquals([run.status, run.output_text], ["completed", "The key is [REDACTED]."]);
    assertNoKey(outputs);
  });
});
