/** Approvals of calls and prompts: who is asked, what is bound, and what each answer decides. */
import { canonicalHash } from "../../src/sdk/digest.ts";
import { MockProvider } from "../../src/testing/mock_provider.ts";
import type { ApprovalRequest } from "../../src/kernel/host.ts";
import type { HookResult, JsonObject } from "../../src/sdk/types.ts";
import { assertEquals } from "../assert.ts";
import { calls, hook, kit, tool, until } from "../support/sessions.ts";
import { ASK, asking } from "./asking_session.ts";

const AROUND = [
  ...["execution:start", "prompt:submit", "context:message", "provider:request", "content_block:start"],
  ...["content_block:end", "provider:response", "context:message", "tool:pre"],
];

const REST = [
  ...[
    "context:message",
    "provider:request",
    "content_block:start",
    "content_block:delta",
    "content_block:end",
  ],
  ...["provider:response", "context:message", "prompt:complete", "execution:end", "orchestrator:complete"],
];

Deno.test("a granted call runs after its approval, bound to its arguments", async () => {
  const { run, turn, data, of, inputs } = asking(["allow"]);
  assertEquals((await run()).status, "completed");
  assertEquals(inputs, [{ a: 1 }]);
  assertEquals(turn(), [...AROUND, "approval:required", "approval:granted", "tool:post", ...REST]);
  assertEquals(of("tool:pre")[0]?.verdict, { action: "ask_user", hook_name: "test-hook" });
  const args_hash = canonicalHash({ a: 1 });
  assertEquals(data("approval:required"), [{
    approval_id: "apr_1",
    tool_name: "t",
    tool_call_id: "c1",
    tool_input: { a: 1 },
    args_hash,
    action: "execute",
    risk_level: "high",
    prompt: "Allow t?",
    options: ["Allow", "Deny"],
    default: "deny",
    expires_at: "2026-01-01T00:05:00.000Z",
    hook_name: "test-hook",
  }]);
  assertEquals(data("approval:granted"), [{
    approval_id: "apr_1",
    tool_name: "t",
    tool_call_id: "c1",
    args_hash,
    decision: "allow",
    reason: null,
    decided_by: "tester",
  }]);
});

Deno.test("a call that needs approval is denied when no person can be asked", async () => {
  const { run, turn, data, inputs, lastResult } = asking(["unavailable"]);
  assertEquals((await run()).status, "completed");
  assertEquals(inputs, []);
  assertEquals(turn(), [...AROUND, "approval:required", "approval:denied", ...REST]);
  assertEquals(lastResult(), "Denied by hook: No approval system available");
  assertEquals([data("approval:denied")[0]?.decision, data("approval:denied")[0]?.reason], [
    "deny",
    "No approval system available",
  ]);
});

Deno.test("allow, allow once and allow always allow in upper and lower case; every other word denies", async () => {
  for (const word of ["Allow", "ALLOW ALWAYS", "Allow once", "allow"]) {
    const { run, inputs } = asking([word]);
    await run();
    assertEquals(inputs.length, 1, word);
  }
  for (const word of ["Deny", "Yes", "deny", "", "allowed"]) {
    const { run, inputs, turn, lastResult } = asking([word]);
    assertEquals((await run()).status, "completed");
    assertEquals(inputs, []);
    assertEquals(turn(), [...AROUND, "approval:required", "approval:denied", ...REST]);
    assertEquals(lastResult(), "Denied by hook: User denied: Allow t?");
  }
});

Deno.test("the model reads the reason that a person gives for a denial, and no other reason", async () => {
  const said = asking([
    () => ({ decision: "deny", reason: "Use the \x07other file.", decided_by: "terminal" }),
  ]);
  await said.run();
  assertEquals(said.lastResult(), "Denied by hook: User denied: Allow t? Their reason: Use the other file.");
  const stopped = asking([() => ({ decision: "deny", reason: "The server stops", decided_by: null })]);
  await stopped.run();
  assertEquals(stopped.lastResult(), "Denied by hook: User denied: Allow t?");
});

