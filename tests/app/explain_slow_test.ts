/** `explain`, `lock` and `diff` over a real loader and a server on loopback. */
import { createRuntime } from "../../src/app/runtime.ts";
import type { Runtime } from "../../src/app/types.ts";
import type { Policy } from "../../src/policy/policy.ts";
import { defaultPolicy } from "../../src/policy/settings.ts";
import type { Caller } from "../../src/runs/types.ts";
import type { JsonObject } from "../../src/sdk/json.ts";
import { createApp } from "../../src/server/app.ts";
import { assert, assertEquals, assertMatch } from "../assert.ts";
import { type FileServer, serveFiles } from "../support/loader.ts";
import { refusal } from "../support/plans.ts";
import { bodyOf, problemOf } from "../support/http.ts";
import { temporaryFolder } from "../support/folder.ts";
import { testWithUnitPermissions } from "../support/permissions.ts";

const OPERATOR: Caller = { name: "terminal", namespace: "local", origin: "operator" };
const CALLER: Caller = { name: "key:k", namespace: "k", origin: "caller" };

/** Throws when it is executed. */
const POISON = `globalThis.preampTestRan = true; throw new Error("it ran");`;

const FILES = {
  "tool.ts": `import { help } from "./lib/help.ts";
    import data from "./data.json" with { type: "json" };
    ${POISON}
    export const module = { id: "tool-x", version: "1.2.3", permissions: { net: ["a.example.com"], env: ["T"] } } as const;
    export function mount(): void { help(data); }`,
  "lib/help.ts": `${POISON} export function help(_: unknown): void {}`,
  "data.json": `{"a": 1}`,
  "loop.ts": `${POISON} export function mount(): void {}`,
  "made.ts":
    `const permissions = { net: ["a.example.com"] }; export const module = { permissions: (() => permissions)() }; export function mount() {}`,
};

function planOf(server: FileServer, more: JsonObject = {}, tool: JsonObject = {}): JsonObject {
  return {
    session: { orchestrator: "loop-streaming", context: "context-simple" },
    providers: ["provider-mock"],
    tools: [{ module: "tool-x", source: `${server.url}tool.ts`, ...tool }],
    limits: {
      max_iterations: 5,
      max_tool_calls: 5,
      max_total_tokens: 5000,
      max_cost_usd: "0.1",
      max_duration_s: 5,
    },
    ...more,
  };
}

// the files of every test have one URL, so that one home has the bundles of all of them
const SERVER = serveFiles({});
const HOME = new URL(`file://${await Deno.makeTempDir()}/`);
Deno.test.afterAll(async () => {
  await SERVER[Symbol.asyncDispose]();
  await Deno.remove(HOME, { recursive: true });
});

async function withServer(
  use: (server: FileServer, runtime: Runtime, policy: Policy) => Promise<void>,
): Promise<void> {
  SERVER.files = { ...FILES };
  SERVER.requests.length = 0;
  const policy = defaultPolicy();
  const runtime = createRuntime({ policy, home: HOME, env: () => undefined });
  try {
    await use(SERVER, runtime, policy);
    assert(!Object.hasOwn(globalThis, "preampTestRan"));
  } finally {
    await runtime.close();
  }
}

const codes = (flags: readonly { code: string }[]) => flags.map(({ code }) => code);

