/** The context contract as a test suite. */
import type { ContextManager, RequestOptions } from "../../sdk/contracts.ts";
import { errorMessage } from "../../sdk/errors.ts";
import { jsonEqual } from "../../sdk/json.ts";
import { type Message, textOf } from "../../sdk/messages.ts";
import { methodOf } from "../../sdk/snake_case_aliases.ts";
import { assertToolPairs } from "../assertions.ts";
import type { TestCoordinator } from "../coordinator.ts";
import { MockProvider } from "../mock_provider.ts";
import type { TestSession } from "../session.ts";
import {
  camelCased,
  type Cases,
  type CreateSubject,
  expect,
  inSession,
  isCodeError,
  registerCases,
  required,
  sessionOptions,
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

/** The context manager of a case, with camelCase methods, and the coordinator on which it is mounted. */
interface MountedContext {
  readonly context: ContextManager;
  readonly coordinator: TestCoordinator;
}

/**
 * Registers the cases that every context manager must pass. `create` makes a new module or context manager
 * per case.
 */
export function testContext(
  name: string,
  create: CreateSubject<ContextManager>,
  options: ContextSuiteOptions = {},
): void {
  const cases = options.compacts === false ? CASES : { ...CASES, ...CASES_OF_VIEWS };
  registerCases<MountedContext>(
    name,
    options,
    cases,
    (check) =>
      withSubject(create, "context", options, ({ coordinator }) => {
        const { context } = coordinator;
        expect(context, "No context was mounted and mount() did not return a ContextManager instance");
        return check({ context: camelCased(context, METHODS) as ContextManager, coordinator });
      }),
  );
  registerCases<Session>(name, options, CASES_IN_SESSIONS, async (check) => {
    const provider = new MockProvider(["First answer.", "Second answer."]);
    const context = required(await create(), options);
    await inSession(
      { ...sessionOptions(options), context, providers: [provider] },
      (session) => check({ session, provider }),
    );
  });
}

const CASES: Cases<MountedContext> = {
  "mount() mounts a context"() {},
  "all five methods are there"({ coordinator: { context } }) {
    for (const method of METHODS) expect(methodOf(context, method), `${method} must be a function`);
  },
  async "getMessages() is empty at first"({ context }) {
    expect((await stored(context)).length === 0, "a fresh context must hold no messages");
  },
  async "addMessage() keeps messages whole and in order"({ context }) {
    const messages = conversation(2);
    for (const message of messages) await context.addMessage(structuredClone(message));
    const kept = await stored(context);
    const { length } = messages;
    expect(kept.length === length, `${length} messages were added: received ${kept.length}`);
    for (const [index, message] of messages.entries()) {
      for (const key of ["role", "content", "tool_call_id", "tool_calls"]) {
        expect(jsonEqual(kept[index]?.[key], message[key]), `${key} of message ${index} was changed`);
      }
    }
  },
  async "addMessage() takes a message without fields"({ context }) {
    const error = await thrownBy(() => context.addMessage({} as Message)); // as in Amplifier's suite
    expect(!isCodeError(error), `addMessage crashed: ${errorMessage(error)}`);
  },
  async "addMessage() never refuses a result for its size"({ context }) {
    const [, , asking] = conversation(1);
    await context.addMessage(asking!); // conversation(1) has several messages
    await context.addMessage({ role: "tool", tool_call_id: "call_0", content: "x".repeat(1_000_000) });
    expect((await stored(context)).length === 2, "a large result must be stored");
  },
  async "getMessages() gives a copy"({ context }) {
    await context.addMessage({ role: "user", content: "Hello" });
    const copy = await stored(context);
    expect(copy[0], "the message must be there");
    mutate(copy, copy[0]);
    const [kept, ...more] = await stored(context);
    const is_same = more.length === 0 && kept?.content === "Hello";
    expect(is_same, "changing what getMessages gave changed the history");
  },
  async "setMessages() replaces the history by a copy"({ context }) {
    await context.addMessage({ role: "user", content: "before" });
    const history: Message[] = [{ role: "user", content: "a" }, { role: "assistant", content: "b" }];
    await context.setMessages(history);
    history.push({ role: "user", content: "later" });
    const contents = (await stored(context)).map((message) => textOf(message.content));
    expect(contents.join() === "a,b", `expected a,b: received ${contents.join()}`);
  },
  async "clear() empties the history"({ context }) {
    await context.setMessages(conversation(2));
    await context.clear();
    expect((await stored(context)).length === 0, "clear left messages");
    expect((await view(context, {})).length === 0, "clear left messages in the view");
  },
  async "getMessagesForRequest() shows everything when there is room"({ context }) {
    const messages = conversation(2);
    await context.setMessages(messages);
    const seen = await view(context, { token_budget: 100_000 });
    const same = jsonEqual(seen.map(essence), messages.map(essence));
    expect(same, "a view with room for everything must hold every message unchanged, in order");
  },
  async "getMessagesForRequest() gives a copy"({ context }) {
    await context.addMessage({ role: "user", content: "Hello" });
    const [seen] = await view(context, {});
    expect(seen, "the view must hold the message");
    mutate([], seen);
    expect((await stored(context))[0]?.content === "Hello", "changing the view changed the history");
  },
  async "should_compact() and compact() work if they exist"({ coordinator }) {
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
  },
};

/** A session with the context manager of a case. */
interface Session {
  readonly session: TestSession;
  readonly provider: MockProvider;
}

const CASES_IN_SESSIONS: Cases<Session> = {
  async "a session keeps its history in it"({ session, provider }) {
    for (const prompt of ["First question", "Second question"]) {
      const { status, error } = await session.run(prompt);
      expect(status === "completed", `the turn must be completed: received ${error?.message ?? status}`);
    }
    const seen = provider.requests.at(-1)?.messages.map(({ content }) => textOf(content)) ?? [];
    for (const text of ["First question", "First answer.", "Second question"]) {
      expect(seen.includes(text), `the second request must contain "${text}"`);
    }
  },
};

/** Cases of contexts that compact. */
const CASES_OF_VIEWS: Cases<MountedContext> = {
  async "a view under a budget leaves the history as it was"(mounted) {
    await underBudget(mounted);
  },
  async "a view under a budget is smaller than the history"(mounted) {
    const { seen, history } = await underBudget(mounted);
    const smaller = JSON.stringify(seen).length < JSON.stringify(history).length / 2;
    const reported = mounted.coordinator.hooks.getEvents().some(([, data]) => data.over_budget === true);
    expect(smaller || reported, "the view must fit, or an event must report over_budget");
  },
  async "a view under a budget never splits calls from results"(mounted) {
    assertToolPairs((await underBudget(mounted)).seen);
  },
  async "a view under a budget keeps the system message first"(mounted) {
    const [first] = (await underBudget(mounted)).seen;
    const is_kept = first?.role === "system" && textOf(first.content) === "Be brief.";
    expect(is_kept, "the system message must come first, unchanged");
  },
  async "a view under a budget keeps the last prompt word for word"(mounted) {
    const { seen, history } = await underBudget(mounted);
    const last = textOf(history.findLast((message) => message.role === "user")?.content);
    const kept = seen.some((message) => message.role === "user" && textOf(message.content) === last);
    expect(kept, `the last prompt must be there, unchanged`);
  },
  async "a view under a budget holds no internal fields"(mounted) {
    const { seen } = await underBudget(mounted);
    const internal = seen.flatMap((message) => Object.keys(message)).filter((key) => key.startsWith("_"));
    expect(internal.length === 0, `internal fields reach the provider: ${internal.join(", ")}`);
  },
  async "the same history and budget give the same view"({ context }) {
    await context.setMessages(conversation(30));
    const first = JSON.stringify(await view(context, { token_budget: 4000 }));
    const second = JSON.stringify(await view(context, { token_budget: 4000 }));
    expect(first === second, "two views of one history differ");
  },
};

/** Returns the view of a long history under a small budget; the history must stay as it is. */
async function underBudget({ context }: MountedContext): Promise<{ seen: Message[]; history: Message[] }> {
  for (const message of conversation(30)) await context.addMessage(message);
  const history = await stored(context);
  const seen = await view(context, { token_budget: 4000 });
  expect(jsonEqual(await stored(context), history), "making a view changed the history");
  return { seen, history };
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
