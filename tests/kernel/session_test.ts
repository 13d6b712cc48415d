/** A session: its events, its state, its coordinator. */
import { CancellationToken } from "../../src/sdk/cancellation.ts";
import { MockContextManager } from "../../src/testing/mocks.ts";
import { MockProvider } from "../../src/testing/mock_provider.ts";
import type { Coordinator, JsonObject, Message } from "../../src/sdk/types.ts";
import { assert, assertEquals, assertRejects, assertThrows } from "../assert.ts";
import { calls, contents, hook, kit, nextTurn, spy, tool, until } from "../support/sessions.ts";

Deno.test("a child session emits session:fork last, and every entry has parent_id", async () => {
  const { session, names, data, entries, run } = kit({
    options: { parent_id: "ses_0" },
    session: { metadata: { a: 1 } },
  });
  await session.initialize();
  assertEquals(names().at(-1), "session:fork");
  assertEquals(data("session:fork"), [{ parent: "ses_0", session_id: "ses_1", metadata: { a: 1 } }]);
  await run();
  assertEquals(new Set(entries.map((entry) => entry.parent_id)), new Set(["ses_0"]));
  assertEquals(data("session:start"), [{ session_id: "ses_1", parent_id: "ses_0", metadata: { a: 1 } }]);
});

Deno.test("session:start is emitted once, and session:resume in its place for a continued session", async () => {
  for (const continued of [false, true]) {
    const { run, session, names, data } = kit({
      options: { continued, history: [] },
      session: { metadata: { a: 1 } },
      providers: [["one", "two"]],
    });
    await run();
    await run();
    await session.cleanup("completed");
    const event = continued ? "session:resume" : "session:start";
    const other = continued ? "session:start" : "session:resume";
    assertEquals(names().filter((name) => name === event || name === other), [event]);
    assertEquals(data(event), [{ session_id: "ses_1", parent_id: null, metadata: { a: 1 } }]);
  }
});

Deno.test("with raw, session:start contains the plan, once", async () => {
  const written = { session: { raw: true }, providers: [{ module: "p", config: { model: "m" } }] };
  const { run, data } = kit({ session: { raw: true }, options: { written }, providers: [["one", "two"]] });
  await run();
  await run();
  assertEquals(data("session:start"), [{ session_id: "ses_1", parent_id: null, raw: written }]);
});

Deno.test("cleanup() emits session:end before the cleanups and session:cleanup after them, once", async () => {
  const order: string[] = [];
  const { run, session, names, data } = kit({
    hooks: [(coordinator) => {
      coordinator.hooks.register("session:end", () => void order.push("session:end"));
      coordinator.hooks.register("session:cleanup", () => void order.push("session:cleanup"));
      return () => void order.push("cleanup");
    }],
  });
  await run();
  await session.cleanup("completed");
  await session.cleanup("failed");
  assertEquals(order, ["session:end", "cleanup", "session:cleanup"]);
  assertEquals(names().slice(-2), ["session:end", "session:cleanup"]);
  assertEquals(data("session:end"), [{ session_id: "ses_1", status: "completed" }]);
  assertEquals(data("session:cleanup"), [{ ran: 1, failed: [] }]);
});

Deno.test("cleanup() ends the sandboxes of modules after session:cleanup, which their hooks handle", async () => {
  for (const failing of ["none", "session:end", "session:cleanup"]) {
    const order: string[] = [];
    const { run, session } = kit({
      tools: [tool("first")],
      hooks: [
        (coordinator) => void coordinator.hooks.register("session:*", (event) => void order.push(event)),
      ],
      opened: { close: () => Promise.resolve(void order.push("ended")) },
      record: (entry) => entry.event === failing ? Promise.reject(new Error("full")) : undefined,
    });
    await run();
    await session.cleanup("completed").catch((error) => order.push(error.message));
    const expected = {
      none: ["session:end", "session:cleanup"],
      "session:end": ["session:end"],
      "session:cleanup": ["session:end", "session:cleanup"],
    }[failing]!;
    const ended = order.slice(order.indexOf("session:end"));
    assertEquals(ended, [...expected, ...Array(5).fill("ended"), ...failing === "none" ? [] : ["full"]]);
  }
});

Deno.test("cleanup() of a session that was never initialised emits nothing", async () => {
  const { session, names } = kit();
  await session.cleanup("cancelled");
  assertEquals(names(), []);
});

