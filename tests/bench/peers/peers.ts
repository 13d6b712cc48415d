/** The trimmers of other libraries, configured as in their documentation for agents. */
import {
  AIMessage,
  type BaseMessage,
  HumanMessage,
  SystemMessage,
  ToolMessage,
  trimMessages,
} from "@langchain/core/messages";
import { type ModelMessage, pruneMessages } from "ai";
import { messageTokens } from "../../../src/sdk/token_estimate.ts";
import type { Message } from "../../../src/sdk/types.ts";
import type { Trimmer } from "../trimmers.ts";

/** Returns LangChain's `trimMessages`: the system message and the last messages that fit, starting with a human message. */
export function langchain(): Trimmer {
  const messages: BaseMessage[] = [];
  const ours = new Map<string, Message>();
  const tokens = new WeakMap<Message, number>(); // counts each message once, as context-simple does
  const count = (message: Message) => {
    const known = tokens.get(message) ?? messageTokens(message);
    tokens.set(message, known);
    return known;
  };
  const originalOf = (message: BaseMessage) => ours.get(message.id ?? "")!;
  return {
    add(message) {
      const id = String(messages.length);
      ours.set(id, message);
      messages.push(toLangchain(message, id));
    },
    async view(budget) {
      const kept = await trimMessages(messages, {
        maxTokens: budget,
        tokenCounter: (list: BaseMessage[]) => list.reduce((sum, message) => sum + count(originalOf(message)), 0),
        strategy: "last",
        startOn: "human",
        endOn: ["human", "tool"],
        includeSystem: true,
        allowPartial: false,
      });
      return kept.map(originalOf);
    },
  };
}

function toLangchain({ role, content, tool_calls, tool_call_id, name }: Message, id: string): BaseMessage {
  const text = textIn(content);
  if (role === "system") return new SystemMessage({ content: text, id });
  if (role === "tool") {
    return new ToolMessage({ content: text, tool_call_id: tool_call_id ?? "", name: name ?? "", id });
  }
  if (role === "user") return new HumanMessage({ content: text, id });
  const calls = (tool_calls ?? []).map((call) => ({ id: call.id, name: call.name, args: call.arguments }));
  return new AIMessage({ content: text, tool_calls: calls, id });
}

/** Returns AI SDK's `pruneMessages`: drops calls and results before the last 40 messages. It has no token budget. */
export function aiSdk(): Trimmer {
  const messages: ModelMessage[] = [];
  return {
    add: (message) => void messages.push(toModelMessage(message)),
    view: () =>
      pruneMessages({
        messages,
        reasoning: "all",
        toolCalls: "before-last-40-messages",
        emptyMessages: "remove",
      })
        .map(fromModelMessage),
  };
}

function toModelMessage({ role, content, tool_calls, tool_call_id, name }: Message): ModelMessage {
  const text = textIn(content);
  if (role === "system") return { role: "system", content: text };
  if (role === "user") return { role: "user", content: text };
  if (role === "tool") {
    const output = { type: "text" as const, value: text };
    const result = {
      type: "tool-result" as const,
      toolCallId: tool_call_id ?? "",
      toolName: name ?? "",
      output,
    };
    return { role: "tool", content: [result] };
  }
  const calls = (tool_calls ?? []).map((call) => ({
    type: "tool-call" as const,
    toolCallId: call.id,
    toolName: call.name,
    input: call.arguments,
  }));
  return { role: "assistant", content: [{ type: "text", text }, ...calls] };
}

function fromModelMessage({ role, content }: ModelMessage): Message {
  if (typeof content === "string") return { role, content };
  const text = content.flatMap((part) => part.type === "text" ? [part.text] : []).join("");
  const result = content.find((part) => part.type === "tool-result");
  if (result?.type === "tool-result") {
    const output = result.output.type === "text" ? result.output.value : JSON.stringify(result.output);
    return { role: "tool", tool_call_id: result.toolCallId, name: result.toolName, content: output };
  }
  const tool_calls = content.flatMap((part) =>
    part.type === "tool-call"
      ? [{
        id: part.toolCallId,
        name: part.toolName,
        tool: part.toolName,
        arguments: part.input as Record<string, unknown>,
      }]
      : []
  );
  return tool_calls.length > 0 ? { role, content: text, tool_calls } : { role, content: text };
}

function textIn(content: Message["content"]): string {
  return typeof content === "string"
    ? content
    : content.flatMap((block) => block.type === "text" ? [block.text] : []).join("\n");
}
