import { ScriptedOrchestrator, testOrchestrator } from "preamp/testing";
import type {
  ContextManager,
  Coordinator,
  ExecuteOptions,
  HookRegistry,
  JsonObject,
  Module,
  Orchestrator,
  Prompt,
  Provider,
  Tool,
} from "preamp";
import { createLoop } from "preamp/loop";
import { assert, assertEquals } from "../assert.ts";
import { STUBBORN } from "../support/misbehaving_loops.ts";
import { failures } from "./broken_kit.ts";

const check = (create: () => Orchestrator | Module) =>
  failures((name, test) => testOrchestrator(name, create, { deadline_ms: 500, test }));

type Execute = Orchestrator["execute"];
const good = (): Orchestrator =>
  createLoop({
    orchestrator: "good",
    max_iterations: 10,
    max_parallel_tools: 2,
    steering: false,
    request: {},
  });

/** Returns a correct loop with one fault around it. */
function around(change: (execute: Execute) => Execute): () => Orchestrator {
  return () => {
    const loop = good();
    return { execute: change(loop.execute.bind(loop)) };
  };
}

/** Returns a correct loop whose hooks have a changed `emit`. */
function emitting(emit: (hooks: HookRegistry) => HookRegistry["emit"]): () => Orchestrator {
  return around((execute) => (prompt, context, providers, tools, hooks, options) =>
    execute(prompt, context, providers, tools, withEmit(hooks, emit(hooks)), options)
  );
}

function withEmit(hooks: HookRegistry, emit: HookRegistry["emit"]): HookRegistry {
  return new Proxy(hooks, {
    get: (target, key) => key === "emit" ? emit : bound(target, Reflect.get(target, key)),
  });
}

/** Returns a correct loop whose coordinator has a changed `callTool`. */
function calling(call: (coordinator: Coordinator) => Coordinator["callTool"]): () => Orchestrator {
  return around((execute) => (prompt, context, providers, tools, hooks, options) => {
    const coordinator = options && new Proxy(options.coordinator, {
      get: (target, key) => key === "callTool" ? call(target) : bound(target, Reflect.get(target, key)),
    });
    return execute(prompt, context, providers, tools, hooks, coordinator && { coordinator });
  });
}

/** Returns a correct loop whose context has a changed `addMessage`. */
function storing(add: (context: ContextManager) => ContextManager["addMessage"]): () => Orchestrator {
  return around((execute) => (prompt, context, ...rest) => {
    const changed = new Proxy(context, {
      get: (target, key) => key === "addMessage" ? add(context) : bound(target, Reflect.get(target, key)),
    });
    return execute(prompt, changed, ...rest);
  });
}

function bound(target: object, value: unknown): unknown {
  return typeof value === "function" ? value.bind(target) : value;
}

Deno.test("testOrchestrator() passes a good loop", async () => {
  const { failed, ran } = await check(good);
  assertEquals(failed, []);
  assert(ran >= 30);
});

Deno.test("testOrchestrator() fails everything when nothing is mounted", async () => {
  const { failed, ran } = await check(() => ({ mount: () => null }));
  assertEquals(failed.length, ran);
});

/** A correct loop that does not receive the coordinator. */
const uncoordinated = around((execute) => (prompt, context, providers, tools, hooks) =>
  execute(prompt, context, providers, tools, hooks)
);

const stubborn = () => STUBBORN;

