/** A mounted context with its events, message builders, and the rules of every view. */
import type { ContextManager, Coordinator, HookHandler, JsonObject, Message, Provider, Tool } from "preamp";
import { estimateTokens, messageTokens } from "preamp";
import { mount } from "../../modules/context-simple/mod.ts";
import type { ContextStatus } from "../../src/sdk/context/simple_context.ts";
import { assert, assertEquals } from "../assert.ts";

/** A mounted context and its recorded effects. */
export interface Opened {
  readonly context: ContextManager;
  readonly events: { event: string; data: JsonObject }[];
  readonly state: JsonObject;
  /** The tool it mounted. */
  readonly tool: Tool | undefined;
  status(): ContextStatus;
  /** Reports this number of tokens as the usage of the last request. */
  answered(input_tokens: number): void;
  /** Data of the events of one name, in order. */
  dataOf(event: string): JsonObject[];
}

/** Options of a context's session. */
export interface OpenOptions {
  /** `session_state` as an earlier run left it. */
  readonly state?: JsonObject;
  /** Called for each event, like a hook. */
  readonly onEvent?: (event: string) => unknown;
  /** Value of the capability `session.usages`. */
  readonly usages?: readonly JsonObject[];
  /** The module; default `context-simple`. */
  readonly mount?: typeof mount;
}

/** Mounts the module; `onEvent` is called for each event, like a hook. */
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
  // the module uses only these members; any other is undefined and fails the test
  await mountModule(coordinator as unknown as Coordinator, config);
  return {
    context: mounted.get("context") as ContextManager, // what the module mounted
    events,
    state,
    status: capabilities.get("context.status") as () => ContextStatus, // what the module registered
    tool: mounted.get("tools") as Tool | undefined, // what the module mounted, or nothing
    answered: (input_tokens) => void (last_usage = { answer: ++answers, input_tokens }),
    dataOf: (event) => events.filter((each) => each.event === event).map((each) => each.data),
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

/** A provider with only its window and output size. */
export function providerOf(context_window: number, max_output_tokens: number): Provider {
  const info = {
    id: "fake",
    display_name: "fake",
    credential_env_vars: [],
    capabilities: [],
    config_fields: [],
    defaults: { context_window, max_output_tokens },
  };
  // a view uses only these members of a provider
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

/** Fails unless the view keeps the guarantees of src/docs/context.md#guarantees. */
export function assertView(view: readonly Message[], history: readonly Message[], budget: number): void {
  const tokens = tokensOf(view);
  assert(tokens <= budget, `budget exceeded: ${tokens} tokens, the budget is ${budget}`);
  const systems = (messages: readonly Message[]) => messages.filter((message) => message?.role === "system");
  const contentOf = (messages: readonly Message[]) => messages.map((message) => message.content);
  const count = systems(history).length;
  assertEquals(
    contentOf(view.slice(0, count)),
    contentOf(systems(history)),
    "system messages must come first",
  );
  assertEquals(systems(view).length, count, "no other system messages");
  assertPairs(view);
  assertHumans(view, history);
  for (const message of view) {
    assert(Object.keys(message).every((key) => !key.startsWith("_")), "internal key in a view");
  }
}

function assertPairs(view: readonly Message[]): void {
  for (let index = 0; index < view.length; index++) {
    const message = view[index] as Message; // index is below the length
    assert(message.role !== "tool", `result ${index} without a call before it`);
    const ids = (message.role === "assistant" ? message.tool_calls ?? [] : []).map((call) => call.id);
    const answers: string[] = [];
    while (answers.length < ids.length && view[index + 1]?.role === "tool") {
      answers.push(view[++index]?.tool_call_id ?? "");
    }
    if (index === view.length - 1 && answers.length < ids.length) {
      assertEquals(
        answers,
        ids.filter((id) => answers.includes(id)),
        "results of running calls in order",
      );
    } else assertEquals(answers, ids, "results follow their calls in order");
  }
}

function assertHumans(view: readonly Message[], history: readonly Message[]): void {
  const humans = history.filter((message) => message?.role === "user" && message.metadata === undefined);
  const shown = view.filter((message) => message.role === "user" && message.metadata === undefined);
  const [first, last] = [humans[0], humans.at(-1)];
  if (!first || !last) return;
  assertEquals(shown.at(-1)?.content, last.content, "last human message verbatim");
  const stub = typeof shown[0]?.content === "string" &&
    shown[0].content.startsWith("[User message compacted");
  if (!stub || first === last) {
    assertEquals(shown[0]?.content, first.content, "first human message present");
  }
}
