/** Converts a conversation to the messages of `/api/chat`. */
import type { JsonObject } from "preamp/base";
import type {
  AssistantPart,
  Conversation,
  Degradations,
  MediaPart,
  ToolResultPart,
  UserPart,
} from "preamp/provider";

/** A message of `/api/chat`. */
export interface OllamaMessage {
  role: "system" | "user" | "assistant" | "tool";
  content: string;
  /** Images in base64. */
  images?: string[];
  thinking?: string;
  tool_calls?: { id: string; function: { name: string; arguments: JsonObject } }[];
  tool_name?: string;
  tool_call_id?: string;
}

/** Returns the messages of a conversation. Media that the API cannot take are added to `degradations`. */
export function toMessages(conversation: Conversation, degradations: Degradations): OllamaMessage[] {
  const { system, turns } = conversation;
  const messages: OllamaMessage[] = [];
  if (system.length > 0) messages.push({ role: "system", content: joined(system.map(({ text }) => text)) });
  for (const turn of turns) {
    if (turn.role === "assistant") messages.push(toAssistantMessage(turn.parts));
    else messages.push(...toUserMessages(turn.parts, degradations));
  }
  return messages;
}

function toAssistantMessage(parts: readonly AssistantPart[]): OllamaMessage {
  const message: OllamaMessage = { role: "assistant", content: "" };
  const texts: string[] = [];
  const thoughts: string[] = [];
  for (const part of parts) {
    if (part.type === "text") texts.push(part.text);
    else if (part.type === "native") thoughts.push(String(part.block.thinking ?? ""));
    else {
      const { id, name, input } = part;
      (message.tool_calls ??= []).push({ id, function: { name, arguments: input } });
    }
  }
  message.content = joined(texts);
  if (thoughts.length > 0) message.thinking = joined(thoughts);
  return message;
}

function toUserMessages(parts: readonly UserPart[], degradations: Degradations): OllamaMessage[] {
  const messages: OllamaMessage[] = [];
  const own: (Exclude<UserPart, ToolResultPart>)[] = [];
  for (const part of parts) {
    if (part.type !== "tool_result") own.push(part);
    else {
      const { tool_call_id, name, content } = part;
      const output = typeof content === "string" ? { content } : toContent(content, degradations);
      messages.push({ role: "tool", ...output, tool_name: name, tool_call_id });
    }
  }
  if (own.length > 0) messages.push({ role: "user", ...toContent(own, degradations) });
  return messages;
}

function toContent(
  parts: readonly Exclude<UserPart, ToolResultPart>[],
  degradations: Degradations,
): Pick<OllamaMessage, "content" | "images"> {
  const images: string[] = [];
  const texts = parts.flatMap((part) => {
    if (part.type === "text") return part.text;
    if (part.type === "image" && part.data !== undefined) {
      images.push(part.data);
      return [];
    }
    return fileText(part) ?? leftOut(part, degradations);
  });
  return { content: joined(texts), ...(images.length > 0 ? { images } : {}) };
}

/** Returns the text of a text file; undefined for other files, and for data that is not base64. */
function fileText({ type, media_type, data, name }: MediaPart): string | undefined {
  if (type !== "file" || data === undefined || !media_type?.startsWith("text/")) return undefined;
  try {
    const text = new TextDecoder().decode(Uint8Array.fromBase64(data));
    return name === undefined ? text : `File ${name}:\n${text}`;
  } catch {
    return undefined;
  }
}

function leftOut({ type, media_type, url, name }: MediaPart, degradations: Degradations): string {
  const what = `${type} ${name ?? url ?? media_type ?? ""}`.trim();
  degradations.add(what, "Ollama takes images as data, and no other files than texts", "a note in its place");
  return `[The ${what} cannot be shown to this model.]`;
}

function joined(texts: readonly string[]): string {
  return texts.join("\n\n");
}
