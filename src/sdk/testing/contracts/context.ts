/** The context contract as a test suite. */
import type { ContextManager, RequestOptions } from "../../contracts.ts";
import { errorMessage } from "../../errors.ts";
import { jsonEqual } from "../../json.ts";
import { type Message, textOf } from "../../messages.ts";
import { methodOf } from "../../snake_case_aliases.ts";
import { assertToolPairs } from "../assertions.ts";
import type { TestCoordinator } from "../coordinator.ts";
import {
  casesOf,
  type CreateSubject,
  expect,
  isCodeError,
  type SuiteOptions,
  thrownBy,
  withSubject,
} from "./suite.ts";

/** Options of {@link testContext}. */
export interface ContextSuiteOptions extends SuiteOptions {
  /** Whether views are compacted to fit a budget; default true. */
  compacts?: boolean;
}

const METHODS = ["addMessage", "getMessagesForRequest", "getMessages", "setMessages", "clear"] as const;

/**
 * Registers the cases that every context manager must pass. `create` makes a new module or context manager
 * per case.
 */
export function testContext(
  name: string,
  create: CreateSubject<ContextManager>,
  options: ContextSuiteOptions = {},
): void {
  const test = casesOf(name, options);
  const onContext =
    (body: (context: ContextManager, coordinator: TestCoordinator) => Promise<void> | void) => () =>
      withSubject(create, "context", options, ({ coordinator }) => {
        expect(
          coordinator.context,
          "No context was mounted and mount() did not return a ContextManager instance",
        );
        return body(withCamelCase(coordinator.context), coordinator);
      });

  test("mount() mounts a context", onContext(() => {}));
  test("all five methods are there", () =>
    withSubject(create, "context", options, ({ coordinator: { context } }) => {
      for (const method of METHODS) expect(methodOf(context, method), `${method} must be a function`);
    }));
  test(
    "getMessages() is empty at first",
    onContext(async (context) => {
      expect((await stored(context)).length === 0, "a fresh context must hold no messages");
    }),
  );
  test(
    "addMessage() keeps messages whole and in order",
    onContext(async (context) => {
      const messages = conversation(2);
      for (const message of messages) await context.addMessage(structuredClone(message));
      const kept = await stored(context);
      expect(
        kept.length === messages.length,
        `${messages.length} messages were added: received ${kept.length}`,
      );
      for (const [index, message] of messages.entries()) {
        for (const key of ["role", "content", "tool_call_id", "tool_calls"]) {
          expect(jsonEqual(kept[index]?.[key], message[key]), `${key} of message ${index} was changed`);
        }
      }
    }),
  );
  test(
    "addMessage() takes a message without fields",
    onContext(async (context) => {
      const error = await thrownBy(() => context.addMessage({} as Message)); // as in Amplifier's suite
      expect(!isCodeError(error), `addMessage crashed: ${errorMessage(error)}`);
    }),
  );
  test(
    "addMessage() never refuses a result for its size",
    onContext(async (context) => {
      const [, , asking] = conversation(1);
      await context.addMessage(asking!); // conversation(1) has several messages
      await context.addMessage({ role: "tool", tool_call_id: "call_0", content: "x".repeat(1_000_000) });
      expect((await stored(context)).length === 2, "a large result must be stored");
    }),
  );
  test(
    "getMessages() gives a copy",
    onContext(async (context) => {
      await context.addMessage({ role: "user", content: "Hello" });
      const copy = await stored(context);
      expect(copy[0], "the message must be there");
      mutate(copy, copy[0]);
      const [kept, ...more] = await stored(context);
      expect(
        more.length === 0 && kept?.content === "Hello",
        "changing what getMessages gave changed the history",
      );
    }),
  );
  test(
    "setMessages() replaces the history by a copy",
    onContext(async (context) => {
      await context.addMessage({ role: "user", content: "before" });
      const history: Message[] = [{ role: "user", content: "a" }, { role: "assistant", content: "b" }];
      await context.setMessages(history);
      history.push({ role: "user", content: "later" });
      const contents = (await stored(context)).map((message) => textOf(message.content));
      expect(contents.join() === "a,b", `expected a,b: received ${contents.join()}`);
    }),
  );
  test(
    "clear() empties the history",
    onContext(async (context) => {
      await context.setMessages(conversation(2));
      await context.clear();
      expect((await stored(context)).length === 0, "clear left messages");
      expect((await view(context, {})).length === 0, "clear left messages in the view");
    }),
  );
  test(
    "getMessagesForRequest() shows everything when there is room",
    onContext(async (context) => {
      const messages = conversation(2);
      await context.setMessages(messages);
      const seen = await view(context, { token_budget: 100_000 });
      const same = jsonEqual(seen.map(essence), messages.map(essence));
      expect(same, "a view with room for everything must hold every message unchanged, in order");
    }),
  );
  test(
    "getMessagesForRequest() gives a copy",
    onContext(async (context) => {
      await context.addMessage({ role: "user", content: "Hello" });
      const [seen] = await view(context, {});
      expect(seen, "the view must hold the message");
      mutate([], seen);
      expect((await stored(context))[0]?.content === "Hello", "changing the view changed the history");
    }),
  );
  test(
    "should_compact() and compact() work if they exist",
    onContext(async (_context, coordinator) => {
      const old = coordinator.context as unknown as Record<string, unknown>; // older modules have these methods
      const has = (name: string) => typeof old[name] === "function";
      for (const name of ["shouldCompact", "should_compact", "_should_compact"].filter(has)) {
        const answer: unknown = await (old[name] as () => unknown)();
        expect(typeof answer === "boolean", `${name} must answer true or false: received ${typeof answer}`);
      }
      for (const name of ["compact", "_compact_internal"].filter(has)) {
        const error = await thrownBy(() => (old[name] as () => unknown)());
        expect(!isCodeError(error), `${name} crashed: ${errorMessage(error)}`);
      }
    }),
  );
  if (options.compacts === false) return;

  const underBudget = (check: (seen: Message[], history: Message[], reported_over: boolean) => void) =>
    onContext(async (context, coordinator) => {
      const history = conversation(30);
      for (const message of history) await context.addMessage(structuredClone(message));
      const before = await stored(context);
      const seen = await view(context, { token_budget: 4000 });
      const reported_over = coordinator.hooks.getEvents().some(([, data]) => data.over_budget === true);
      expect(jsonEqual(await stored(context), before), "making a view changed the history");
      check(seen, before, reported_over);
    });
  test("a view under a budget leaves the history as it was", underBudget(() => {}));
  test(
    "a view under a budget is smaller than the history",
    underBudget((seen, history, reported_over) => {
      const smaller = JSON.stringify(seen).length < JSON.stringify(history).length / 2;
      expect(smaller || reported_over, "the view must fit, or an event must report over_budget");
    }),
  );
  test("a view under a budget never splits calls from results", underBudget((seen) => assertToolPairs(seen)));
  test(
    "a view under a budget keeps the system message first",
    underBudget((seen) => {
      expect(
        seen[0]?.role === "system" && textOf(seen[0].content) === "Be brief.",
        "the system message must come first, unchanged",
      );
    }),
  );
  test(
    "a view under a budget keeps the last prompt word for word",
    underBudget((seen, history) => {
      const last = textOf(history.findLast((message) => message.role === "user")?.content);
      const kept = seen.some((message) => message.role === "user" && textOf(message.content) === last);
      expect(kept, `the last prompt must be there, unchanged`);
    }),
  );
  test(
    "a view under a budget holds no internal fields",
    underBudget((seen) => {
      const internal = seen.flatMap((message) => Object.keys(message)).filter((key) => key.startsWith("_"));
      expect(internal.length === 0, `internal fields reach the provider: ${internal.join(", ")}`);
    }),
  );
  test(
    "the same history and budget give the same view",
    onContext(async (context) => {
      await context.setMessages(conversation(30));
      const [first, second] = [
        await view(context, { token_budget: 4000 }),
        await view(context, { token_budget: 4000 }),
      ];
      expect(JSON.stringify(first) === JSON.stringify(second), "two views of one history differ");
    }),
  );
}

