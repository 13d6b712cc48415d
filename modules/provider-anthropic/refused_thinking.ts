/**
 * Thinking that the API refuses to take back: newer models check that nothing before a block of thinking has
 * changed, such as by a compaction, another set of tools or another account.
 */
import type { Anthropic } from "@anthropic-ai/sdk";
import { isObject } from "preamp/base";

type Body = Anthropic.MessageCreateParamsNonStreaming;

const REFUSAL = /invalid `?signature`? in `?thinking`? block|thinking`? blocks .{0,80}cannot be modified/i;

/** The blocks of thinking that the API refused in a session. */
export class RefusedThinking {
  /** Signatures, and the data of redacted blocks. */
  readonly #refused = new Set<unknown>();

  /**
   * Notes all thinking in a refused request: blocks after a refused one are refused, too. Returns false when
   * the error is another one.
   */
  learn(error: unknown, body: Body): boolean {
    if (!isObject(error) || error.status !== 400 || !REFUSAL.test(String(error.message))) return false;
    const known = this.#refused.size;
    for (const { content } of body.messages) {
      for (const block of typeof content === "string" ? [] : content) {
        if (isThinking(block)) this.#refused.add(markOf(block));
      }
    }
    return this.#refused.size > known;
  }

  /** Returns a body without refused thinking. A budget needs the thinking of the turn, and goes with it. */
  without(body: Body): Body {
    if (this.#refused.size === 0) return body;
    const { thinking, ...rest } = body;
    const messages = body.messages.map((message) =>
      message.role !== "assistant" || typeof message.content === "string" ? message : {
        ...message,
        content: message.content.filter((block) => !isThinking(block) || !this.#refused.has(markOf(block))),
      }
    );
    return {
      ...rest,
      ...(thinking && thinking.type !== "enabled" ? { thinking } : {}),
      messages: messages.filter(({ content }) => content.length > 0),
    };
  }
}

type Thinking = Anthropic.ThinkingBlockParam | Anthropic.RedactedThinkingBlockParam;

function isThinking(block: Anthropic.ContentBlockParam): block is Thinking {
  return block.type === "thinking" || block.type === "redacted_thinking";
}

function markOf(block: Thinking): string {
  return block.type === "thinking" ? block.signature : block.data;
}
