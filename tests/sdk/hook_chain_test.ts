/** Tests of the chain alone; `contracts/hook_registry.ts` tests handlers in a complete registry. */
import fc from "fast-check";
import { GATES } from "../../src/sdk/event_table.ts";
import {
  type ChainHandler,
  isWildcard,
  matchesEvent,
  noopEmission,
  runChain,
} from "../../src/sdk/hook_chain.ts";
import type { Emission, HookHandler } from "../../src/sdk/hooks.ts";
import type { JsonObject } from "../../src/sdk/json.ts";
import { assert, assertEquals } from "../assert.ts";

type Given = Partial<Omit<ChainHandler, "handler">> & {
  returns?: unknown;
  throws?: unknown;
  handler?: HookHandler;
};

function handlers(...given: Given[]): ChainHandler[] {
  return given.map(({ returns, throws, handler, ...rest }, index) => ({
    name: `h${index}`,
    observes: false,
    fail_closed: false,
    timeout_ms: 0,
    handler: handler ?? (() => {
      if (throws !== undefined) throw throws;
      return returns as JsonObject;
    }),
    ...rest,
  }));
}

const run = (...given: Given[]) => runChain(handlers(...given), "tool:pre", { tool_name: "bash" });
const inject = (text: string, fields: JsonObject = {}) => ({
  returns: { action: "inject_context", context_injection: text, ...fields },
});

Deno.test("runChain() stops at a deny, with its reason and name", async () => {
  let ran = false;
  const emission = await run({ returns: { action: "deny", reason: "no" } }, {
    handler: () => void (ran = true),
  });
  assertEquals([emission.action, emission.reason, emission.hook_name, ran], ["deny", "no", "h0", false]);
});

Deno.test("runChain() lets a deny win over an earlier question", async () => {
  const emission = await run({ returns: { action: "ask_user", approval_prompt: "?" } }, {
    returns: { action: "deny", reason: "no" },
  });
  assertEquals([emission.action, emission.reason, emission.approval, emission.approval_prompt], [
    "deny",
    "no",
    null,
    null,
  ]);
});

Deno.test("runChain() adds a reason to a denial without one", async () => {
  for (const reason of [undefined, null, "", 5]) {
    assertEquals((await run({ returns: { action: "deny", reason } })).reason, "Denied by hook");
  }
});

Deno.test("runChain() passes modified data to the next handler and results in continue", async () => {
  const seen: unknown[] = [];
  const emission = await run(
    { returns: { action: "modify", data: { step: 1 }, reason: "first" } },
    { handler: (_, data) => (seen.push(data), { action: "modify", data: { step: 2 } }) },
  );
  assertEquals(seen, [{ step: 1 }]);
  assertEquals([emission.action, emission.modified, emission.hook_name, emission.reason], [
    "continue",
    true,
    "h1",
    null,
  ]);
  assertEquals(emission.data, { step: 2 });
});

Deno.test("runChain() ignores a modify without data", async () => {
  const emission = await run({ returns: { action: "modify" } });
  assertEquals([emission.modified, emission.hook_name, emission.data], [false, null, { tool_name: "bash" }]);
});

Deno.test("runChain() keeps modified data whatever wins", async () => {
  for (
    const [action, other] of [["inject_context", inject("A").returns], ["ask_user", { action: "ask_user" }], [
      "deny",
      { action: "deny" },
    ]] as const
  ) {
    const emission = await run({ returns: { action: "modify", data: { x: 1 } } }, { returns: other });
    assertEquals([emission.action, emission.modified, emission.data, emission.hook_name], [action, true, {
      x: 1,
    }, "h1"]);
  }
  const later = await run(inject("A", { reason: "because" }), {
    returns: { action: "modify", data: { x: 1 }, reason: "other" },
  });
  assertEquals([later.action, later.modified, later.hook_name, later.reason], [
    "inject_context",
    true,
    "h0",
    "because",
  ]);
});

Deno.test("runChain() merges injections and keeps each", async () => {
  const emission = await run(
    inject("A", { ephemeral: true }),
    inject("B", { context_injection_role: "user", append_to_last_tool_result: true }),
  );
  assertEquals(
    [
      emission.context_injection,
      emission.context_injection_role,
      emission.ephemeral,
      emission.append_to_last_tool_result,
    ],
    ["A\n\nB", "system", true, true],
  );
  assertEquals(emission.injections, [
    {
      text: "A",
      role: "system",
      ephemeral: true,
      append_to_last_tool_result: false,
      hook_name: "h0",
      event: "tool:pre",
    },
    {
      text: "B",
      role: "user",
      ephemeral: false,
      append_to_last_tool_result: true,
      hook_name: "h1",
      event: "tool:pre",
    },
  ]);
});