const broken: [string, string, () => Orchestrator][] = [
  [
    "a loop that calls no provider",
    "execute() resolves to the provider's text",
    () => new ScriptedOrchestrator(["It is 5."]),
  ],
  [
    "an answer of its own",
    "execute() resolves to the provider's text",
    around((execute) => async (...args) => `${await execute(...args)}!`),
  ],
  [
    "a prompt that is not stored",
    "execute() stores the prompt, then the answer",
    storing((context) => (message) =>
      message.role === "user" ? Promise.resolve() : context.addMessage(message)
    ),
  ],
  [
    "a crash on an empty prompt",
    "execute() handles an empty prompt",
    around((execute) => (prompt: Prompt, ...rest) => {
      if (prompt === "") throw new TypeError("prompt[0] is undefined");
      return execute(prompt, ...rest);
    }),
  ],
  [
    "a need for the coordinator",
    "execute() works without a coordinator",
    around((execute) => (prompt, context, providers, tools, hooks, options?: ExecuteOptions) => {
      void options!.coordinator.session_id;
      return execute(prompt, context, providers, tools, hooks, options);
    }),
  ],
  [
    "a wrong status",
    "execute() completes a good turn with success",
    emitting((hooks) => (event, data) =>
      hooks.emit(event, event === "orchestrator:complete" ? { ...data, status: "done" } : data)
    ),
  ],
  [
    "results in the wrong order",
    "execute() runs tools and answers each call once, in order",
    storing((context) => {
      let held: Parameters<ContextManager["addMessage"]>[0] | null = null;
      return async (message) => {
        if (message.role === "tool" && message.tool_call_id === "call_1") return void (held = message);
        await context.addMessage(message);
        if (held) await context.addMessage(held);
        held = null;
      };
    }),
  ],
  [
    "a result that is lost",
    "execute() shows the provider every result",
    storing((context) => (message) =>
      message.tool_call_id === "call_2" ? Promise.resolve() : context.addMessage(message)
    ),
  ],
  [
    "events without the call's id",
    "execute() emits tool:pre and tool:post with the call's id",
    calling((coordinator) => (call, facts) => coordinator.callTool({ ...call, id: "any" }, facts)),
  ],
  [
    "unknown tools without an answer",
    "execute() answers a call of an unknown tool",
    storing((context) => (message) =>
      String(message.content).includes("nowhere") ? Promise.resolve() : context.addMessage(message)
    ),
  ],
  [
    "a tool's failure that ends the turn",
    "execute() answers a call whose tool throws",
    around((execute) => (prompt, context, providers, tools, ...rest) => {
      const failing = Object.values(tools).find((tool) => tool.name === "first");
      if (!failing) return execute(prompt, context, providers, tools, ...rest);
      return execute(prompt, context, providers, tools, ...rest).then(async (text) => {
        await failing.execute({});
        return text;
      });
    }),
  ],
  [
    "denied tools that run",
    "execute() does not run a call that tool:pre denied",
    calling(({ session_id, tools, cancellation: { signal } }) => async ({ id, name, arguments: input }) => {
      const content = String(await tools[name]?.execute(input, { id, session_id, signal, progress() {} }));
      return { role: "tool", tool_call_id: id, name, content };
    }),
  ],
  [
    "denied requests that go out",
    "execute() calls no provider when provider:request is denied",
    around((execute) => async (prompt, context, providers, ...rest) => {
      try {
        return await execute(prompt, context, providers, ...rest);
      } catch (error) {
        const [provider] = Object.values(providers);
        for (let tries = 0; tries < 2; tries++) await provider?.complete({ messages: [] }).catch(() => {});
        throw error;
      }
    }),
  ],
  [
    "a tool's failure that the model does not see",
    "execute() answers a call whose tool fails",
    storing((context) => (message) =>
      context.addMessage(message.role === "tool" ? { ...message, content: "done" } : message)
    ),
  ],
  [
    "an unfit input that is not answered",
    "execute() answers a call whose input does not fit the tool's schema",
    storing((context) => (message) =>
      message.role === "tool" ? Promise.resolve() : context.addMessage(message)
    ),
  ],
  [
    "calls that run twice",
    "execute() runs a call with the input that tool:pre changed",
    calling((coordinator) => async (call, facts) => {
      await coordinator.callTool(call, facts);
      return await coordinator.callTool({ ...call, id: `${call.id}_again` }, facts);
    }),
  ],
  [
    "a result that is stored as the tool returned it",
    "execute() stores a result as tool:post changed it",
    calling((coordinator) => async (call, facts) => {
      return { ...await coordinator.callTool(call, facts), content: "one" };
    }),
  ],
  ["approvals that are not asked for", "execute() runs a call when a person allows it", uncoordinated],
  ["answers of people that are not read", "execute() does not run a call that a person denies", stubborn],
  [
    "requests after a denied one",
    "execute() ends when a later provider:request is denied",
    stubborn,
  ],
  ["model calls after max_iterations", "execute() ends when max_iterations is reached", stubborn],
  ["model calls after max_total_tokens", "execute() ends when max_total_tokens is reached", stubborn],
  ["model calls after a cancelled one", "execute() ends when a model call is cancelled", stubborn],
  [
    "a model call after max_tool_calls",
    "execute() ends when max_tool_calls is reached",
    calling((coordinator) => (call, facts) =>
      coordinator.callTool(call, facts).catch(() => {
        return { role: "tool", tool_call_id: call.id, name: call.name, content: "Try again." };
      })
    ),
  ],
  [
    "a failure that is swallowed",
    "execute() ends with error when the provider fails",
    around((execute) => (...args) => execute(...args).catch(() => "Sorry.")),
  ],
  ["no bound", "execute() ends when the model calls tools endlessly", stubborn],
  [
    "empty answers without a bound",
    "execute() ends when the model keeps answering nothing",
    around((execute) => async (prompt, context, providers, ...rest) => {
      const text = await execute(prompt, context, providers, ...rest);
      const [provider] = Object.values(providers);
      for (let call = 0; text === "" && call < 3; call++) await provider?.complete({ messages: [] });
      return text;
    }),
  ],
  [
    "an ignored cancellation",
    "execute() stops after the tools when cancelled gracefully",
    uncoordinated,
  ],
  [
    "calls left open by a cancellation",
    "execute() answers every call when cancelled immediately",
    storing((context) => (message) =>
      message.tool_call_id === "call_2" ? Promise.resolve() : context.addMessage(message)
    ),
  ],
];