Deno.test("an option may state its effect", async () => {
  const options = [{ label: "Go ahead", effect: "allow" as const }, {
    label: "Allow",
    effect: "deny" as const,
  }];
  const result: HookResult = { ...ASK, approval_options: options };
  const go = asking(["go ahead"], result);
  await go.run();
  assertEquals(go.inputs.length, 1);
  assertEquals(go.data("approval:required")[0]?.options, options);
  const no = asking(["Allow"], result);
  await no.run();
  assertEquals(no.inputs, []);
});

Deno.test("an approval without an answer in time has the default decision", async () => {
  for (const approval_default of ["allow", "deny"] as const) {
    const { run, clock, turn, data, inputs, lastResult } = asking(["never"], {
      ...ASK,
      approval_timeout: 0.05,
      approval_default,
    });
    const done = run();
    await until(() => data("approval:required").length === 1);
    await clock.advance(49);
    assertEquals(turn(), [...AROUND, "approval:required"]);
    await clock.advance(1);
    assertEquals((await done).status, "completed");
    const event = approval_default === "allow" ? "approval:granted" : "approval:denied";
    assertEquals(data(event)[0]?.decision, "timeout");
    assertEquals(data(event)[0]?.decided_by, null);
    assertEquals(inputs.length, approval_default === "allow" ? 1 : 0);
    if (approval_default === "deny") {
      assertEquals(turn(), [...AROUND, "approval:required", "approval:denied", ...REST]);
      assertEquals(lastResult(), "Denied by hook: Approval timeout - denied by default: Allow t?");
    }
    assertEquals(clock.pending, 0);
  }
});

Deno.test("the question has what the tool says that the call would do, or goes without", async () => {
  const previews: [preview: (input: JsonObject) => Promise<string> | string, expected: unknown][] = [
    [({ a }) => `+ ${a}`, "+ 1"],
    [() => Promise.resolve("x".repeat(30_000)), "x".repeat(20_000)],
    [() => "", undefined],
    [() => Promise.reject(new Error("no")), undefined],
    [() => new Promise(() => {}), undefined],
  ];
  for (const [preview, expected] of previews) {
    const { run, clock, data, inputs } = asking(["allow"], ASK, {
      tools: [tool("t", (input) => {
        inputs.push(input);
        return "ran";
      }, { preview })],
    });
    const done = run();
    await until(() => clock.pending > 0 || data("approval:required").length === 1);
    if (data("approval:required").length === 0) await clock.advance(2_000);
    assertEquals((await done).status, "completed");
    assertEquals(data("approval:required")[0]?.preview, expected);
    assertEquals([inputs.length, clock.pending], [1, 0]);
  }
});

Deno.test("the reason of a denial contains at most 200 characters of the prompt", async () => {
  const { run, lastResult } = asking(["no"], { ...ASK, approval_prompt: "🙂".repeat(500) });
  await run();
  assertEquals(lastResult(), `Denied by hook: User denied: ${"🙂".repeat(200)}...`);
});

Deno.test("an approval system that fails denies, whatever the default, and is a warning", async () => {
  const { run, inputs, turn, warnings } = asking([() => {
    throw new Error("no line");
  }], { ...ASK, approval_default: "allow" });
  assertEquals((await run()).status, "completed");
  assertEquals(inputs, []);
  assertEquals(turn(), [...AROUND, "approval:required", "approval:denied", ...REST]);
  assertEquals(warnings, [{ code: "approval_failed", message: "no line" }]);
});

Deno.test("an approval timeout of any size is lowered to one year", async () => {
  const { run, data } = asking(["allow"], { ...ASK, approval_timeout: 1e300 }, {
    kernel: { approval_timeout: 1e300 },
  });
  assertEquals((await run()).status, "completed");
  assertEquals(data("approval:required")[0]?.expires_at, "2027-01-01T00:00:00.000Z");
});

