/** Servers of `tool-mcp` in plans: the operator's by name, and pinned by a lock. */
import { createPreamp } from "../../src/server/mod.ts";
import { createRuntime } from "../../src/app/runtime.ts";
import type { Runtime } from "../../src/app/types.ts";
import { defaultPolicy } from "../../src/policy/settings.ts";
import { formatLock } from "../../src/plan/lock.ts";
import type { Caller } from "../../src/runs/types.ts";
import type { JsonObject } from "../../src/sdk/json.ts";
import { assertEquals, assertMatch, assertStringIncludes } from "../assert.ts";
import { temporaryFolder } from "../support/folder.ts";
import { onWebServer } from "../support/mcp_web_server.ts";
import { detailAt, refusal } from "../support/plans.ts";

const OPERATOR: Caller = { name: "library", namespace: "test", origin: "operator" };
const CALLER: Caller = { name: "key:a", namespace: "a", origin: "caller" };

const FIXTURE = new URL("../fixtures/mcp_server.js", import.meta.url).pathname;
const DENO = Deno.execPath();

function command(...flags: string[]): JsonObject {
  return { command: [DENO, "run", "--no-lock", "-A", FIXTURE, ...flags], env: { OWN: "${MAIL_TOKEN}" } };
}

function planWith(config: JsonObject, call: JsonObject, permissions?: JsonObject): JsonObject {
  return {
    session: { orchestrator: "loop-basic", context: "context-simple" },
    providers: [{
      module: "provider-mock",
      config: { responses: [{ tool_calls: [call] }, { text: "Done." }] },
    }],
    tools: [{ module: "tool-mcp", config, ...(permissions ? { permissions } : {}) }],
  };
}

async function withRuntime(
  servers: Record<string, JsonObject>,
  body: (runtime: Runtime) => Promise<void>,
): Promise<void> {
  const env = (name: string) => name === "MAIL_TOKEN" ? "token-of-the-operator" : undefined;
  const runtime = createRuntime({ policy: { ...defaultPolicy(), mcp: { servers } }, env });
  try {
    await body(runtime);
  } finally {
    await runtime.close();
  }
}

/** Runs a plan; resolves to the results of its tools. */
async function resultsOf(runtime: Runtime, caller: Caller, plan: JsonObject, more: JsonObject = {}) {
  const handle = await runtime.runs.create({ plan, prompt: "Go", ...more }, caller);
  const run = await handle.settled("end");
  assertEquals(run.status, "completed", JSON.stringify(run.error));
  const entries = await runtime.runs.events(caller, run.id, { limit: 200 });
  return entries.filter(({ event }) => event === "tool:post").map(({ data }) => JSON.stringify(data.result));
}

Deno.test("a caller's plan uses a server that the operator lists, by its name", () =>
  withRuntime({ mail: command() }, async (runtime) => {
    const plan = planWith({ listed: ["mail"] }, { name: "mail__echo", arguments: { to: "ada" } });
    const [result = ""] = await resultsOf(runtime, CALLER, plan);
    assertStringIncludes(result, "ada");
    const env = planWith({ listed: ["mail"] }, { name: "mail__env", arguments: {} });
    const [variables = ""] = await resultsOf(runtime, CALLER, env);
    assertStringIncludes(variables, "[REDACTED");
    assertEquals(variables.includes("token-of-the-operator"), false);
    const explained = async (caller: Caller) =>
      (await runtime.plans.explain({ plan }, caller)).modules.flatMap(({ servers }) => servers);
    const hidden = { name: "mail", transport: "listed", target: "", tools: null };
    assertEquals(await explained(CALLER), [hidden]); // the operator's command is not a caller's business
    const target = (command().command as string[]).join(" ");
    assertEquals(await explained(OPERATOR), [{ ...hidden, transport: "command", target }]);
    await using folder = await temporaryFolder();
    const own = planWith({ servers: { own: { command: ["sh"] } } }, { name: "own__x", arguments: {} });
    await Deno.writeTextFile(`${folder.path}/own.json`, JSON.stringify(own));
    const named = createRuntime({ plans: new URL(`file://${folder.path}/`) });
    const { modules } = await named.plans.explain({ plan_ref: "own" }, CALLER);
    assertEquals(modules.at(-1)?.servers, [{ ...hidden, name: "own", transport: "command" }]);
    await named.close();
  }));

