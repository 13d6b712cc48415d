/** What is compared: ours, the example of the requirement (R0), and the least that any context must do. */
import * as contextSimple from "../../modules/context-simple/mod.ts";
import type { ContextManager, Coordinator, JsonObject, Message } from "../../src/sdk/types.ts";

/** A conversation memory under test. */
export interface Trimmer {
  add(message: Message): unknown;
  /** The messages of a request of at most `budget` tokens. */
  view(budget: number): Message[] | Promise<Message[]>;
}

/** Returns `context-simple`, with these knobs. */
export async function ours(config: JsonObject = {}): Promise<Trimmer> {
  let context: ContextManager | undefined;
  const coordinator = {
    session_state: {},
    hooks: { emit: () => Promise.resolve(), register: () => () => {} },
    getCapability: () => null,
    registerCapability: () => {},
    registerContributor: () => {},
    mount: (point: string, module: object) => {
      if (point === "context") context = module as ContextManager; // what a context module mounts there
      return Promise.resolve();
    },
  };
  await contextSimple.mount(coordinator as unknown as Coordinator, config); // it uses no more of a coordinator
  if (!context) throw new Error("Cannot measure: context-simple mounted no context");
  const mounted = context;
  return {
    add: (message) => mounted.addMessage(message),
    view: (token_budget) => mounted.getMessagesForRequest({ token_budget }),
  };
}

/**
 * Returns R0's example: characters of the contents ÷ 4, oldest messages out from 0.9 down to 0.7 of the budget, counted anew
 * after each. The characters of a message are taken once, which the example does not do; it would be some twenty times slower.
 */
export function r0(): Trimmer {
  const messages: { message: Message; chars: number }[] = [];
  const estimate = (of: readonly { chars: number }[]) =>
    Math.floor(of.reduce((sum, { chars }) => sum + chars, 0) / 4);
  return {
    add: (message) => void messages.push({ message, chars: contentText(message).length }),
    view: (budget) => {
      if (estimate(messages) <= budget * 0.9) return messages.map(({ message }) => message);
      const system = messages.filter(({ message }) => message.role === "system");
      const other = messages.filter(({ message }) => message.role !== "system");
      while (estimate([...system, ...other]) > budget * 0.7 && other.length > 0) other.shift();
      return [...system, ...other].map(({ message }) => message);
    },
  };
}

/** Python's `str(content)`, near enough. */
function contentText({ content }: Message): string {
  return typeof content === "string" ? content : JSON.stringify(content);
}

/** Returns the floor: append, and copy the last hundred messages, whatever they are. */
export function floor(): Trimmer {
  const messages: Message[] = [];
  return { add: (message) => void messages.push(message), view: () => messages.slice(-100) };
}