testWithUnitPermissions(
  "explain() reports every file and the wanted, asked and granted permissions, and runs nothing",
  () =>
    withServer(async (server, runtime) => {
      const plan = planOf(server, {}, {
        permissions: { net: ["a.example.com"], sys: true, env: ["PREAMP_X"] },
        config: { t: "${TOKEN}" },
      });
      const result = await runtime.plans.explain({ plan }, OPERATOR);
      const tool = result.modules.find(({ path }) => path === "tools[0]")!;
      assertEquals(tool.files.map(({ url }) => url.slice(server.url.length)), [
        "data.json",
        "lib/help.ts",
        "tool.ts",
      ]);
      assertEquals(tool.files.map(({ bytes }) => bytes > 0), [true, true, true]);
      assertMatch(tool.integrity ?? "", /^sha256-/);
      assertEquals([tool.version, tool.description, result.modules[0]?.version], ["1.2.3", null, "1.0.0"]);
      assertEquals(tool.permissions, {
        wanted: { net: ["a.example.com"], env: ["T"] },
        asked: { net: ["a.example.com"], sys: true, env: ["PREAMP_X"] },
        granted: { env: ["PREAMP_X"] },
        refused: { net: ["a.example.com"], sys: true },
      });
      assertEquals(result.env, ["TOKEN"]);
      assertEquals(result.deno_flags, [
        `--allow-net=127.0.0.1:${server.port},a.example.com`,
        "--allow-env=PREAMP_X,TOKEN",
        "--allow-sys",
      ]);
      assertEquals(codes(result.red_flags), [
        "source_http",
        "source_unpinned",
        "permission_all_sys",
        "permission_refused",
        "permission_refused",
      ]);
      assertEquals(result.warnings.map(({ code, path }) => [code, path]), [[
        "permission_not_granted",
        "tools[0]",
      ]]);
      assertEquals(result.limits.max_cost_usd, "0.1");
      assertEquals(result.modules.filter(({ url }) => url === null).map(({ files }) => files), [[], [], []]);
    }),
);

Deno.test("explain() of a cached graph makes no request", () =>
  withServer(async (server, runtime) => {
    const plan = planOf(server);
    const first = await runtime.plans.explain({ plan }, OPERATOR);
    const asked = server.requests.length;
    assertEquals(asked, 3);
    assertEquals(await runtime.plans.explain({ plan }, OPERATOR), first);
    assertEquals(server.requests.length, asked);
  }));

Deno.test("explain() reports null for computed permissions, and none for a module that declares none", () =>
  withServer(async (server, runtime) => {
    const plan = planOf(server, {}, { module: "tool-made", source: `${server.url}made.ts` });
    const result = await runtime.plans.explain({ plan }, OPERATOR);
    assertEquals(result.modules.at(-1)?.permissions.wanted, null);
    assertEquals(codes(result.warnings), ["permission_unknown"]);
    const silent = planOf(server, {}, { source: `${server.url}loop.ts` });
    assertEquals(
      (await runtime.plans.explain({ plan: silent }, OPERATOR)).modules.at(-1)?.permissions.wanted,
      {},
    );
  }));

Deno.test("lock() pins modules for explain(), and a changed byte is refused with the file's name", () =>
  withServer(async (server, runtime) => {
    const plan = planOf(server);
    const lock = await runtime.plans.lock({ plan }, OPERATOR) as unknown as JsonObject;
    assertEquals(Object.keys(lock.modules as JsonObject), [`${server.url}tool.ts`]);
    assertEquals(Object.keys(lock.files as JsonObject).length, 3);
    const result = await runtime.plans.explain({ plan, lock }, OPERATOR);
    assertMatch(result.lock_hash ?? "", /^sha256-/);
    assertEquals(codes(result.red_flags).includes("source_unpinned"), false);
    server.files["lib/help.ts"] = `${FILES["lib/help.ts"]} `;
    const fresh = createRuntime({ env: () => undefined });
    const error = await refusal(() => fresh.plans.explain({ plan, lock }, OPERATOR));
    await fresh.close();
    assertEquals(error.code, "module_integrity_mismatch");
    assertMatch(error.message, /lib\/help\.ts/);
  }));

Deno.test("lock() keeps a lock's entries of other plans, and ignores its others", () =>
  withServer(async (server, runtime) => {
    const integrity = `sha256-${"A".repeat(42)}A=`;
    const lock = {
      version: 1,
      modules: {
        "./other.ts": { url: "./other.ts", integrity },
        [`${server.url}tool.ts`]: { url: `${server.url}tool.ts`, integrity },
      },
      files: { "./other.ts": { sha256: "0".repeat(64), bytes: 1 } },
    };
    const made = await runtime.plans.lock({ plan: planOf(server), lock }, OPERATOR);
    assertEquals(made.modules["./other.ts"]?.integrity, integrity);
    assert(made.modules[`${server.url}tool.ts`]?.integrity !== integrity);
    assertEquals(Object.keys(made.files).length, 4);
    const broken = await refusal(() =>
      runtime.plans.lock({ plan: planOf(server), lock: { version: 2 } }, OPERATOR)
    );
    assertEquals(broken.code, "lock_invalid");
  }));

