/** `model` of a request: which plan runs on it, and who may choose it. */
import { createRuntime } from "../../src/app/runtime.ts";
import { defaultPolicy } from "../../src/policy/settings.ts";
import type { Caller, Run, RunRequest } from "../../src/runs/types.ts";
import { MockProvider } from "../../src/testing/mock_provider.ts";
import type { Coordinator, JsonObject } from "../../src/sdk/types.ts";
import { assertEquals } from "../assert.ts";
import { refusal } from "../support/plans.ts";

const CALLER: Caller = { name: "key:a", namespace: "a", origin: "caller" };
const OPERATOR: Caller = { name: "terminal", namespace: "local", origin: "operator" };
const NO_KEY =
  "Cannot use provider-locked without a key: set the variable LOCKED_KEY; keys are created at https://locked.example";

/** A runtime with the providers `acme`, which answers with its model, and `locked`, which has no key. */
async function runtimeWith(plans: Record<string, string> = {}, model = "") {
  const folder = await Deno.makeTempDir();
  for (const [name, text] of Object.entries(plans)) await Deno.writeTextFile(`${folder}/${name}.yaml`, text);
  const runtime = createRuntime({
    policy: { ...defaultPolicy(), model },
    plans: new URL(`file://${folder}/`),
    modules: {
      "provider-acme": async (coordinator: Coordinator, config: JsonObject = {}) => {
        const text = `acme ${config.model ?? "default"}${config.tone ? ` ${config.tone}` : ""}`;
        await coordinator.mount("providers", new MockProvider({ name: "acme", response: text }));
      },
      "provider-locked": () => ({ skipped: NO_KEY }),
    },
  });
  const run = async (request: Partial<RunRequest>, caller: Caller = CALLER): Promise<Run> => {
    const handle = await runtime.runs.create({ prompt: "hi", ...request }, caller, {});
    return await handle.settled("end");
  };
  return {
    run,
    runtime,
    async [Symbol.asyncDispose]() {
      await runtime.close();
      await Deno.remove(folder, { recursive: true });
    },
  };
}

const MOCK =
  "session: { orchestrator: loop-basic, context: context-simple }\nproviders: [{ module: provider-mock, config: { response: mock } }]\n";
const ACME = MOCK.replace(
  "provider-mock, config: { response: mock }",
  "provider-acme, config: { model: old, tone: kind }",
);

Deno.test("without a plan, the demo agent runs on the model", async () => {
  await using kit = await runtimeWith();
  const run = await kit.run({ model: "acme/big/one:2" });
  assertEquals([run.status, run.output_text], ["completed", "acme big/one:2"]);
  assertEquals(Object.keys(run.isolation).includes("tool-calculator"), true);
});

Deno.test("with a plan, the model replaces the plan's", async () => {
  await using kit = await runtimeWith();
  assertEquals((await kit.run({ plan: MOCK, model: "acme/new" })).output_text, "acme new");
  assertEquals((await kit.run({ plan: ACME, model: "acme/new" })).output_text, "acme new kind");
  assertEquals((await kit.run({ plan: ACME, model: "acme" })).output_text, "acme old kind");
});

Deno.test("a session continues on another model, for that run; a session that began on a model keeps it", async () => {
  await using kit = await runtimeWith();
  const { session_id } = await kit.run({ plan: MOCK });
  assertEquals((await kit.run({ session_id, model: "acme/new" })).output_text, "acme new");
  assertEquals((await kit.run({ session_id })).output_text, "mock");
  const { data: messages } = await kit.runtime.runs.sessions.messages(CALLER, session_id);
  assertEquals(messages.filter(({ role }) => role === "assistant").length, 3);
  const begun = await kit.run({ model: "acme/one" });
  assertEquals((await kit.run({ session_id: begun.session_id })).output_text, "acme one");
  assertEquals((await kit.run({ session_id: begun.session_id, model: "acme/two" })).output_text, "acme two");
});

Deno.test("a run on a model replays, and runs again from an entry, on that model", async () => {
  await using kit = await runtimeWith();
  const { session_id } = await kit.run({ plan: MOCK });
  const run = await kit.run({ session_id, model: "acme/new" });
  assertEquals(await kit.runtime.runs.replay(CALLER, run.id), { equal: true });
  const again = await kit.runtime.runs.rerun(CALLER, run.id, { from_event: 1 }, {});
  assertEquals((await again.settled("end")).output_text, "acme new");
});

Deno.test("the operator chooses the model of any plan, a caller only of its own and of the demo plan", async () => {
  await using kit = await runtimeWith({ support: MOCK });
  const named = { plan_ref: "support", model: "acme/new" };
  assertEquals((await kit.run(named, OPERATOR)).output_text, "acme new");
  const refused = await refusal(() => kit.run(named));
  assertEquals([refused.code, refused.message], [
    "policy_refused",
    'Cannot use "model" with plan "support": only the operator chooses the model of a plan on the server: leave "model" out, or send a plan of your own',
  ]);
  const { session_id } = await kit.run({ plan_ref: "support" });
  const continued = await refusal(() => kit.run({ session_id, model: "acme/new" }));
  assertEquals(continued.code, "policy_refused");
});

Deno.test("the setting model is the demo agent's; a plan named default and a request's model come first", async () => {
  await using demo = await runtimeWith({}, "acme/set");
  assertEquals((await demo.run({})).output_text, "acme set");
  assertEquals((await demo.run({ model: "acme/asked" })).output_text, "acme asked");
  assertEquals((await demo.run({ plan: MOCK })).output_text, "mock");
  await using standard = await runtimeWith({ default: MOCK }, "acme/set");
  assertEquals((await standard.run({})).output_text, "mock");
  assertEquals((await standard.run({ model: "acme/asked" })).output_text, "acme asked");
});

Deno.test("a missing key refuses the run with the variable and where to get a key, whatever else the plan has", async () => {
  await using kit = await runtimeWith();
  for (const plan of [undefined, MOCK, MOCK.replace("providers: [", "providers: [provider-locked, ")]) {
    const error = await refusal(() => kit.run({ ...(plan ? { plan } : {}), model: "locked/x" }));
    assertEquals([error.code, error.message, error.details], [
      "module_load_failed",
      `Cannot initialize without provider "provider-locked": ${NO_KEY}`,
      [{ path: "providers[0]", message: NO_KEY }],
    ]);
  }
});

Deno.test("checks of a plan with a model report an unknown provider and an invalid plan", async () => {
  await using kit = await runtimeWith();
  const check = (plan: string, model: string) => kit.runtime.plans.check({ plan, model }, CALLER);
  assertEquals((await check(MOCK, "acme/x")).ok, true);
  const unknown = await check(MOCK, "acne/x");
  assertEquals([unknown.ok, unknown.code, unknown.errors.length], [false, "request_invalid", 1]);
  const invalid = await check("session: {}", "acme/x");
  assertEquals([invalid.ok, invalid.code, invalid.errors[0]?.line], [false, "plan_invalid", 1]);
});
