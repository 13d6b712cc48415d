/**
 * Modules that break the contract: the turn still ends once, and every tool call has its result in the
 * history.
 */
import fc from "fast-check";
import { assertToolPairs } from "../../src/testing/assertions.ts";
import { MockContextManager } from "../../src/testing/mocks.ts";
import { MockProvider } from "../../src/testing/mock_provider.ts";
import type { Outcome } from "../../src/kernel/outcome.ts";
import type { ContextManager, JsonObject, Message, Orchestrator, Provider } from "../../src/sdk/types.ts";
import { assert, assertEquals, assertMatch } from "../assert.ts";
import { calls, hook, type Kit, kit, type KitOptions, nextTurn, tool } from "../support/sessions.ts";

const trap = new Proxy({}, {
  get(_, key) {
    if (key === "then") return undefined;
    throw new Error(`trap ${String(key)}`);
  },
  ownKeys() {
    throw new Error("trap keys");
  },
});
const cyclic: JsonObject = {};
cyclic.self = cyclic;

/** Runs a turn and asserts what is required of every turn. */
async function survive(options: KitOptions): Promise<Kit & { outcome: Outcome }> {
  const made = kit(options);
  const outcome = await made.run();
  await made.session.cleanup(outcome.status);
  const turn = made.turn();
  for (const event of ["execution:start", "execution:end", "orchestrator:complete"]) {
    assertEquals(turn.filter((name) => name === event).length, 1, `${event} in ${turn}`);
  }
  assertEquals(turn[0], "execution:start");
  assert(["completed", "incomplete", "denied", "cancelled", "failed"].includes(outcome.status));
  assertEquals(outcome.error !== null, ["failed", "denied"].includes(outcome.status));
  assertToolPairs(made.messages());
  assertEquals(made.clock.pending, 0);
  JSON.stringify(made.entries);
  return { ...made, outcome };
}

Deno.test("an invalid answer of a provider fails the run, or its valid part is used", async () => {
  const answers: [unknown, string][] = [
    [undefined, "failed"],
    [null, "failed"],
    [42, "failed"],
    [trap, "failed"],
    ["just text", "completed"],
    [{}, "incomplete"],
    [{ content: 5 }, "incomplete"],
    [{ content: [null, 7, "text", { type: "text", text: 5 }, { type: "text", text: "ok" }] }, "completed"],
    [{ content: "x", usage: { input_tokens: -5, output_tokens: NaN, total_tokens: "many" } }, "completed"],
    [{ content: "x", usage: { cost_usd: 0.1 } }, "failed"],
    [{ content: "x", finish_reason: trap }, "completed"],
    [{ content: "x", metadata: cyclic }, "completed"],
    [{ content: "x", tool_calls: "none" }, "completed"],
    [Promise.reject(null), "failed"],
    [Promise.reject(Object.create(null)), "failed"],
  ];
  for (const [answer, status] of answers) {
    if (answer instanceof Promise) answer.catch(() => {}); // the test's reference
    const provider = new MockProvider();
    provider.complete = () => answer as never;
    const { outcome } = await survive({ providers: [provider] });
    assertEquals(
      outcome.status,
      status,
      typeof answer === "object" ? String(outcome.error?.message) : String(answer),
    );
  }
});

Deno.test("invalid tool calls get results", async () => {
  const nonsense = [null, 7, {}, { name: 5 }, { id: "", name: "t" }, { id: 9, tool: "t", input: [] }, {
    id: "a",
    name: "t",
    arguments: "[1]",
  }];
  const provider = new MockProvider({ after: "repeat", response: "done" });
  const complete = provider.complete.bind(provider);
  let asked = 0;
  provider.complete = (request, options) =>
    asked++ === 0
      ? Promise.resolve({ content: [], tool_calls: nonsense } as never)
      : complete(request, options);
  const { outcome, messages } = await survive({ providers: [provider], tools: [tool("t")] });
  assertEquals(outcome.status, "completed");
  assertEquals(messages().filter((message) => message.role === "tool").length, nonsense.length);
});

Deno.test("an invalid return value of a tool becomes a result", async () => {
  const values: unknown[] = [
    undefined,
    null,
    NaN,
    10n,
    Symbol("x"),
    () => 1,
    cyclic,
    trap,
    new Map([["a", 1]]),
    { success: "yes" },
    { success: true, output: trap },
    { success: false, error: 7 },
    {
      get success(): boolean {
        throw new Error("gotcha");
      },
    },
    { then: "not a function" },
    { then: (resolve: (value: string) => void) => resolve("thenable") },
    {
      then() {
        throw new Error("bad thenable");
      },
    },
  ];
  for (const value of values) {
    const { outcome } = await survive({
      providers: [[calls(["t"]), "done"]],
      tools: [tool("t", () => value)],
    });
    assertEquals(outcome.status, "completed");
  }
});