Deno.test("lock() refuses code that the plan itself does not pin", () =>
  withServer(async (server, runtime) => {
    const plan = planOf(server, {}, { integrity: `sha256-${"A".repeat(42)}A=` });
    assertEquals(
      (await refusal(() => runtime.plans.lock({ plan }, OPERATOR))).code,
      "module_integrity_mismatch",
    );
  }));

Deno.test("explain() and lock() report modules of agents at their paths, once", () =>
  withServer(async (server, runtime) => {
    const bring = { module: "tool-y", source: `${server.url}loop.ts`, permissions: { run: ["git"] } };
    const plan = planOf(server, {
      agents: {
        plain: { description: "has what the plan has" },
        helper: { tools: [bring] },
      },
    }, { permissions: { run: ["git"] } });
    const result = await runtime.plans.explain({ plan }, OPERATOR);
    const brought = result.modules.filter(({ path }) => path.startsWith("agents."));
    assertEquals(brought.map(({ path, module, permissions }) => [path, module, permissions.asked]), [
      ["agents.helper.tools[0]", "tool-y", { run: ["git"] }],
    ]);
    assert(result.red_flags.some(({ path }) => path === "agents.helper.tools[0].permissions.run"));
    const { modules } = await runtime.plans.lock({ plan }, OPERATOR);
    assertEquals(Object.keys(modules), [`${server.url}loop.ts`, `${server.url}tool.ts`]);
  }));

Deno.test("explain() reports every module that cannot be fetched, not only the first", () =>
  withServer(async (server, runtime) => {
    const lost = (name: string) => ({ module: `tool-${name}`, source: `${server.url}${name}.ts` });
    const plan = { ...planOf(server), tools: [lost("a"), lost("b")] };
    const error = await refusal(() => runtime.plans.explain({ plan }, OPERATOR));
    assertEquals(error.code, "module_fetch_failed");
    assertEquals(error.details.map(({ path }) => path), ["tools[0].source", "tools[1].source"]);
  }));

Deno.test("explain() and lock() refuse a caller's plan before the first packet", () =>
  withServer(async (server, runtime) => {
    const plan = planOf(server);
    for (const tool of [runtime.plans.explain, runtime.plans.lock]) {
      assertEquals((await refusal(() => tool({ plan }, CALLER))).code, "module_source_denied");
    }
    assertEquals(server.requests, []);
  }));

Deno.test("explain() reports the effective permissions of a caller's plan", () =>
  withServer(async (server, runtime, policy) => {
    policy.modules.allow = [server.url];
    policy.modules.private_hosts = [`127.0.0.1:${server.port}`];
    policy.permissions.max.net = ["127.0.0.1"];
    const asking = { plan: planOf(server, {}, { permissions: { net: ["127.0.0.1"] } }) };
    const result = await runtime.plans.explain(asking, CALLER);
    assertEquals(result.modules.at(-1)?.permissions.granted, { net: ["127.0.0.1"] });
    assertEquals([result.modules.at(-1)?.isolation, result.summary.inside], ["process", []]);
    const more = await refusal(() =>
      runtime.plans.explain({ plan: planOf(server, {}, { permissions: { net: true } }) }, CALLER)
    );
    assertEquals(more.code, "policy_refused");
  }));

