/** What the tests of `context-simple` share: a mounted context with its events, message builders, and the rules every view obeys. */
import type { ContextManager, Coordinator, HookHandler, JsonObject, Message, Provider, Tool } from "preamp";
import { estimateTokens, messageTokens } from "preamp";
import { mount } from "../../modules/context-simple/mod.ts";
import type { ContextStatus } from "../../src/sdk/context/simple_context.ts";
import { assert, assertEquals } from "../assert.ts";

/** A mounted context and what it did. */
export interface Opened {
  readonly context: ContextManager;
  readonly events: { event: string; data: JsonObject }[];
  readonly state: JsonObject;
  /** The tool it mounted. */
  readonly tool: Tool | undefined;
  status(): ContextStatus;
  /** Says that the provider counted so many tokens for the last request. */
  answered(input_tokens: number): void;
  /** Data of the events of one name, in order. */
  told(event: string): JsonObject[];
}

/** What a context finds in its session. */
export interface OpenOptions {
  /** `session_state` as an earlier run left it. */
  readonly state?: JsonObject;
  /** Called as a hook would be. */
  readonly onEvent?: (event: string) => unknown;
  /** What the capability `session.usages` tells. */
  readonly usages?: readonly JsonObject[];
  /** The module; default `context-simple`. */
  readonly mount?: typeof mount;
}

/** Mounts the module; `onEvent` is called as a hook would be. */
export async function open(
  config: JsonObject = {},
  { state = {}, onEvent, usages = [], mount: mountModule = mount }: OpenOptions = {},
): Promise<Opened> {
  const events: Opened["events"] = [];
  const capabilities = new Map<string, unknown>();
  const mounted = new Map<string, unknown>();
  const handlers = new Map<string, HookHandler[]>();
  let last_usage: JsonObject | null = null;
  let answers = 0;
  capabilities.set("session.usages", () => usages);
  capabilities.set("session.last_usage", () => last_usage);
  const coordinator = {
    session_state: state,
    hooks: {
      async emit(event: string, data: JsonObject) {
        events.push({ event, data });
        for (const handler of handlers.get(event) ?? []) await handler(event, data);
        await onEvent?.(event);
      },
      register: (event: string, handler: HookHandler) =>
        handlers.set(event, [...handlers.get(event) ?? [], handler]),
    },
    mount: (point: string, module: unknown) => Promise.resolve(mounted.set(point, module)),
    registerCapability: (name: string, value: unknown) => capabilities.set(name, value),
    getCapability: (name: string) => capabilities.get(name) ?? null,
    registerContributor: () => undefined,
  };
  // The module uses no more of a coordinator than this; anything else would be undefined and fail the test.
  await mountModule(coordinator as unknown as Coordinator, config);
  return {
    context: mounted.get("context") as ContextManager, // what the module mounted
    events,
    state,
    status: capabilities.get("context.status") as () => ContextStatus, // what the module registered
    tool: mounted.get("tools") as Tool | undefined, // what the module mounted, or nothing
    answered: (input_tokens) => void (last_usage = { answer: ++answers, input_tokens }),
    told: (event) => events.filter((each) => each.event === event).map((each) => each.data),
  };
}

/** Adds messages in order. */
export async function addAll(context: ContextManager, messages: readonly unknown[]): Promise<void> {
  for (const message of messages) await context.addMessage(message as Message); // broken ones are on purpose
}

/** A system message. */
export const system = (content: string): Message => ({ role: "system", content });

/** A human message. */
export const user = (content: string): Message => ({ role: "user", content });

/** An answer without calls. */
export const answer = (text: string): Message => ({ role: "assistant", content: [{ type: "text", text }] });

/** An assistant message that makes calls, and the results of those that have one. */
export function group(results: Record<string, string | null>): Message[] {
  const ids = Object.keys(results);
  const tool_calls = ids.map((id) => ({ id, name: "read", tool: "read", arguments: { path: id } }));
  const content = tool_calls.map(({ id, name, arguments: input }) => ({
    type: "tool_call",
    id,
    name,
    input,
  }));
  const answers = Object.entries(results).filter((entry): entry is [string, string] => entry[1] !== null);
  return [
    { role: "assistant", content, tool_calls },
    ...answers.map(([tool_call_id, text]): Message => ({
      role: "tool",
      tool_call_id,
      name: "read",
      content: text,
    })),
  ];
}

