/** What the person who has started a server may do over HTTP, and no one else. */
import { NamedPlans } from "../../../src/app/named_plans.ts";
import { hashKey, KeyRing } from "../../../src/policy/api_keys.ts";
import { authenticateWith, createPreamp } from "../../../src/server/mod.ts";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "../../assert.ts";
import { fakeServer } from "../../modules/providers/fake_server.ts";
import { temporaryFolder } from "../../support/folder.ts";
import { bodyOf } from "../../support/http.ts";

const SESSION = "session: { orchestrator: loop-basic, context: context-simple }\n";
const PLAN = `# my plan\n${SESSION}providers: [{ module: provider-mock, config: { response: Saved. } }]\n`;
/** Says which folder the workspace is. */
const WHERE = `${SESSION}providers: [provider-mock]\nsystem: You work in \${WORKSPACE}.\n`;

/** JSON whose shape the test asserts. */
// deno-lint-ignore no-explicit-any
type Json = any;

/** A server with the key of its owner and that of another caller. */
async function server() {
  const folder = await temporaryFolder();
  const url = (name: string) => new URL(`file://${folder.path}/${name}/`);
  for (const name of ["home", "first", "work", "elsewhere"]) await Deno.mkdir(url(name));
  await Deno.writeTextFile(new URL("taken.yaml", url("first")), PLAN);
  await Deno.writeTextFile(new URL("where.yaml", url("first")), WHERE);
  const start = (owner_key: string | undefined) =>
    createPreamp({
      authenticate: authenticateWith(new KeyRing([{ name: "other", sha256: hashKey("k") }], owner_key)),
      home: url("home"),
      workspace: url("work"),
      plans: new NamedPlans([{ url: url("first") }, { url: new URL("plans/", url("home")) }]),
    });
  const preamp = start("own");
  const send = async (
    key: string,
    method: string,
    path: string,
    body?: unknown,
    type = "application/json",
  ) => {
    const response = await preamp.fetch(
      new Request(`http://localhost${path}`, {
        method,
        headers: { authorization: `Bearer ${key}`, ...body === undefined ? {} : { "content-type": type } },
        ...body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) },
      }),
    );
    return { status: response.status, body: await response.json() as Json };
  };
  return {
    path: folder.path,
    send,
    async [Symbol.asyncDispose]() {
      await preamp.close();
      await folder[Symbol.asyncDispose]();
    },
  };
}

Deno.test("GET /v1/caller says whose key it is", async () => {
  await using at = await server();
  assertEquals((await at.send("own", "GET", "/v1/caller")).body, {
    name: "key:generated",
    namespace: "local",
    owner: true,
  });
  assertEquals((await at.send("k", "GET", "/v1/caller")).body, {
    name: "key:other",
    namespace: "key:other",
    owner: false,
  });
});

Deno.test("PUT /v1/plans/{name} saves a plan as it was written, which then runs with the operator's rights", async () => {
  await using at = await server();
  const saved = await at.send("own", "PUT", "/v1/plans/mine", PLAN, "application/yaml");
  assertEquals([saved.status, saved.body.name, saved.body.plan.providers[0].config.response], [
    200,
    "mine",
    "Saved.",
  ]);
  assertEquals(await Deno.readTextFile(`${at.path}/home/plans/mine.yaml`), PLAN);
  const run = await at.send("own", "POST", "/v1/runs", { plan_ref: "mine", prompt: "hi" });
  assertEquals([run.status, run.body.output_text], [200, "Saved."]);
  const again = await at.send("own", "PUT", "/v1/plans/mine", { plan: { ...saved.body.plan, system: "x" } });
  assertEquals([again.status, again.body.plan.system], [200, "x"]);
  const listed = await at.send("own", "GET", "/v1/plans");
  assertEquals(listed.body.data.map(({ name }: Json) => name), ["mine", "taken", "where"]);
});