Deno.test("explain() says of a module inside the program that it may do what the program may, whatever its grant", () =>
  withServer(async (server, runtime, policy) => {
    policy.modules.inline = [server.url];
    policy.modules.private_hosts = [`127.0.0.1:${server.port}`];
    const plan = planOf(server, {}, { permissions: { net: ["127.0.0.1"] } });
    const { modules, summary, red_flags } = await runtime.plans.explain({ plan }, OPERATOR);
    const own = modules.at(-1)!;
    const all = {
      net: true,
      read: true,
      write: true,
      env: true,
      run: true,
      sys: true,
      ffi: true,
      import: true,
    };
    assertEquals([own.permissions.asked, own.permissions.granted, summary.may], [
      { net: ["127.0.0.1"] },
      all,
      all,
    ]);
    assertEquals(summary.inside, [own.module]);
    const begin =
      `Runs ${own.module} inside this program, with all that the program may; may read and write every file`;
    assertEquals(summary.text.slice(0, begin.length), begin);
    assert(codes(red_flags).includes("isolation_inline"));
  }));

Deno.test("explain() reports a redirect to another origin", () =>
  withServer(async (server, runtime, policy) => {
    await using other = serveFiles({ "x.ts": () => Response.redirect(`${server.url}loop.ts`, 302) });
    policy.modules.private_hosts = [`127.0.0.1:${server.port}`];
    const plan = planOf(server, {}, { source: `${other.url}x.ts` });
    const result = await runtime.plans.explain({ plan }, OPERATOR);
    assert(codes(result.red_flags).includes("source_redirected"));
    assertEquals(result.modules.at(-1)?.url, `${server.url}loop.ts`);
    assertEquals(
      result.deno_flags,
      [`--allow-net=127.0.0.1:${other.port},127.0.0.1:${server.port}`].map(sortedHosts),
    );
  }));

function sortedHosts(flag: string): string {
  const [name, hosts = ""] = flag.split("=");
  return `${name}=${hosts.split(",").sort().join(",")}`;
}

Deno.test("explain() never reports a query of a URL or the code of a data: URL", () =>
  withServer(async (server, runtime) => {
    server.files["tool.ts"] = FILES["loop.ts"];
    const tools = [
      { module: "tool-a", source: `${server.url}tool.ts?signature=s3cret` },
      {
        module: "tool-b",
        source: `data:text/javascript,${encodeURIComponent("export function mount(){/*s3cret*/}")}`,
      },
    ];
    const result = await runtime.plans.explain({ plan: { ...planOf(server), tools } }, OPERATOR);
    assertEquals(JSON.stringify(result).includes("s3cret"), false);
    assert(codes(result.red_flags).includes("source_inline"));
  }));

Deno.test("diff() compares without authorising or fetching, and redacts secrets", () =>
  withServer(async (server, runtime) => {
    const from = planOf(server, {}, { config: { api_key: "sk-old-secret", a: 1 } });
    const to = planOf(server, {}, { config: { api_key: "sk-new-secret", a: 2 } });
    const diff = await runtime.plans.diff({ plan: from }, { plan: to }, CALLER);
    assertEquals(diff.other.map(({ path }) => path), ["tools[0].config.api_key", "tools[0].config.a"]);
    assertEquals(JSON.stringify(diff).includes("secret"), false);
    assertEquals(server.requests, []);
    const error = await refusal(() => runtime.plans.diff({ plan: from }, { plan: {} }, CALLER));
    assertMatch(error.message, /the plan "to"/);
  }));

