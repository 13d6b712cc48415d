/** A context manager that keeps everything and never compacts. */
import type { ContextManager, RequestOptions } from "../contracts.ts";
import type { Message } from "../messages.ts";
import { toPlain } from "../json.ts";
import { withSnakeCase } from "../snake_case_aliases.ts";

/** A context manager over a list; copies messages in and out. */
export class MockContextManager implements ContextManager {
  /** Options of all calls of `getMessagesForRequest`, in order. */
  readonly requests: RequestOptions[] = [];
  #messages: Message[];

  /** Creates a context manager with these messages. */
  constructor(messages: readonly Message[] = []) {
    this.#messages = copy(messages);
  }

  /** A copy of the stored messages. */
  get messages(): Message[] {
    return copy(this.#messages);
  }

  /** Appends a message. */
  addMessage(message: Message): Promise<void> {
    this.#messages.push(...copy([message]));
    return Promise.resolve();
  }

  /** Resolves to all messages; ignores the budget. */
  getMessagesForRequest(options: RequestOptions = {}): Promise<Message[]> {
    this.requests.push(options);
    return Promise.resolve(this.messages);
  }

  /** Resolves to all messages. */
  getMessages(): Promise<Message[]> {
    return Promise.resolve(this.messages);
  }

  /** Replaces the messages. */
  setMessages(messages: Message[]): Promise<void> {
    this.#messages = copy(messages);
    return Promise.resolve();
  }

  /** Removes all messages. */
  clear(): Promise<void> {
    this.#messages = [];
    return Promise.resolve();
  }
}

withSnakeCase(MockContextManager);

function copy(messages: readonly Message[]): Message[] {
  return toPlain(messages) as unknown as Message[]; // messages are plain data
}