Deno.test("PUT /v1/plans/{name} refuses other callers, bad names and plans, taken names and redacted secrets", async () => {
  await using at = await server();
  const save = async (key: string, name: string, plan: unknown) => {
    const { status, body } = await at.send(key, "PUT", `/v1/plans/${name}`, { plan });
    return [status, body.error?.code];
  };
  assertEquals(await save("k", "mine", PLAN), [403, "forbidden"]);
  assertEquals(await save("unknown", "mine", PLAN), [401, "unauthorized"]);
  assertEquals(await save("own", "..%2Fmine", PLAN), [400, "request_invalid"]);
  assertEquals(await save("own", "taken", PLAN), [400, "request_invalid"]);
  assertEquals(await save("own", "mine", "tools: 3"), [400, "plan_invalid"]);
  const redacted = `${PLAN}system: "[REDACTED]"\n`;
  assertEquals(await save("own", "mine", redacted), [400, "request_invalid"]);
  assertEquals((await Array.fromAsync(Deno.readDir(`${at.path}/home`))).map(({ name }) => name), []);
});

Deno.test("a server that takes no plans from a home folder saves none", async () => {
  await using folder = await temporaryFolder();
  const home = new URL(`file://${folder.path}/`);
  await using preamp = createPreamp({
    authenticate: authenticateWith(new KeyRing([], "own")),
    home,
    plans: new URL("plans/", import.meta.url),
  });
  const response = await preamp.fetch(
    new Request("http://localhost/v1/plans/mine", {
      method: "PUT",
      headers: { authorization: "Bearer own", "content-type": "application/json" },
      body: JSON.stringify({ plan: PLAN }),
    }),
  );
  assertEquals([response.status, (await response.json()).error.code], [403, "forbidden"]);
});

Deno.test("the owner chooses the model of a plan on the server, and of its session; another caller does not", async () => {
  await using at = await server();
  const body = { plan_ref: "where", model: "mock/other", prompt: "hi" };
  const run = await at.send("own", "POST", "/v1/runs", body);
  assertEquals([run.status, run.body.status], [200, "completed"]);
  const { session_id } = run.body;
  assertEquals(
    (await at.send("own", "POST", "/v1/runs", { session_id, model: "mock/x", prompt: "hi" })).status,
    200,
  );
  const refused = await at.send("k", "POST", "/v1/runs", body);
  assertEquals([refused.status, refused.body.error.code], [403, "policy_refused"]);
  const explained = await at.send("own", "POST", "/v1/plans/explain", { plan_ref: "where", model: "mock/x" });
  assertEquals(explained.status, 200);
});