Deno.test("POST /v1/plans/explain, lock and diff answer according to their schemas", () =>
  withServer(async (server, runtime, policy) => {
    policy.modules.allow = [server.url];
    policy.modules.inline = [server.url];
    policy.modules.private_hosts = [`127.0.0.1:${server.port}`];
    const app = createApp({ runtime, authenticate: () => CALLER });
    const post = (path: string, body: unknown, type = "application/json") =>
      app.fetch(
        new Request(`http://localhost/v1/plans/${path}`, {
          method: "POST",
          headers: { authorization: "Bearer k", "content-type": type },
          body: typeof body === "string" ? body : JSON.stringify(body),
        }),
      );
    const plan = planOf(server);
    const lock = await bodyOf(await post("lock", { plan }), "Lock");
    const result = await bodyOf(await post("explain", { plan, lock }), "Explanation");
    assertEquals(result.modules.at(-1).files.length, 3);
    const bare = await bodyOf(await post("explain", JSON.stringify(plan), "application/yaml"), "Explanation");
    assertEquals([bare.plan_hash, bare.lock_hash], [result.plan_hash, null]);
    assertEquals((await bodyOf(await post("check", { plan, lock }), "PlanCheck")).ok, true);
    assertEquals((await bodyOf(await post("check", { plan, lock: {} }), "PlanCheck")).ok, false);
    assertEquals(await problemOf(await post("explain", { plan, lock: { version: 3 } })), "422 lock_invalid");
    assertEquals(await problemOf(await post("explain", {})), "400 request_invalid");
    const diff = await bodyOf(
      await post("diff", { from: JSON.stringify(plan), to: { ...plan, tools: [] } }),
      "PlanDiff",
    );
    assertEquals(diff.narrows.length, 1);
    assertEquals(await problemOf(await post("diff", { from: plan })), "400 request_invalid");
    assertEquals(
      await problemOf(await post("diff", { from: plan, to: { plan_ref: "none" } })),
      "404 not_found",
    );
    server.files["data.json"] = `{"a": 2}`;
    const other = createRuntime({ policy, env: () => undefined });
    const elsewhere = createApp({ runtime: other, authenticate: () => CALLER });
    const refused = await elsewhere.fetch(
      new Request("http://localhost/v1/plans/explain", {
        method: "POST",
        headers: { authorization: "Bearer k", "content-type": "application/json" },
        body: JSON.stringify({ plan, lock }),
      }),
    );
    assertEquals(await problemOf(refused), "409 module_integrity_mismatch");
    await other.close();
  }));

Deno.test("explain() names the variables of keys and addresses that a plan does not state", async () => {
  const runtime = createRuntime({ env: () => undefined });
  const session = { orchestrator: "loop-basic", context: "context-simple" };
  const variables = async (config: object) => {
    const plan = { session, providers: [{ module: "provider-anthropic", config }] };
    const { env, warnings } = await runtime.plans.explain({ plan }, OPERATOR);
    assertEquals(warnings, []);
    return env;
  };
  try {
    assertEquals(await variables({}), ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"]);
    assertEquals(await variables({ api_key: "${MY_KEY:none}" }), ["ANTHROPIC_BASE_URL", "MY_KEY"]);
    assertEquals(await variables({ base_url: "http://127.0.0.1:1" }), []);
  } finally {
    await runtime.close();
  }
});

Deno.test("lock() returns no path and no query of an operator's plan to a caller", async () => {
  await using temporary = await temporaryFolder();
  const folder = temporary.path;
  const code = "export const mount = () => {};";
  await using server = serveFiles({ "x.ts": code });
  await Deno.writeTextFile(`${folder}/x.ts`, code);
  const written = (source: string) =>
    JSON.stringify({
      session: { orchestrator: "loop-streaming", context: "context-simple" },
      tools: [{ module: "tool-x", source }],
    });
  await Deno.writeTextFile(`${folder}/path.json`, written(`${folder}/x.ts`));
  await Deno.writeTextFile(`${folder}/query.json`, written(`${server.url}x.ts?token=secret`));
  await Deno.writeTextFile(`${folder}/plain.json`, written("./x.ts"));
  const runtime = createRuntime({ plans: new URL(`file://${folder}/`), home: HOME });
  const lock = (plan_ref: string, caller: Caller) => runtime.plans.lock({ plan_ref }, caller);
  for (const name of ["path", "query"]) {
    const error = await refusal(() => lock(name, CALLER));
    assertEquals([error.code, error.message.includes(folder)], ["policy_refused", false]);
    assertEquals(Object.keys((await lock(name, OPERATOR)).modules).length, 1);
  }
  assertEquals(Object.keys((await lock("plain", CALLER)).modules), ["./x.ts"]);
  await runtime.close();
});
