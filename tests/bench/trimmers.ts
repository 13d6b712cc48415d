/** Context managers to compare: `context-simple`, a simple trimmer, and the floor. */
import * as contextSimple from "../../modules/context-simple/mod.ts";
import type { ContextManager, Coordinator, JsonObject, Message } from "../../src/sdk/types.ts";

/** A context manager under test. */
export interface Trimmer {
  add(message: Message): unknown;
  /** Returns the messages of a request of at most `budget` tokens. */
  view(budget: number): Message[] | Promise<Message[]>;
}

/** Returns `context-simple` with a config. */
export async function ours(config: JsonObject = {}): Promise<Trimmer> {
  let context: ContextManager | undefined;
  const coordinator = {
    session_state: {},
    hooks: { emit: () => Promise.resolve(), register: () => () => {} },
    getCapability: () => null,
    registerCapability: () => {},
    registerContributor: () => {},
    mount: (point: string, module: object) => {
      if (point === "context") context = module as ContextManager; // a context module mounts its context manager there
      return Promise.resolve();
    },
  };
  await contextSimple.mount(coordinator as unknown as Coordinator, config); // it uses only this part of a coordinator
  if (!context) throw new Error("Cannot measure: context-simple mounted no context");
  const mounted = context;
  return {
    add: (message) => mounted.addMessage(message),
    view: (token_budget) => mounted.getMessagesForRequest({ token_budget }),
  };
}

/**
 * Returns a simple trimmer: tokens are characters ÷ 4; from 0.9 of the budget on it drops the oldest messages
 * down to 0.7 and counts again after each one.
 */
export function simpleTrimmer(): Trimmer {
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

/** Returns the content as text. */
function contentText({ content }: Message): string {
  return typeof content === "string" ? content : JSON.stringify(content);
}

/** Returns the floor: appends messages and copies the last hundred. */
export function floor(): Trimmer {
  const messages: Message[] = [];
  return { add: (message) => void messages.push(message), view: () => messages.slice(-100) };
}