Deno.test("the owner chooses the workspace of a run; its session, a rerun and what the model was sent keep it", async () => {
  await using at = await server();
  const elsewhere = `${at.path}/elsewhere`;
  /** Returns the folder in the system text of a run. */
  const where = async ({ id }: Json) =>
    JSON.stringify((await at.send("own", "GET", `/v1/runs/${id}/requests`)).body).match(
      /You work in ([^"]*?)\./,
    )?.[1];
  const usual = await at.send("own", "POST", "/v1/runs", { plan_ref: "where", prompt: "hi" });
  assertEquals(await where(usual.body), `${at.path}/work`);
  const body = { plan_ref: "where", prompt: "hi", workspace: elsewhere };
  const first = await at.send("own", "POST", "/v1/runs", body);
  assertEquals([first.status, await where(first.body)], [200, elsewhere]);
  const next = await at.send("own", "POST", "/v1/runs", { session_id: first.body.session_id, prompt: "hi" });
  assertEquals(await where(next.body), elsewhere);
  const rerun = await at.send("own", "POST", `/v1/runs/${first.body.id}/replay`, { from_event: 1 });
  assertEquals([rerun.status, await where(rerun.body)], [200, elsewhere]);
  const replayed = await at.send("own", "POST", `/v1/runs/${first.body.id}/replay`, {});
  assertEquals(replayed.body, { equal: true });
});

Deno.test("a workspace must be a folder of the server's machine, and only the owner names one", async () => {
  await using at = await server();
  const workspace = `${at.path}/elsewhere`;
  for (const path of ["/v1/runs", "/v1/plans/explain"]) {
    const body = path === "/v1/runs" ? { plan_ref: "where", prompt: "hi" } : { plan_ref: "where" };
    for (
      const [folder, text] of [
        ["elsewhere", "must be an absolute path"],
        [`${at.path}/none`, "there is no such folder"],
        [`${at.path}/first/taken.yaml`, "there is no such folder"],
      ] as const
    ) {
      const refused = await at.send("own", "POST", path, { ...body, workspace: folder });
      assertEquals([refused.status, refused.body.error.details[0].path], [400, "workspace"]);
      assertStringIncludes(refused.body.error.message, text);
    }
    for (const folder of [workspace, `${at.path}/none`]) { // the answer does not say which folders there are
      const refused = await at.send("k", "POST", path, { ...body, workspace: folder });
      assertEquals([refused.status, refused.body.error.code], [403, "policy_refused"]);
    }
  }
  const theirs = await at.send("k", "POST", "/v1/runs", { plan_ref: "where", prompt: "hi" });
  const { session_id } = theirs.body;
  const continued = await at.send("k", "POST", "/v1/runs", { session_id, prompt: "hi", workspace });
  assertEquals([continued.status, continued.body.error.code], [403, "policy_refused"]);
});

Deno.test("GET /v1/models lists what can run here with price and window, no key, and only for the owner", async () => {
  const key = "sk-canary-of-this-test";
  await using vendor = fakeServer(() =>
    Response.json({
      data: [{ id: "claude-sonnet-5-5", display_name: "Claude Sonnet 5.5" }],
      has_more: false,
    })
  );
  await using broken = fakeServer(({ headers }) =>
    Response.json({ error: { message: `bad key ${headers.get("authorization")}` } }, { status: 401 })
  );
  const env: Record<string, string> = {
    ANTHROPIC_API_KEY: key,
    ANTHROPIC_BASE_URL: vendor.url,
    OPENAI_API_KEY: key,
    OPENAI_BASE_URL: broken.url,
    OLLAMA_HOST: broken.url,
  };
  await using preamp = createPreamp({
    authenticate: authenticateWith(new KeyRing([{ name: "other", sha256: hashKey("k") }], "own")),
    env: (name) => env[name],
  });
  const get = (key: string) =>
    preamp.fetch(new Request("http://localhost/v1/models", { headers: { authorization: `Bearer ${key}` } }));
  const response = await get("own");
  const text = await response.clone().text();
  assert(!text.includes(key), text);
  const { data, errors } = await bodyOf(response, "UsableModelList");
  const [{ pricing, context_window, ...model }] = data;
  assertEquals(model, {
    model: "anthropic/claude-sonnet-5-5",
    provider: "anthropic",
    display_name: "Claude Sonnet 5.5",
    max_output_tokens: model.max_output_tokens,
  });
  assert(pricing.output_per_million > pricing.input_per_million && context_window > 0, text);
  assertEquals([data.length, errors.map(({ provider }: Json) => provider)], [1, ["ollama", "openai"]]);
  const refused = await get("k");
  assertEquals([refused.status, (await refused.json()).error.code], [403, "forbidden"]);
});

Deno.test("a plan in a request of the owner has a caller's rights: a pasted plan is a stranger's", async () => {
  await using at = await server();
  const plan = `${PLAN}tools: [{ module: tool-bash, permissions: { run: [bash] } }]\n`;
  const run = await at.send("own", "POST", "/v1/runs", { plan, prompt: "hi" });
  assertEquals([run.status, run.body.error.code], [403, "policy_refused"]);
  assertMatch(run.body.error.message, /run/);
});