Deno.test("an approval is for the input after the hooks, and exactly this input runs", async () => {
  const inputs: JsonObject[] = [];
  const requests: ApprovalRequest[] = [];
  const { run } = kit({
    providers: [[calls(["t", { path: "a" }]), "done"]],
    tools: [tool("t", (input) => inputs.push(input))],
    hooks: [
      hook(
        "tool:pre",
        (_event, data) => ({ action: "modify", data: { ...data, tool_input: { path: "b" } } }),
      ),
      hook("tool:pre", () => ASK, { priority: 5 }),
    ],
    answers: [(request) => {
      requests.push(request);
      return { decision: "allow" };
    }],
  });
  await run();
  assertEquals(requests.map((request) => [request.tool_input, request.args_hash]), [
    [{ path: "b" }, canonicalHash({ path: "b" })],
  ]);
  assertEquals(inputs, [{ path: "b" }]);
});

Deno.test("the time that a person takes to answer does not count for the run", async () => {
  const { run, clock, data } = asking(["never"], {
    ...ASK,
    approval_timeout: 3600,
    approval_default: "allow",
  }, {
    limits: { max_duration_s: 60 },
    kernel: { approval_timeout: 3600 },
  });
  const done = run();
  await until(() => data("approval:required").length === 1);
  await clock.advance(3_600_000);
  assertEquals((await done).status, "completed");
  assertEquals(clock.pending, 0);
});

Deno.test("an approval at prompt:submit is for the event's data, and decides about the turn", async () => {
  for (const word of ["allow", "no"]) {
    const provider = new MockProvider();
    const { run, data, turn } = kit({
      providers: [provider],
      hooks: [hook("prompt:submit", () => ({ action: "ask_user", approval_prompt: "Say this?" }))],
      answers: [word],
    });
    const outcome = await run();
    const [required] = data("approval:required");
    assertEquals([required?.tool_name, required?.tool_input, required?.action], [
      null,
      null,
      "prompt:submit",
    ]);
    assertEquals(provider.call_count, word === "allow" ? 1 : 0);
    assertEquals(outcome.status, word === "allow" ? "completed" : "denied");
    if (word === "no") {
      assertEquals(outcome.error, { code: "denied", message: "User denied: Say this?" });
      assertEquals(turn(), [
        ...["execution:start", "prompt:submit", "approval:required", "approval:denied"],
        ...["execution:end", "orchestrator:complete"],
      ]);
    }
  }
});

Deno.test("the input in the question to a person and the input that runs are one frozen object", async () => {
  let asked: ApprovalRequest | undefined;
  const options = [{ label: "Yes", effect: "allow" as const }];
  const { run, inputs } = asking([(request) => {
    asked = request;
    return { decision: "Yes" };
  }], { ...ASK, approval_options: options });
  await run();
  const frozen = [asked, asked?.tool_input, asked?.options, asked?.options[0]].map(Object.isFrozen);
  assertEquals([frozen, inputs], [[true, true, true, true], [{ a: 1 }]]);
});

Deno.test("two hooks that ask about one call are one question, and the stricter default decides", async () => {
  const ask = (approval_prompt: string, approval_default: "allow" | "deny") =>
    hook("tool:pre", () => ({ ...ASK, approval_prompt, approval_default, approval_timeout: 1 }));
  const cases = [["allow", "deny", 0], ["deny", "allow", 0], ["allow", "allow", 1]] as const;
  for (const [first, second, expected] of cases) {
    let ran = 0;
    const { run, clock, data } = kit({
      providers: [[calls(["t"]), "done"]],
      tools: [tool("t", () => ran++)],
      hooks: [ask("Safe?", first), ask("Cheap?", second)],
      answers: ["never"],
    });
    const done = run();
    await until(() => data("approval:required").length === 1);
    await clock.advance(1000);
    assertEquals((await done).status, "completed");
    assertEquals(data("approval:required").map(({ prompt }) => prompt), ["Safe?\nCheap?"]);
    assertEquals(ran, expected, `${first}, ${second}`);
  }
});