Deno.test("a continued session loads its history without logging it again", async () => {
  const history: Message[] = [{ role: "user", content: "before" }, { role: "assistant", content: "then" }];
  const provider = new MockProvider({ response: "now" });
  const { run, messages } = kit({ options: { continued: true, history }, providers: [provider] });
  await run("after");
  assertEquals(contents(provider.requests[0]!.messages), [["user", "before"], ["assistant", "then"], [
    "user",
    "after",
  ]]);
  assertEquals(contents(messages()), [["user", "after"], ["assistant", "now"]]);
});

Deno.test("a new system text replaces only that of the earlier plan", async () => {
  const old: Message = { role: "system", content: "Be brief.", metadata: { source: "plan" } };
  const hooks: Message = { role: "system", content: "from a hook", metadata: { source: "hook" } };
  const user: Message = { role: "user", content: "hi" };
  const cases: [string | undefined, Message[], Message[] | null][] = [
    ["Be brief.", [old, hooks, user], null],
    ["Be long.", [old, hooks, user], [{ ...old, content: "Be long." }, hooks, user]],
    [undefined, [old, hooks, user], [hooks, user]],
    ["Be new.", [hooks, user], [{ ...old, content: "Be new." }, hooks, user]],
    [undefined, [hooks, user], null],
  ];
  for (const [system, history, reset] of cases) {
    const { run, data } = kit({
      options: { continued: true, history },
      ...(system === undefined ? {} : { system }),
    });
    await run();
    assertEquals(
      data("context:reset"),
      reset === null ? [] : [{ messages: reset as unknown as JsonObject[] }],
    );
  }
});

Deno.test("session_state is restored before mount, logged before the next durable entry, and complete at the end", async () => {
  const seen: unknown[] = [];
  const { run, session, names, data } = kit({
    options: { session_state: { kept: { n: 1 } } },
    providers: [[calls(["t"]), "done"]],
    tools: [async (coordinator) => {
      seen.push(coordinator.session_state.kept);
      coordinator.session_state.mounted = true;
      await coordinator.mount(
        "tools",
        tool("t", () => {
          coordinator.session_state.kept = { n: 2 };
          coordinator.session_state.gone = 1;
          delete coordinator.session_state.gone;
        }),
      );
      return () => coordinator.session_state.last = "word";
    }],
  });
  await run();
  assertEquals(seen, [{ n: 1 }]);
  assertEquals(data("session:state"), [{ set: { mounted: true } }, { set: { kept: { n: 2 }, gone: null } }]);
  const all = names();
  assertEquals(all[all.lastIndexOf("session:state") + 1], "tool:post");
  await session.cleanup("completed");
  assertEquals(names().slice(-3), ["session:end", "session:cleanup", "session:state"]);
  assertEquals(session.session_state, { kept: { n: 2 }, mounted: true, last: "word" });
});

Deno.test("session_state copies values, is limited to 64 KiB and has no prototype", async () => {
  const { module, coordinator } = spy();
  const { session } = kit({ tools: [module] });
  await session.initialize();
  const { session_state } = coordinator();
  const given = { n: 1 };
  session_state.given = given;
  given.n = 2;
  assertEquals(session.session_state, { given: { n: 1 } });
  assertThrows(() => session_state.big = "x".repeat(65_536), RangeError, "at most 65536 bytes");
  assertThrows(() => Reflect.set(session_state, "__proto__", {}), TypeError, "choose another key");
  assertThrows(() => Object.freeze(session_state), TypeError);
  session_state.big = "x".repeat(60_000);
  delete session_state.big;
  session_state.next = "x".repeat(60_000);
  assertEquals(Object.keys(session.session_state), ["given", "next"]);
});

Deno.test("session_state that was saved with a larger limit is kept, and may only become smaller", async () => {
  const { module, coordinator } = spy();
  const saved = { big: "x".repeat(500), small: 1 };
  const { session } = kit({
    tools: [module],
    kernel: { max_session_state_bytes: 100 },
    options: { session_state: saved },
  });
  await session.initialize();
  const { session_state } = coordinator();
  assertEquals(session.session_state, saved);
  assertThrows(() => session_state.more = 1, RangeError, "at most 100 bytes");
  session_state.big = "x".repeat(400);
  delete session_state.big;
  session_state.more = 1;
  assertEquals(session.session_state, { small: 1, more: 1 });
});

Deno.test("execute() initialises, refuses a second concurrent turn, and runs the next one", async () => {
  const { session, clock } = kit({ providers: [[{ text: "slow", delay_ms: 10 }, "two"]] });
  const first = session.execute("a");
  await until(() => clock.pending > 1);
  await assertRejects(() => session.execute("b"), Error, "another one has not ended");
  await clock.advance(10);
  assertEquals((await first).output_text, "slow");
  assertEquals((await session.execute("c")).output_text, "two");
});