Deno.test("only the servers that a plan names are started, and another name is refused", () =>
  withRuntime({ mail: command(), broken: { command: ["nonsense_program"] } }, async (runtime) => {
    const call = { name: "mail__echo", arguments: { to: "ada" } };
    assertStringIncludes(
      (await resultsOf(runtime, CALLER, planWith({ listed: ["mail"] }, call)))[0] ?? "",
      "ada",
    );
    const reasonOf = async (config: JsonObject) => {
      const handle = await runtime.runs.create({ plan: planWith(config, call), prompt: "Go" }, CALLER);
      const { id } = await handle.settled("end");
      const skipped = (await runtime.runs.events(CALLER, id, { limit: 200 }))
        .find(({ event }) => event === "module:skipped");
      return String(skipped?.data.message);
    };
    assertStringIncludes(await reasonOf({ listed: ["mial"] }), "who lists mail, broken");
    assertStringIncludes(await reasonOf({}), "config.servers: must have a server");
    assertStringIncludes(await reasonOf({ listed: ["broken"] }), 'Cannot connect to server "broken"');
  }));

Deno.test("a caller's plan cannot bring a command, nor fill in what is the operator's or the lock's", () =>
  withRuntime({ mail: command() }, async (runtime) => {
    const call = { name: "mail__echo", arguments: { to: "ada" } };
    for (const key of ["operator_servers", "pins"]) {
      const plan = planWith({ listed: ["mail"], [key]: { mail: { command: [DENO] } } }, call);
      const error = await refusal(() => runtime.runs.create({ plan, prompt: "Go" }, CALLER));
      assertStringIncludes(detailAt(error, `tools[0].config.${key}`).message, `Cannot set ${key}`);
    }
    const run = planWith({ servers: { own: command() } }, call, { run: true });
    assertMatch(
      (await refusal(() => runtime.runs.create({ plan: run, prompt: "Go" }, CALLER))).message,
      /run/,
    );
  }));

Deno.test("plan lock pins the tools of servers, and a server whose tool changed stops the run before it starts", () =>
  withRuntime({}, async (runtime) => {
    const call = { name: "mail__send_mail", arguments: { to: "ada" } };
    const planOf = (...flags: string[]) =>
      planWith({ servers: { mail: { command: command(...flags).command } } }, call, { run: [DENO] });
    const lock = await runtime.plans.lock({ plan: planOf() }, OPERATOR);
    assertEquals(lock.servers.mail?.send_mail?.parameters, ["to"]);
    const written = JSON.parse(formatLock(lock));
    const [result = ""] = await resultsOf(runtime, OPERATOR, planOf(), { lock: written });
    assertStringIncludes(result, "Sent to ada.");
    const error = await refusal(() =>
      runtime.runs.create({ plan: planOf("with_bcc"), prompt: "Go", lock: written }, OPERATOR)
    );
    assertEquals(error.code, "module_integrity_mismatch");
    assertStringIncludes(error.message, "tool `send_mail` of `mail` gained parameter `bcc`");
    assertEquals((await runtime.runs.list(OPERATOR, { limit: 10 })).data.length, 1); // no run of the second
    const other = await runtime.runs.create(
      { plan: planOf(), prompt: "Go", lock: { version: 1, modules: {}, files: {} } },
      OPERATOR,
    );
    const { warnings } = await other.settled("end");
    assertEquals(warnings.map(({ code, path }) => [code, path]), [["server_not_locked", "tools[0]"]]);
  }));

Deno.test("a frozen runtime refuses a server that no lock pins", async () => {
  const policy = defaultPolicy();
  policy.modules.frozen = true;
  policy.mcp.servers = { mail: command() };
  const runtime = createRuntime({ policy });
  try {
    const plan = planWith({ listed: ["mail"] }, { name: "mail__echo", arguments: { to: "ada" } });
    const error = await refusal(() => runtime.runs.create({ plan, prompt: "Go" }, CALLER));
    assertEquals(error.code, "module_pin_required");
    assertStringIncludes(error.message, 'the server "mail"');
    const lock = JSON.parse(formatLock(await runtime.plans.lock({ plan }, CALLER)));
    assertStringIncludes((await resultsOf(runtime, CALLER, plan, { lock }))[0] ?? "", "ada");
  } finally {
    await runtime.close();
  }
});