Deno.test("runChain() joins the questions of all handlers, as strict as each, and keeps the injections of others", async () => {
  const emission = await run(
    inject("A"),
    {
      returns: {
        action: "ask_user",
        approval_prompt: "First?",
        approval_timeout: 5,
        approval_default: "allow",
        risk_level: "high",
      },
    },
    { returns: { action: "ask_user", approval_prompt: "Second?", risk_level: "low", reason: "two" } },
    {
      returns: { action: "ask_user", approval_prompt: "First?", approval_options: ["Allow always", "Deny"] },
    },
    inject("B"),
  );
  assertEquals([emission.action, emission.reason, emission.hook_name], ["ask_user", "two", "h1, h2, h3"]);
  assertEquals(emission.approval, {
    prompt: "First?\nSecond?",
    options: ["Allow", "Deny"],
    timeout: 5,
    default: "deny",
    hook_name: "h1, h2, h3",
    risk_level: "high",
  });
  assertEquals(emission.approval_prompt, "First?\nSecond?");
  assertEquals(emission.injections.map((injection) => injection.text), ["A", "B"]);
});

Deno.test("runChain() fills in the defaults of a question", async () => {
  const { approval } = await run({
    returns: { action: "ask_user", approval_options: [], approval_timeout: -1 },
  });
  assertEquals(approval, {
    prompt: "Allow this operation?",
    options: ["Allow", "Deny"],
    timeout: null,
    default: "deny",
    hook_name: "h0",
  });
});

Deno.test("runChain() reports a handler that throws and continues", async () => {
  const failures: [string, unknown][] = [];
  const bad = new Error("bad");
  const emission = await runChain(handlers({ throws: bad }, inject("A")), "tool:post", {}, {
    onError: (handler, error) => failures.push([handler.name, error]),
  });
  assertEquals([emission.action, emission.context_injection], ["inject_context", "A"]);
  assertEquals(failures, [["h0", bad]]);
});

Deno.test("runChain() denies when a handler that fails closed throws or rejects", async () => {
  for (
    const handler of [() => {
      throw new Error("bad");
    }, () => Promise.reject(new Error("bad"))]
  ) {
    const emission = await run({ handler, fail_closed: true }, inject("never"));
    assertEquals([emission.action, emission.reason, emission.injections], [
      "deny",
      'Hook "h0" failed: bad',
      [],
    ]);
  }
});

Deno.test("runChain() denies after an invalid hook result", async () => {
  let reads = 0;
  const readOnce = {
    get action(): string {
      if (reads++ > 0) throw new Error("read again");
      return "block";
    },
  };
  const invalid = [42, "deny", [], true, { action: "block" }, { action: "modify", data: "x" }, readOnce];
  for (const returns of invalid) {
    const emission = await run({ returns });
    assertEquals([emission.action, emission.reason, emission.hook_name], [
      "deny",
      "Hook handler returned invalid response",
      "h0",
    ]);
  }
});

Deno.test("runChain() reports what an invalid hook result should be", async () => {
  const reported: string[] = [];
  const onError = (_handler: unknown, error: unknown) => reported.push((error as Error).message);
  for (const returned of ["deny", { action: "block" }, { action: "modify", data: "x" }]) {
    await runChain(handlers({ returns: returned }), "tool:pre", {}, { onError });
  }
  assertEquals(reported, [
    "it must return nothing or {action: …}: received text",
    'action of its result must be one of continue, deny, modify, inject_context, ask_user: received "block"',
    "data of its result must be an object: received text",
  ]);
});

Deno.test("runChain() continues on null, undefined and an object without an action", async () => {
  for (const returns of [null, undefined, {}, { reason: "x" }, Promise.resolve(null)]) {
    assertEquals((await run({ returns })).action, "continue");
  }
});

Deno.test("runChain() hands each handler its own copy", async () => {
  const data = { list: [1] };
  const spoil: HookHandler = (_, payload) => {
    (payload.list as number[]).push(2);
    return null;
  };
  const seen: unknown[] = [];
  const emission = await runChain(
    handlers({ handler: spoil }, { handler: (_, payload) => void seen.push(payload) }),
    "e",
    data,
  );
  assertEquals([data, seen, emission.data], [{ list: [1] }, [{ list: [1] }], { list: [1] }]);
});

Deno.test("runChain() takes modified data that is not JSON, and shares nothing with it", async () => {
  const data: JsonObject = { at: new Date(0), big: 1n, call: () => 1 };
  data.self = data;
  const emission = await run({ returns: { action: "modify", data } }, { returns: null });
  assertEquals(emission.data, { at: "1970-01-01T00:00:00.000Z", big: "1", self: "[Circular]" });
});

Deno.test("runChain() accepts only a user message from an observer", async () => {
  const observer = { observes: true, fail_closed: true };
  const emission = await run(
    {
      ...observer,
      returns: { action: "deny", reason: "no", user_message: "seen", user_message_level: "warning" },
    },
    { ...observer, returns: { action: "modify", data: {} } },
    { ...observer, returns: 42 },
    { ...observer, throws: new Error("bad") },
  );
  assertEquals([emission.action, emission.modified, emission.hook_name], ["continue", false, null]);
  assertEquals(emission.user_messages, [{ message: "seen", level: "warning", source: "hook:h0" }]);
});

