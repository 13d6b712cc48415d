/** Tests of runs that the embedding program starts itself. */
import { defineTool, type JsonObject, z } from "preamp";
import { ANONYMOUS, createPreamp, type LibraryRequest } from "preamp/server";
import { assertEquals, assertMatch, assertRejects } from "../assert.ts";

const greet = defineTool({
  name: "greet",
  description: "Greets someone.",
  input: z.object({ name: z.string() }),
  execute: ({ name }) => `Hello, ${name}!`,
});

function planOf(parts: JsonObject = {}): JsonObject {
  const responses = [{ tool_calls: [{ name: "greet", arguments: { name: "Ada" } }] }, { text: "Done." }];
  return {
    session: { orchestrator: "loop-streaming", context: "context-simple" },
    providers: [{ module: "provider-mock", config: { responses } }],
    tools: ["tool-greet"],
    ...parts,
  };
}

const open = () =>
  createPreamp({
    authenticate: null,
    log: null,
    runtime_log: null,
    env: (name) => name === "ANSWER" ? "From a variable." : undefined,
    modules: {
      "tool-greet": greet,
      "tool-broken": () => {
        throw new Error("out of order");
      },
    },
  });

Deno.test("preamp.run() starts a run that yields its events and resolves to its text", async () => {
  await using preamp = open();
  const run = await preamp.run({ prompt: "Greet Ada", plan: planOf() });
  const events: string[] = [];
  let result: unknown;
  for await (const { event, data } of run) {
    events.push(event);
    if (event === "tool:post") result = (data.result as JsonObject).output;
  }
  assertEquals([events[0], events.at(-1), result], ["run:start", "run:end", "Hello, Ada!"]);
  assertEquals([await run.text, (await run.result).id], ["Done.", run.id]);
});

Deno.test("preamp.run({ session }) continues a conversation with its plan", async () => {
  await using preamp = open();
  const first = await preamp.run({ prompt: "Greet Ada", plan: planOf() });
  assertEquals(await first.text, "Done.");
  const second = await preamp.run({ prompt: "Again", session: first.session_id });
  assertEquals([await second.text, second.session_id], ["Done.", first.session_id]);
  await assertRejects(() => preamp.run({ prompt: "?", session: "ses_none" }), Error, "Cannot find session");
});

Deno.test("a plan of preamp.run() is the operator's: it reads variables; one for a caller does not", async () => {
  await using preamp = open();
  const plan = planOf({ providers: [{ module: "provider-mock", config: { response: "${ANSWER}" } }] });
  assertEquals((await (await preamp.run({ prompt: "?", plan })).result).status, "completed");
  const refused = await preamp.run({ prompt: "?", plan, caller: ANONYMOUS }).catch(({ code }) => code);
  assertEquals(refused, "policy_refused");
});

Deno.test("run.text rejects with the reason of a run that did not complete", async () => {
  await using preamp = open();
  const limited = await preamp.run({ prompt: "?", plan: planOf(), limits: { max_iterations: 1 } });
  const error = await assertRejects(() => limited.text) as Error & { code: string; facts: JsonObject };
  assertEquals([error.code, error.facts.stop_reason], ["limit_reached", "limit:max_iterations"]);
  const signal = AbortSignal.abort();
  const cancelled = await preamp.run({ prompt: "?", plan: planOf(), signal });
  assertEquals(await cancelled.text.catch(({ code }) => code), "cancelled");
});

Deno.test("preamp.run({ ask }) asks about a call; without it the call is denied at once", async () => {
  await using preamp = open();
  const hooks = [{ module: "hooks-approval", config: { rules: [{ tool: "greet", action: "ask" }] } }];
  const start = async (more: Partial<LibraryRequest> = {}) => {
    const run = await preamp.run({ prompt: "?", plan: planOf({ hooks }), ...more });
    const { approvals, warnings } = await run.result;
    return [approvals.map(({ decision }) => decision), warnings.map(({ code }) => code)];
  };
  const asked: (string | null)[] = [];
  const ask: LibraryRequest["ask"] = ({ tool_name }) => {
    asked.push(tool_name);
    return Promise.resolve({ decision: "allow" });
  };
  assertEquals([await start({ ask }), asked], [[[], []], ["greet"]]);
  assertEquals(await start(), [["unanswered"], ["approval_unanswered"]]);
});

Deno.test("a tool whose mount throws fails the program's own run, unless it is not required", async () => {
  await using preamp = open();
  const start = async (tool: JsonObject, more: Partial<LibraryRequest> = {}) => {
    const plan = planOf({ tools: ["tool-greet", { module: "tool-broken", ...tool }] });
    const { status, warnings } = await (await preamp.run({ prompt: "?", plan, ...more })).result;
    return [status, ...warnings.map(({ code }) => code)];
  };
  const error = await assertRejects(() => start({})) as Error & { code: string; details: { hint: string }[] };
  assertEquals(error.code, "module_load_failed");
  assertMatch(error.message, /Cannot initialize without tool "tool-broken": out of order/);
  assertMatch(error.details[0]!.hint, /required: false/);
  const skipped = ["completed", "module_mount_failed"];
  assertEquals(await start({ required: false }), skipped);
  assertEquals(await start({}, { caller: ANONYMOUS }), skipped);
});
