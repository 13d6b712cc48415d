/** The events of the parts of a turn, in order, and its messages in short. */
import type { Message } from "../../src/sdk/types.ts";

/** A turn begins. */
export const START = ["execution:start", "prompt:submit", "context:message"];

/** A model call that answers with text. */
export const TEXT = [
  "provider:request",
  "content_block:start",
  "content_block:delta",
  "content_block:end",
  "provider:response",
  "context:message",
];

/** A model call that answers with a tool call. */
export const CALL = [
  "provider:request",
  "content_block:start",
  "content_block:end",
  "provider:response",
  "context:message",
];

/** A turn ends. */
export const END = ["prompt:complete", "execution:end", "orchestrator:complete"];

/** Returns role and text of each message; the type of a block without text. */
export function brief(messages: readonly Message[]): string[][] {
  return messages.map(({ role, content }) => [
    role,
    typeof content === "string" ? content : content.map((block) => block.text ?? block.type).join(),
  ]);
}