Deno.test("runChain() delivers every user message, also of the one that denies (§5.5)", async () => {
  const emission = await run(
    { returns: { user_message: "one", user_message_source: "x" } },
    { returns: { action: "deny", reason: "no", user_message: "two", user_message_level: "error" } },
  );
  assertEquals(emission.user_messages, [
    { message: "one", level: "info", source: "hook:x" },
    { message: "two", level: "error", source: "hook:h1" },
  ]);
  assertEquals([emission.user_message, emission.user_message_level], ["one", "info"]);
});

Deno.test("runChain() puts a promise under the deadline, not a plain answer", async () => {
  const under: string[] = [];
  const deadline = (pending: Promise<unknown>, handler: ChainHandler) => (under.push(handler.name), pending);
  await runChain(handlers({ returns: null }, { returns: Promise.resolve(null) }), "e", {}, { deadline });
  assertEquals(under, ["h1"]);
});

Deno.test("noopEmission() contains the caller's own data", async () => {
  const data = { x: 1 };
  assert((await runChain([], "e", data)).data === data);
  assertEquals(noopEmission(data).action, "continue");
});

Deno.test("matchesEvent() knows exact names, prefixes and all", () => {
  const cases: [string, string, boolean][] = [
    ["tool:pre", "tool:pre", true],
    ["tool:pre", "tool:prepare", false],
    ["tool:*", "tool:pre", true],
    ["tool:*", "tools:pre", false],
    ["*", "anything", true],
    ["tool", "tool:pre", false],
  ];
  for (const [pattern, event, expected] of cases) {
    assertEquals([pattern, event, matchesEvent(pattern, event)], [pattern, event, expected]);
  }
  assertEquals(["*", "tool:*", "tool:pre", "x*"].map(isWildcard), [true, true, false, false]);
  assertEquals([...GATES], ["prompt:submit", "provider:request", "tool:pre"]);
});

type Answer =
  | { kind: "null" | "throw" | "deny" | "ask" | "nonsense" }
  | { kind: "modify"; value: number }
  | { kind: "inject"; text: string };
interface Step {
  answer: Answer;
  fail_closed: boolean;
  observes: boolean;
}

const step: fc.Arbitrary<Step> = fc.record({
  answer: fc.oneof(
    fc.record({
      kind: fc.constantFrom(
        "null" as const,
        "throw" as const,
        "deny" as const,
        "ask" as const,
        "nonsense" as const,
      ),
    }),
    fc.record({ kind: fc.constant("modify" as const), value: fc.integer() }),
    fc.record({ kind: fc.constant("inject" as const), text: fc.string() }),
  ),
  fail_closed: fc.boolean(),
  observes: fc.boolean(),
});

function answerOf(answer: Answer): unknown {
  switch (answer.kind) {
    case "throw":
      throw new Error("bad");
    case "deny":
      return { action: "deny", reason: "no" };
    case "ask":
      return { action: "ask_user", approval_prompt: "?" };
    case "modify":
      return { action: "modify", data: { value: answer.value } };
    case "inject":
      return { action: "inject_context", context_injection: answer.text };
    case "nonsense":
      return 42;
    default:
      return null;
  }
}

/** Returns whether this step ends the chain with a denial. */
function denies({ answer, fail_closed, observes }: Step): boolean {
  if (observes) return false;
  return answer.kind === "deny" || answer.kind === "nonsense" || (answer.kind === "throw" && fail_closed);
}

Deno.test("runChain() holds deny > ask_user > inject_context > continue, whatever the handlers answer (property)", async () => {
  await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 8 }), async (steps) => {
    const ran: number[] = [];
    const chain = handlers(...steps.map(({ answer, ...rest }, index) => ({
      ...rest,
      handler: () => (ran.push(index), answerOf(answer) as JsonObject),
    })));
    const emission: Emission = await runChain(chain, "e", { value: null });

    const end = steps.findIndex(denies);
    const reached = end < 0 ? steps : steps.slice(0, end + 1);
    assertEquals(ran, reached.map((_, index) => index));
    const active = reached.filter((one) => !one.observes).map((one) => one.answer);
    const asks = active.filter((answer) => answer.kind === "ask");
    const texts = active.flatMap((answer) => answer.kind === "inject" ? [answer.text] : []);
    const values = active.flatMap((answer) => answer.kind === "modify" ? [answer.value] : []);
    const action = end >= 0
      ? "deny"
      : asks.length > 0
      ? "ask_user"
      : texts.length > 0
      ? "inject_context"
      : "continue";
    assertEquals(emission.action, action);
    assertEquals(emission.injections.map((injection) => injection.text), texts);
    assertEquals([emission.modified, emission.data.value], [values.length > 0, values.at(-1) ?? null]);
    assertEquals(emission.context_injection, action === "inject_context" ? texts.join("\n\n") : null);
    assertEquals(emission.approval !== null, action === "ask_user");
    if (end >= 0) assertEquals(emission.hook_name, `h${end}`);
  }));
});