Deno.test("a child token starts with the state of its parent", () => {
  const parent = new CancellationToken();
  const child = new CancellationToken();
  parent.requestGraceful();
  parent.registerChild(child);
  assertEquals(child.state, "graceful");
  parent.requestImmediate();
  assertEquals(child.state, "immediate");
});

Deno.test("contributions are collected in order; nulls and failures are left out", async () => {
  const { module, coordinator } = spy();
  const { session, warnings } = kit({ tools: [module] });
  await session.initialize();
  const given = coordinator();
  given.registerContributor("session.cost", "a", () => ({ cost_usd: "0.10" }));
  given.registerContributor("session.cost", "b", () => {
    throw new Error("no");
  });
  given.registerContributor("session.cost", "c", () => Promise.resolve({ cost_usd: "0.02" }));
  given.registerContributor("session.cost", "d", () => null);
  given.registerContributor("other", "e", () => 1);
  assertEquals(await given.collectContributions("session.cost"), [{ cost_usd: "0.10" }, {
    cost_usd: "0.02",
  }]);
  assertEquals(await given.collectContributions("empty"), []);
  assertEquals(warnings, [{
    code: "contributor_failed",
    message: 'Contributor "b" of session.cost failed: no',
  }]);
});

Deno.test("the coordinator has snake_case methods", async () => {
  const { module, coordinator } = spy();
  const { session } = kit({ tools: [module], options: { written: { session: {} } } });
  await session.initialize();
  const given = coordinator() as unknown as Record<string, (...args: unknown[]) => unknown> & Coordinator;
  given.register_capability!("x", 1);
  assertEquals(given.get_capability!("x"), 1);
  assertEquals(given.get_capability!("y"), null);
  given.register_contributor!("c", "n", () => 2);
  assertEquals(await given.collect_contributions!("c"), [2]);
  assertEquals(given.to_dict!(), {
    tools: ["spy"],
    providers: ["mock"],
    has_orchestrator: true,
    has_context: true,
    capabilities: ["session.usages", "session.last_usage", "session.steer", "x"],
    has_approval_provider: true,
    has_display_service: true,
  });
  assertEquals([given.session_id, given.parent_id, given.config], ["ses_1", null, { session: {} }]);
  assert(given.get("tools", "spy") === given.tools.spy);
  assert(given.get("session", "context") === given.context);
  assert(given.get("hooks") === given.hooks);
  assertThrows(() => given.get("nonsense"), TypeError, "Unknown mount point");
});

Deno.test("a handler's payload contains session, parent, turn and iteration", async () => {
  const seen: JsonObject[] = [];
  const { run } = kit({ hooks: [hook("provider:response", (_event, data) => void seen.push(data))] });
  await run();
  const { session_id, parent_id, turn_id, iteration, timestamp } = seen[0]!;
  assertEquals({ session_id, parent_id, turn_id, iteration, timestamp }, {
    session_id: "ses_1",
    parent_id: null,
    turn_id: "turn_1",
    iteration: 1,
    timestamp: "2026-01-01T00:00:00.000Z",
  });
});

Deno.test("modules find each other's capabilities, and a child token follows its parent", async () => {
  const parent = new CancellationToken();
  const child = new CancellationToken();
  parent.registerChild(child);
  const { run, session } = kit({ options: { cancellation: child } });
  await session.initialize();
  parent.requestGraceful();
  const outcome = await run();
  assertEquals(outcome.status, "cancelled");
});

Deno.test("a context with Amplifier's spelling is guarded like any other", async () => {
  const inner = new MockContextManager();
  const old = {
    add_message: (message: Message) => inner.addMessage(message),
    get_messages_for_request: () => inner.getMessagesForRequest(),
    get_messages: () => inner.getMessages(),
    set_messages: (messages: Message[]) => inner.setMessages(messages),
    clear: () => inner.clear(),
  };
  const { run, messages, session, data } = kit({
    context: async (coordinator) => await coordinator.mount("context", old),
  });
  await run();
  assertEquals(contents(messages()), contents(inner.messages));
  const handle = session.mounts.context!.handle as unknown as Record<
    string,
    (...args: unknown[]) => Promise<unknown>
  >;
  assertEquals(contents(await handle.get_messages!() as Message[]), contents(inner.messages));
  await handle.clear!();
  assertEquals(data("context:reset"), [{ messages: [] }]);
  assertEquals(inner.messages, []);
});

Deno.test("a turn leaves no timer and no listener", async () => {
  const { run, session, clock } = kit({
    providers: [[calls(["t"]), "done"]],
    tools: [tool("t", async () => await nextTurn())],
  });
  await run();
  await session.cleanup("completed");
  assertEquals(clock.pending, 0);
});
