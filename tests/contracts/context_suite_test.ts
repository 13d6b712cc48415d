import { type ContextSuiteOptions, MockContextManager, testContext } from "preamp/testing";
import type { ContextManager, Message, Module, RequestOptions } from "preamp";
import { assert, assertEquals } from "../assert.ts";
import { failures } from "./broken_kit.ts";

const check = (create: () => ContextManager | Module, options: ContextSuiteOptions = {}) =>
  failures((name, test) => testContext(name, create, { deadline_ms: 500, ...options, test }));

/** A small correct context: system messages, then as many complete groups from the end as fit. */
class GoodContext extends MockContextManager {
  override getMessagesForRequest({ token_budget = Infinity }: RequestOptions = {}): Promise<Message[]> {
    const all = this.messages;
    const system = all.filter((message) => message.role === "system");
    const rest = all.filter((message) => message.role !== "system");
    const size = (messages: Message[]) => JSON.stringify(messages).length / 4;
    while (size([...system, ...rest]) > token_budget && rest.length > 1) {
      rest.shift();
      while (rest[0]?.role === "tool") rest.shift();
    }
    return Promise.resolve([...system, ...rest]);
  }
}

Deno.test("testContext() passes a good context", async () => {
  const { failed, ran } = await check(() => new GoodContext());
  assertEquals(failed, []);
  assert(ran >= 18);
});

Deno.test("testContext() passes a context that never compacts with compacts: false, and fails it otherwise", async () => {
  assertEquals((await check(() => new MockContextManager(), { compacts: false })).failed, []);
  assertEquals((await check(() => new MockContextManager())).failed, [
    "a view under a budget is smaller than the history",
  ]);
});

Deno.test("testContext() fails Amplifier's simple context where it splits pairs", async () => {
  class SimpleContext extends MockContextManager {
    override getMessagesForRequest({ token_budget = 100_000 }: RequestOptions = {}) {
      const size = (messages: Message[]) =>
        messages.reduce((sum, message) => sum + String(message.content ?? "").length, 0) / 4;
      const system = this.messages.filter((message) => message.role === "system");
      const other = this.messages.filter((message) => message.role !== "system");
      if (size(this.messages) > token_budget * 0.9) {
        while (size([...system, ...other]) > token_budget * 0.7 && other.length > 0) other.shift();
        return Promise.resolve([...system, ...other]);
      }
      return Promise.resolve(this.messages);
    }
  }
  const { failed } = await check(() => new SimpleContext());
  assertEquals(failed.filter((title) => !title.includes("never splits")), []);
});

Deno.test("testContext() fails everything when nothing is mounted", async () => {
  const { failed, ran } = await check(() => ({ mount: () => null }));
  assertEquals(failed.length, ran);
});

/** Returns a correct context with one mistake. */
const broken: [string, string, () => ContextManager][] = [
  [
    "an old should_compact() that returns text",
    "should_compact() and compact() work if they exist",
    () => Object.assign(new GoodContext(), { should_compact: () => "yes" }),
  ],
  [
    "an old compact() that crashes",
    "should_compact() and compact() work if they exist",
    () => Object.assign(new GoodContext(), { compact: () => (undefined as unknown as Message[]).length }),
  ],
  [
    "a method that is missing (VAL-10)",
    "all five methods are there",
    () => Object.assign(new GoodContext(), { setMessages: undefined, set_messages: undefined }),
  ],
  [
    "a first message of its own",
    "getMessages() is empty at first",
    () => new GoodContext([{ role: "system", content: "mine" }]),
  ],
  ["lost fields", "addMessage() keeps messages whole and in order", () =>
    new class extends GoodContext {
      override addMessage({ role, content }: Message) {
        return super.addMessage({ role, content });
      }
    }()],
  [
    "a crash on an empty message",
    "addMessage() takes a message without fields",
    () =>
      new class extends GoodContext {
        override async addMessage(message: Message) {
          if (message.content.length > 0) await super.addMessage(message);
        }
      }(),
  ],
  [
    "a refusal of large results",
    "addMessage() never refuses a result for its size",
    () =>
      new class extends GoodContext {
        override addMessage(message: Message) {
          return message.content?.length > 100_000
            ? Promise.reject(new Error("too large"))
            : super.addMessage(message);
        }
      }(),
  ],
  ["live messages", "getMessages() gives a copy", () => {
    let live: Message[] = [];
    return new class extends GoodContext {
      override addMessage(message: Message) {
        live.push(message);
        return Promise.resolve();
      }
      override getMessages() {
        return Promise.resolve(live);
      }
      override setMessages(messages: Message[]) {
        live = [...messages];
        return Promise.resolve();
      }
    }();
  }],
  ["a live view", "getMessagesForRequest() gives a copy", () => {
    const live: Message[] = [];
    return new class extends GoodContext {
      override addMessage(message: Message) {
        live.push(message);
        return Promise.resolve();
      }
      override getMessages() {
        return Promise.resolve(structuredClone(live));
      }
      override getMessagesForRequest() {
        return Promise.resolve(live);
      }
    }();
  }],
  ["a history kept by reference", "setMessages() replaces the history by a copy", () => {
    let live: Message[] = [];
    return new class extends GoodContext {
      override getMessages() {
        return Promise.resolve(structuredClone(live));
      }
      override setMessages(messages: Message[]) {
        live = messages;
        return Promise.resolve();
      }
    }();
  }],
  [
    "a clear that clears nothing",
    "clear() empties the history",
    () => Object.assign(new GoodContext(), { clear: () => Promise.resolve() }),
  ],
  [
    "a view that drops without need",
    "getMessagesForRequest() shows everything when there is room",
    () =>
      new class extends GoodContext {
        override async getMessagesForRequest(options: RequestOptions = {}) {
          return (await super.getMessagesForRequest(options)).slice(-1);
        }
      }(),
  ],
  [
    "a compaction that forgets",
    "a view under a budget leaves the history as it was",
    () =>
      new class extends GoodContext {
        override async getMessagesForRequest(options: RequestOptions = {}) {
          const view = await super.getMessagesForRequest(options);
          await this.setMessages(view);
          return view;
        }
      }(),
  ],
  [
    "half a pair",
    "a view under a budget never splits calls from results",
    () => viewOf((view) => view.filter((message) => message.role !== "tool")),
  ],
  [
    "a dropped system message",
    "a view under a budget keeps the system message first",
    () => viewOf((view) => view.filter((message) => message.role !== "system")),
  ],
  [
    "a shortened last prompt",
    "a view under a budget keeps the last prompt word for word",
    () =>
      viewOf((view) =>
        view.map((message) =>
          message.role === "user" ? { ...message, content: String(message.content).slice(0, 5) } : message
        )
      ),
  ],
  [
    "internal fields",
    "a view under a budget holds no internal fields",
    () => viewOf((view) => view.map((message, _seq) => ({ ...message, _seq }))),
  ],
  ["a view that changes by itself", "the same history and budget give the same view", () => {
    let views = 0;
    return viewOf((view) => [...view, { role: "user", content: `view ${++views}` }]);
  }],
];

function viewOf(change: (view: Message[]) => Message[]): ContextManager {
  return new class extends GoodContext {
    override async getMessagesForRequest(options: RequestOptions = {}) {
      return change(await super.getMessagesForRequest(options));
    }
  }();
}

for (const [what, title, create] of broken) {
  Deno.test(`testContext() fails "${title}" for ${what}`, async () => {
    const { failed } = await check(create);
    assert(failed.includes(title), `failed: ${failed.join(", ") || "nothing"}`);
    assert(!failed.includes("mount() mounts a context"));
  });
}