Deno.test("an orchestrator that returns or throws an invalid value ends its turn", async () => {
  const acts: [() => unknown, string][] = [
    [() => null, "incomplete"],
    [() => 42, "incomplete"],
    [() => "", "incomplete"],
    [() => "text", "completed"],
    [() => [{ type: "text", text: "blocks" }], "completed"],
    [() => Promise.reject(null), "failed"],
    [() => {
      throw Object.create(null);
    }, "failed"],
    [() => ({ then: (_: unknown, reject: (error: unknown) => void) => reject("thenable") }), "failed"],
  ];
  for (const [act, status] of acts) {
    const { outcome } = await survive({
      orchestrator: async (coordinator) =>
        await coordinator.mount("orchestrator", {
          execute: (_a: unknown, _b: unknown, _c: unknown, _d: unknown, _e: unknown) => act(),
        }),
    });
    assertEquals(outcome.status, status, String(act));
  }
});

Deno.test("a context that fails in any of its methods fails the turn, not the log", async () => {
  const broken = (name: "addMessage" | "getMessagesForRequest", at: number, how: () => unknown) => {
    const context = new MockContextManager();
    const method = context[name].bind(context) as (...args: unknown[]) => Promise<unknown>;
    let count = 0;
    (context as unknown as JsonObject)[name] = (...args: unknown[]) =>
      ++count === at ? how() : method(...args);
    return context;
  };
  const fail = () => Promise.reject(new Error("memory is full"));
  const contexts: (() => ContextManager)[] = [
    ...[1, 2, 3, 4].map((at) => () => broken("addMessage", at, fail)),
    ...[1, 2].map((at) => () => broken("getMessagesForRequest", at, fail)),
    () => broken("getMessagesForRequest", 1, () => "no list"),
    () => broken("getMessagesForRequest", 1, () => null),
  ];
  for (const context of contexts) {
    const { outcome } = await survive({
      context: async (coordinator) => await coordinator.mount("context", context()),
      providers: [[calls(["t"]), "done"]],
      tools: [tool("t")],
    });
    assertEquals(outcome.status, "failed");
  }
});

Deno.test("an invalid view of a context reaches only the provider", async () => {
  for (const view of [[null], [7, "x"], [{}], [trap], [cyclic]]) {
    const context = new MockContextManager();
    context.getMessagesForRequest = () => Promise.resolve(view as Message[]);
    await survive({ context: async (coordinator) => await coordinator.mount("context", context) });
  }
});

Deno.test("a log that fails at any entry ends the turn and leaves no promise pending", async () => {
  const whole = await survive({ providers: [[calls(["t"]), "done"]], tools: [tool("t")] });
  const rejected: PromiseRejectionEvent[] = [];
  const listen = (event: PromiseRejectionEvent) => {
    event.preventDefault();
    rejected.push(event);
  };
  addEventListener("unhandledrejection", listen);
  try {
    for (let at = 1; at <= whole.entries.length; at++) {
      for (const how of ["throws", "rejects"]) {
        let count = 0;
        const { run, session, clock } = kit({
          providers: [[calls(["t"]), "done"]],
          tools: [tool("t")],
          record: () => {
            if (++count !== at) return;
            if (how === "throws") throw new Error("disk full");
            return Promise.reject(new Error("disk full"));
          },
        });
        await run().catch((error) => assertEquals(error.message, "disk full"));
        await session.cleanup("failed").catch(() => {}); // the entry that fails may be one of these
        assertEquals(clock.pending, 0);
      }
    }
    await nextTurn();
  } finally {
    removeEventListener("unhandledrejection", listen);
  }
  assertEquals(rejected, []);
});

Deno.test("a hook that emits events of the loop does not end the turn early", async () => {
  const { outcome, data } = await survive({
    providers: [[calls(["t"]), "done"]],
    tools: [tool("t")],
    hooks: [(coordinator) => {
      coordinator.hooks.register("tool:pre", async () => {
        await coordinator.hooks.emit("tool:post", {
          tool_name: "t",
          tool_call_id: "c1",
          result: { success: true, output: "forged" },
        });
        await coordinator.hooks.emit("execution:start", { prompt: "again" });
        await coordinator.hooks.emit("prompt:complete", { response_preview: "forged", length: 6 });
        await coordinator.hooks.emit("prompt:complete", { response_preview: "again", length: 5 });
        return null;
      });
    }],
  });
  assertEquals(outcome.output_text, "done");
  assertEquals([data("tool:post").length, data("prompt:complete").length], [1, 1]);
});