for (const [what, title, create] of broken) {
  Deno.test(`testOrchestrator() fails "${title}" for ${what}`, async () => {
    const { failed } = await check(create);
    assert(failed.includes(title), `failed: ${failed.join(", ") || "nothing"}`);
    assert(!failed.includes("mount() mounts an orchestrator whose execute is a function"));
  });
}

Deno.test("testOrchestrator() fails an orchestrator that cannot be executed", async () => {
  const create = (): Module => ({
    mount: (coordinator) => coordinator.mount("orchestrator", { execute: "go" }),
  });
  const { failed, ran } = await check(create);
  assertEquals(failed.filter((title) => title !== "execute() handles an empty prompt").length, ran - 1);
});

Deno.test("testOrchestrator() fails Amplifier's simple orchestrator where it breaks the contract", async () => {
  const { failed } = await check(() => new SimpleOrchestrator());
  for (
    const title of [
      "execute() does not run a call that tool:pre denied",
      "execute() answers a call of an unknown tool",
    ]
  ) {
    assert(failed.includes(title), `failed: ${failed.join(", ") || "nothing"}`);
  }
  for (
    const title of ["execute() resolves to the provider's text", "execute() works without a coordinator"]
  ) assert(!failed.includes(title));
});

/** Amplifier's example of a simple orchestrator, line by line. */
class SimpleOrchestrator implements Orchestrator {
  async execute(
    prompt: Prompt,
    context: ContextManager,
    providers: Record<string, Provider>,
    tools: Record<string, Tool>,
    hooks: HookRegistry,
  ) {
    await context.addMessage({ role: "user", content: prompt });
    const provider = Object.values(providers)[0]!;
    for (let iteration = 0; iteration < 10; iteration++) {
      const messages = await context.getMessagesForRequest({ provider });
      await hooks.emit("provider:request", { messages });
      const response = await provider.complete({ messages });
      await hooks.emit("provider:response", { response });
      await context.addMessage({ role: "assistant", content: response.content });
      const calls = provider.parseToolCalls(response);
      if (calls.length === 0) {
        await this.#complete(hooks, iteration, "success");
        return String(response.content[0]?.text ?? "");
      }
      for (const call of calls) {
        const tool = tools[call.name];
        if (!tool) continue;
        await hooks.emit("tool:pre", { tool_name: call.name });
        const result = await tool.execute(call.input) as { getSerializedOutput(): string };
        await hooks.emit("tool:post", { result } as unknown as JsonObject);
        await context.addMessage({
          role: "tool",
          tool_call_id: call.id,
          content: result.getSerializedOutput(),
        });
      }
    }
    await this.#complete(hooks, 9, "incomplete");
    return "Max iterations reached";
  }

  async #complete(hooks: HookRegistry, iteration: number, status: string) {
    await hooks.emit("orchestrator:complete", { orchestrator: "simple", turn_count: iteration + 1, status });
  }
}
