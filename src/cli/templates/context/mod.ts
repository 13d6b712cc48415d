/** `__ID__`: a context manager that gives each request the newest messages that fit. */
import {
  type ContextManager,
  type Coordinator,
  type JsonObject,
  type Message,
  messageTokens,
  type ModuleInfo,
  type MountReturn,
  readConfig,
  type RequestOptions,
} from "preamp";

const CONFIG_SCHEMA = {
  type: "object",
  properties: {
    max_tokens: { type: "integer", minimum: 1, default: 100_000, description: "Tokens of a request" },
  },
};

/** The metadata of this module. */
export const module: ModuleInfo = {
  id: "__ID__",
  type: "context",
  version: "0.1.0",
  description: "Keeps the whole conversation and gives each request the newest messages that fit.",
  config_schema: CONFIG_SCHEMA,
  permissions: {}, // a context manager that uses files needs { read: [...], write: [...] }
};

/** Mounts the context manager. */
export async function mount(coordinator: Coordinator, config: JsonObject): Promise<MountReturn> {
  const { max_tokens } = readConfig<{ max_tokens: number }>(CONFIG_SCHEMA, config);
  await coordinator.mount("context", new WindowContext(max_tokens));
  return { name: module.id, version: module.version, provides: ["context"] };
}

/** A context manager. It returns copies, so that only its own methods change the history. */
class WindowContext implements ContextManager {
  #messages: Message[] = [];
  readonly #max_tokens: number;

  constructor(max_tokens: number) {
    this.#max_tokens = max_tokens;
  }

  addMessage(message: Message): Promise<void> {
    this.#messages.push(structuredClone(message));
    return Promise.resolve();
  }

  getMessages(): Promise<Message[]> {
    return Promise.resolve(structuredClone(this.#messages));
  }

  setMessages(messages: Message[]): Promise<void> {
    this.#messages = structuredClone(messages);
    return Promise.resolve();
  }

  clear(): Promise<void> {
    this.#messages = [];
    return Promise.resolve();
  }

  getMessagesForRequest(options: RequestOptions = {}): Promise<Message[]> {
    return Promise.resolve(structuredClone(view(this.#messages, this.#budget(options))));
  }

  /** Returns the request's budget, else the room in the provider's window; at most the configured maximum. */
  #budget({ token_budget, provider }: RequestOptions): number {
    if (token_budget !== undefined && token_budget > 0) return token_budget;
    const { context_window, max_output_tokens = 4096 } = provider?.getInfo().defaults ?? {};
    const room = typeof context_window === "number" ? context_window - Number(max_output_tokens) : Infinity;
    return Math.min(this.#max_tokens, room);
  }
}

/** Returns the system messages, the last prompt, and the newest other messages that fit. */
function view(messages: readonly Message[], budget: number): Message[] {
  const last_prompt = messages.findLastIndex(({ role }) => role === "user");
  const keep = new Set(
    messages.flatMap(({ role }, at) => role === "system" || at === last_prompt ? [at] : []),
  );
  const cost = (indices: Iterable<number>) =>
    [...indices].reduce((sum, at) => sum + messageTokens(messages[at]!), 0);
  let left = budget - cost(keep);
  for (const group of groups(messages).reverse()) {
    const added = group.filter((at) => !keep.has(at));
    left -= cost(added);
    if (left < 0) break;
    for (const at of added) keep.add(at);
  }
  return messages.filter((_, at) => keep.has(at));
}

/** Messages that must stay together: an answer with tool calls and the results of those calls. */
function groups(messages: readonly Message[]): number[][] {
  const all: number[][] = [];
  messages.forEach(({ role }, at) => {
    if (role === "tool" && all.length > 0) all.at(-1)!.push(at);
    else all.push([at]);
  });
  return all;
}