Deno.test("the lock beside a plan's file pins the servers of its runs", () =>
  withRuntime({}, async (runtime) => {
    await using folder = await temporaryFolder();
    const base_url = new URL(`file://${folder.path}/plan.yaml`).href;
    const call = { name: "mail__send_mail", arguments: { to: "ada" } };
    const planOf = (...flags: string[]) =>
      planWith({ servers: { mail: { command: command(...flags).command } } }, call, { run: [DENO] });
    const lock = await runtime.plans.lock({ plan: planOf() }, OPERATOR, { base_url });
    await Deno.writeTextFile(`${folder.path}/plan.lock.json`, formatLock(lock));
    const error = await refusal(() =>
      runtime.runs.create({ plan: planOf("with_bcc"), prompt: "Go" }, OPERATOR, { base_url })
    );
    assertEquals(error.code, "module_integrity_mismatch");
  }));

Deno.test("a server gets a token from the caller's request, which is stored nowhere", () =>
  onWebServer(async (url, requests) => {
    const policy = {
      ...defaultPolicy(),
      permissions: { max: { ...defaultPolicy().permissions.max, net: ["127.0.0.1"] } },
    };
    const preamp = createPreamp({ authenticate: null, policy });
    try {
      const web = { url: `${url}/mcp`, headers: { authorization: "Bearer ${X-Run-Web-Token}" } };
      const plan = planWith({ servers: { web } }, { name: "web__headers", arguments: {} }, {
        net: ["127.0.0.1"],
      });
      const send = async (path: string, init: RequestInit = {}) => {
        const response = await preamp.fetch(new Request(`http://localhost${path}`, init));
        return await response.json();
      };
      const start = (headers: Record<string, string>) =>
        send("/v1/runs", {
          method: "POST",
          headers: { "content-type": "application/json", ...headers },
          body: JSON.stringify({ plan, prompt: "Go" }),
        });
      const run = await start({ "x-run-web-token": "token-of-ada", "x-other": "not-for-plans" });
      assertEquals([run.status, run.warnings], ["completed", []], JSON.stringify(run));
      const sent = requests.splice(0).map(({ headers }) => headers.get("authorization"));
      assertEquals(new Set(sent), new Set(["Bearer token-of-ada"]));
      const events = JSON.stringify(await send(`/v1/runs/${run.id}/events?limit=1000`));
      assertStringIncludes(events, `"output":"[REDACTED]"`);
      assertEquals(events.includes("token-of-ada"), false);
      const without = await start({});
      assertStringIncludes(JSON.stringify(without.warnings), "The request has no header X-Run-Web-Token");
    } finally {
      await preamp.close();
    }
  }));

Deno.test("a tool that the model finds is offered in its next request, under the name that rules know", () =>
  withRuntime({ mail: command() }, async (runtime) => {
    const plan = planWith({ listed: ["mail"], discovery: "search" }, {
      name: "mcp_search",
      arguments: { query: "send" },
    });
    const [provider] = plan.providers as JsonObject[];
    const send = { name: "mail__send_mail", arguments: { to: "ada" } };
    const echo = { name: "mail__echo", arguments: { to: "ada" } };
    const responses = [
      { tool_calls: [{ name: "mcp_search", arguments: { query: "send" } }] },
      { tool_calls: [send] },
      { tool_calls: [echo] },
      { text: "Done." },
    ];
    plan.providers = [{ ...provider, config: { responses } }];
    plan.hooks = [{
      module: "hooks-approval",
      config: { rules: [{ tool: "mail__send_mail", input: { to: "ada" }, action: "allow" }] },
    }];
    const results = await resultsOf(runtime, CALLER, plan);
    assertStringIncludes(results[0] ?? "", "mail__send_mail: The tool send_mail");
    assertStringIncludes(results[1] ?? "", "Sent to ada.");
    assertEquals(results.length, 2); // mail__echo was not found
    const { data: [run] } = await runtime.runs.list(CALLER, { limit: 1 });
    assertEquals(await runtime.runs.replay(CALLER, run!.id), { equal: true });
  }));

Deno.test("a run waits for a person when a server asks one during a call", () =>
  withRuntime({ mail: command() }, async (runtime) => {
    const plan = planWith({ listed: ["mail"] }, { name: "mail__confirm", arguments: {} });
    const handle = await runtime.runs.create({ plan, prompt: "Go" }, CALLER);
    const { id, approvals: [approval] } = await handle.settled("attention");
    assertStringIncludes(approval?.prompt ?? "", 'Server "mail" asks: Delete all?');
    await runtime.runs.decide(CALLER, id, approval!.id, { decision: "allow" });
    assertEquals((await handle.settled("end")).status, "completed");
    const events = JSON.stringify(await runtime.runs.events(CALLER, id, { limit: 200 }));
    assertStringIncludes(events, '\\"action\\":\\"accept\\"');
  }));
