import { createPreamp, defaultPolicy, openStore } from "../../src/server/mod.ts";
import { assertEquals, assertMatch } from "../assert.ts";
import { temporaryFolder } from "../support/folder.ts";

const PLAN = {
  session: { orchestrator: "loop-basic", context: "context-simple" },
  providers: [{
    module: "provider-mock",
    config: {
      responses: [
        { tool_calls: [{ name: "calculator", arguments: { expression: "1" } }] },
        "<${X-Run-Token}>",
      ],
    },
  }],
  tools: ["tool-calculator"],
  hooks: [{ module: "hooks-approval", config: { rules: [{ tool: "calculator", action: "ask" }] } }],
};

const unlimited = defaultPolicy();
unlimited.rates = { requests_per_minute: 0, runs_per_minute: 0 };

/** Starts a run with a header on a server, which stops while it asks; resolves to the run of the next one. */
async function continued(keys: readonly [string | undefined, string | undefined]) {
  await using folder = await temporaryFolder();
  const server = async (key: string | undefined) =>
    createPreamp({
      authenticate: null,
      log: null,
      runtime_log: null,
      plans: null,
      policy: unlimited,
      store: await openStore(`sqlite:${folder.path}/store.db`),
      env: (name) => name === "PREAMP_SECRET_KEY" ? key : undefined,
    });
  const first = await server(keys[0]);
  const post = (path: string, body: unknown, headers = {}) =>
    new Request(`http://localhost${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
  const request = post("/v1/runs", { prompt: "go", plan: PLAN, background: true }, {
    "x-run-token": "sk-of-the-caller",
  });
  const { id } = await (await first.fetch(request)).json();
  const runOf = async (preamp: typeof first) =>
    await (await preamp.fetch(new Request(`http://localhost/v1/runs/${id}`))).json();
  while ((await runOf(first)).status !== "awaiting_approval") await turn();
  await first.drain(0);
  await first.close();
  const second = await server(keys[1]);
  await second.runtime.start();
  let run = await runOf(second);
  while (run.ended_at === null) {
    const [asked] = run.status === "awaiting_approval" ? run.approvals : [];
    if (asked) {
      const answer = post(`/v1/runs/${id}/approvals/${asked.id}`, { decision: "allow" });
      await (await second.fetch(answer)).body?.cancel();
    }
    await turn();
    run = await runOf(second);
  }
  await second.close();
  return run;
}

const turn = () => new Promise((resolve) => setTimeout(resolve, 5));
const KEY = "0123456789abcdef0123456789abcdef";

Deno.test("a run that another server continues has the headers of its request, with PREAMP_SECRET_KEY", async () => {
  const { status, output_text } = await continued([KEY, KEY]);
  assertEquals([status, output_text], ["completed", "<[REDACTED]>"]);
});

Deno.test("without the key such a run ends interrupted, and says which header is missing", async () => {
  for (const keys of [[undefined, KEY], [KEY, undefined], [KEY, `other ${KEY}`]] as const) {
    const { status, error } = await continued(keys);
    assertEquals([status, error.code], ["failed", "interrupted"]);
    assertMatch(error.message, /X-Run-Token/);
  }
});