/** Returns a context manager with camelCase methods, whichever spelling it uses. */
function withCamelCase(context: ContextManager): ContextManager {
  const method = (name: string) => {
    const found = methodOf(context, name);
    expect(found, `${name} must be a function`);
    return found;
  };
  return {
    addMessage: async (message) => void await method("addMessage")(message),
    getMessagesForRequest: (request_options) =>
      method("getMessagesForRequest")(request_options) as Promise<Message[]>,
    getMessages: () => method("getMessages")() as Promise<Message[]>,
    setMessages: async (messages) => void await method("setMessages")(messages),
    clear: async () => void await method("clear")(),
  };
}

async function stored(context: ContextManager): Promise<Message[]> {
  const messages: unknown = await context.getMessages();
  expect(Array.isArray(messages), "getMessages must resolve to a list");
  return messages;
}

async function view(context: ContextManager, options: RequestOptions): Promise<Message[]> {
  const messages: unknown = await context.getMessagesForRequest(options);
  expect(Array.isArray(messages), "getMessagesForRequest must resolve to a list");
  return messages;
}

/** Tries to change a returned list and message; frozen objects stay unchanged. */
function mutate(list: Message[], message: Message): void {
  Reflect.set(list, list.length, { role: "user", content: "not mine" });
  Reflect.set(message, "content", "changed");
}

function essence({ role, content, tool_call_id, tool_calls }: Message): unknown {
  return [role, content, tool_call_id ?? null, tool_calls ?? null];
}

/**
 * Returns a system message, a prompt, rounds of one call and its large result, an answer and a last prompt.
 */
function conversation(rounds: number): Message[] {
  const messages: Message[] = [
    { role: "system", content: "Be brief." },
    { role: "user", content: "Read the files and tell me what they say." },
  ];
  for (let round = 0; round < rounds; round++) {
    const [id, name] = [`call_${round}`, "read_file"];
    const input = { path: `file_${round}.txt` };
    messages.push(
      {
        role: "assistant",
        content: [{ type: "tool_call", id, name, input }],
        tool_calls: [{ id, name, tool: name, arguments: input }],
      },
      { role: "tool", tool_call_id: id, name, content: `File ${round}: ${"lorem ipsum dolor ".repeat(100)}` },
    );
  }
  messages.push({ role: "assistant", content: "They say lorem ipsum." }, {
    role: "user",
    content: "And which is the longest of them?",
  });
  return messages;
}