Deno.test("a module that keeps references after the end of the session cannot use them", async () => {
  const kept: { provider?: Provider; emit?: () => Promise<unknown> } = {};
  const { session, entries } = await survive({
    hooks: [(coordinator) => {
      kept.provider = coordinator.providers.mock!;
      kept.emit = () => coordinator.hooks.emit("thinking:final", { text: "late" });
      coordinator.hooks.register("x", () => null);
    }],
  });
  assertMatch(
    String(await kept.provider!.complete({ messages: [] }).catch((error) => error.message)),
    /no turn is running/,
  );
  const before = entries.length;
  await kept.emit!();
  assertEquals(entries.at(-1)?.turn_id, undefined);
  assertEquals(entries.length, before + 1);
  assertEquals(session.mounts.tools.names, []);
});

Deno.test("a module cannot change the history without an entry: it has the methods of a context manager only", async () => {
  let methods: string[] = [];
  const { data } = await survive({
    hooks: [async (coordinator) => {
      const handle = coordinator.context!;
      methods = Object.getOwnPropertyNames(Object.getPrototypeOf(handle)).filter((name) =>
        !name.includes("_")
      );
      assertEquals(Object.keys(handle), []);
      await handle.setMessages([{ role: "user", content: "from a module" }]);
    }],
  });
  assertEquals(methods, [
    "constructor",
    "addMessage",
    "getMessagesForRequest",
    "getMessages",
    "setMessages",
    "clear",
    "setSystemPromptFactory",
    "compact",
  ]);
  assertEquals(data("context:reset"), [{ messages: [{ role: "user", content: "from a module" }] }]);
});

Deno.test("a hook that emits its own event without end is stopped by its timeout", async () => {
  const made = kit({
    hooks: [hook("prompt:submit", async (_event, _data) => {
      for (;;) await made.clock.after(1);
    }, { timeout_ms: 20 })],
  });
  const done = made.run();
  for (let ms = 0; ms < 40; ms++) await made.clock.advance(1);
  assertEquals((await done).status, "denied");
});

Deno.test("every tool call has its result in the history, whatever a loop stores in any order", async () => {
  const act = fc.oneof(
    fc.constant({ kind: "complete" as const }),
    fc.constant({ kind: "user" as const }),
    fc.constant({ kind: "view" as const }),
    fc.record({ kind: fc.constant("assistant" as const), blocks: fc.boolean() }),
    fc.record({ kind: fc.constant("result" as const), id: fc.integer({ min: 1, max: 4 }) }),
    fc.record({ kind: fc.constant("execute" as const), id: fc.integer({ min: 1, max: 4 }) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(act, { maxLength: 12 }), async (acts) => {
      let serial = 0;
      const orchestrator: Orchestrator = {
        async execute(_prompt, context, providers, tools, _hooks) {
          let response = await providers.mock!.complete({ messages: [] });
          for (const one of acts) {
            const ids = response.tool_calls!.map((call) => call.id);
            if (one.kind === "complete") response = await providers.mock!.complete({ messages: [] });
            else if (one.kind === "user") await context.addMessage({ role: "user", content: "x" });
            else if (one.kind === "view") await context.getMessagesForRequest();
            else if (one.kind === "assistant") {
              await context.addMessage({
                role: "assistant",
                content: one.blocks ? response.content : "text",
              });
            } else if (one.kind === "result") {
              const known = (await context.getMessages()).findLast((message) => message.role === "assistant");
              if (!Array.isArray(known?.content) || known.content.at(-1)?.type !== "tool_call") continue;
              const id = String(known.content[(one.id - 1) % known.content.length]!.id);
              await context.addMessage({ role: "tool", tool_call_id: id, content: "result" });
            } else await tools.t!.execute({ n: one.id }, { id: ids[one.id - 1] ?? "none" } as never);
          }
          return "done";
        },
      };
      await survive({
        orchestrator,
        providers: [[() => {
          serial++;
          return {
            tool_calls: [1, 2, 3].map((n) => ({ name: "t", arguments: { n }, id: `${serial}-${n}` })),
          };
        }]],
        tools: [tool("t")],
      });
    }),
    { numRuns: 60 },
  );
});