/** `count` groups of one call each, whose results are about `tokens` tokens long. */
export function groups(count: number, tokens: number, prefix = "call"): Message[] {
  return Array.from({ length: count }, (_, index) => group({ [`${prefix}_${index}`]: words(tokens) })).flat();
}

const WORDS = "some words of a result ";
const TOKENS_OF_WORDS = estimateTokens(WORDS.repeat(1000)) / 1000;

/** English of about this many tokens. */
export function words(tokens: number): string {
  return WORDS.repeat(Math.ceil(tokens / TOKENS_OF_WORDS));
}

/** A provider that tells no more than its numbers. */
export function providerOf(context_window: number, max_output_tokens: number): Provider {
  const info = {
    id: "fake",
    display_name: "fake",
    credential_env_vars: [],
    capabilities: [],
    config_fields: [],
    defaults: { context_window, max_output_tokens },
  };
  // A view asks a provider for nothing but this.
  return { name: "fake", getInfo: () => info } as unknown as Provider;
}

/** Tokens of messages. */
export function tokensOf(messages: readonly Message[]): number {
  return messages.reduce((sum, message) => sum + messageTokens(message), 0);
}

/** Returns true for the notice of a compaction. */
export function isNotice(message: Message | undefined): boolean {
  return message?.metadata?.source === "context-compaction";
}

/** The view without its notice. */
export function withoutNotice(view: readonly Message[]): Message[] {
  return view.filter((message) => !isNotice(message));
}

/** Fails unless the view obeys behaviour.md §8.8: I2, I3, I4, I5, I6, I8. */
export function assertView(view: readonly Message[], history: readonly Message[], budget: number): void {
  assert(tokensOf(view) <= budget, `I6: ${tokensOf(view)} tokens, the budget is ${budget}`);
  const systems = (messages: readonly Message[]) => messages.filter((message) => message?.role === "system");
  const contentOf = (messages: readonly Message[]) => messages.map((message) => message.content);
  const count = systems(history).length;
  assertEquals(contentOf(view.slice(0, count)), contentOf(systems(history)), "I4: system messages first");
  assertEquals(systems(view).length, count, "I4: no more than those");
  assertPairs(view);
  assertHumans(view, history);
  for (const message of view) {
    assert(Object.keys(message).every((key) => !key.startsWith("_")), "I8: internal key in a view");
  }
}

function assertPairs(view: readonly Message[]): void {
  for (let index = 0; index < view.length; index++) {
    const message = view[index] as Message; // index is below the length
    assert(message.role !== "tool", `I2: result ${index} without a call before it`);
    const ids = (message.role === "assistant" ? message.tool_calls ?? [] : []).map((call) => call.id);
    const answers: string[] = [];
    while (answers.length < ids.length && view[index + 1]?.role === "tool") {
      answers.push(view[++index]?.tool_call_id ?? "");
    }
    if (index === view.length - 1 && answers.length < ids.length) {
      assertEquals(
        answers,
        ids.filter((id) => answers.includes(id)),
        "I3: results of running calls in order",
      );
    } else assertEquals(answers, ids, "I3: results follow their calls in order");
  }
}

function assertHumans(view: readonly Message[], history: readonly Message[]): void {
  const humans = history.filter((message) => message?.role === "user" && message.metadata === undefined);
  const shown = view.filter((message) => message.role === "user" && message.metadata === undefined);
  const [first, last] = [humans[0], humans.at(-1)];
  if (!first || !last) return;
  assertEquals(shown.at(-1)?.content, last.content, "I5: last human message verbatim");
  const stub = typeof shown[0]?.content === "string" &&
    shown[0].content.startsWith("[User message compacted");
  if (!stub || first === last) {
    assertEquals(shown[0]?.content, first.content, "I5: first human message present");
  }
}
