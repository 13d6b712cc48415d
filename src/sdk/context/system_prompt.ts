/** The system prompt factory (behaviour.md §8.1): asked on every request, its text stands for the stored system messages. */
import { deepFreeze, type Message } from "../mod.ts";

/** Tells the system prompt of the next request. What is no text, or throws, fails the request. */
export type SystemPromptFactory = () => string | Promise<string>;

/**
 * Resolves to the factory's prompt as a message.
 *
 * @throws {TypeError} when the factory gives no text; whatever the factory throws.
 */
export async function promptOf(factory: SystemPromptFactory): Promise<Message> {
  const content: unknown = await factory();
  if (typeof content !== "string") {
    throw new TypeError(
      `Cannot read the system prompt: the factory must give text: received ${typeof content}`,
    );
  }
  return deepFreeze({ role: "system", content, metadata: { source: "factory" } });
}
