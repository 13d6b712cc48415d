/** Converts a call to the body of `/api/chat`. */
import { isObject, type JsonObject, type ToolSpec } from "preamp/base";
import {
  type AssistantPart,
  type CallSettings,
  type Conversation,
  Degradations,
  type MediaPart,
  objectSchema,
  textOfFile,
  type TextPart,
  type UserPart,
  type WireRequest,
} from "preamp/provider";

/** Settings of the plan that only this provider has. */
export interface RequestSettings {
  /** Returns the window of a model in tokens: `num_ctx`. */
  windowOf(model: string): number;
  /** How long the server keeps the model in memory, such as `10m`. */
  readonly keep_alive?: string | number;
  /** Further `options` of the API, such as `seed`. */
  readonly options: JsonObject;
}

/** Levels that the API takes. */
const LEVELS: ReadonlySet<string> = new Set(["low", "medium", "high", "max"]);

/** Other efforts → what the API takes. */
const EFFORTS: Readonly<Record<string, boolean | string>> = { none: false, minimal: "low", xhigh: "high" };

/** Returns the body for a call, and what the API cannot do, in addition to what is in `degradations`. */
export function toRequest(
  call: CallSettings,
  settings: RequestSettings,
  degradations: Degradations = new Degradations(),
): WireRequest {
  const messages = toMessages(call.conversation, degradations);
  const tools = offered(call, degradations);
  const body = {
    model: call.model,
    messages,
    stream: call.stream,
    // a request that is too long fails instead of losing its oldest messages
    truncate: false,
    shift: false,
    ...(tools.length > 0
      ? {
        tools: tools.map(({ name, description = "", parameters }) => ({
          type: "function",
          function: { name, description, parameters: withObjects(objectSchema(parameters)) },
        })),
      }
      : {}),
    ...toThink(call, degradations),
    ...toFormat(call, tools.length > 0, degradations),
    ...(settings.keep_alive === undefined ? {} : { keep_alive: settings.keep_alive }),
    options: {
      ...settings.options,
      num_ctx: settings.windowOf(call.model),
      num_predict: call.max_output_tokens,
      ...(call.temperature === undefined ? {} : { temperature: call.temperature }),
      ...(call.top_p === undefined ? {} : { top_p: call.top_p }),
      ...(call.stop?.length ? { stop: [...call.stop] } : {}),
    },
  };
  return { body, degradation: degradations.merged() };
}

/**
 * The API offers tools but cannot require one: only the choices `none` and of one tool change what is
 * offered.
 */
function offered(
  { tools, tool_choice: choice }: CallSettings,
  degradations: Degradations,
): readonly ToolSpec[] {
  if (tools.length === 0 || choice === "none") return [];
  if (choice !== undefined && choice !== "auto") {
    degradations.add(
      `tool_choice ${typeof choice === "string" ? choice : JSON.stringify(choice)}`,
      "Ollama cannot require a tool call",
      "auto",
    );
  }
  const named = tools.filter(({ name }) => name === choice);
  return named.length > 0 ? named : tools;
}

/** Returns a schema with objects as properties: the server refuses `true`, which allows anything. */
function withObjects(schema: JsonObject): JsonObject {
  if (!isObject(schema.properties)) return schema;
  const properties = Object.entries(schema.properties).map(([name, property]) => [
    name,
    isObject(property) ? withObjects(property) : {},
  ]);
  return { ...schema, properties: Object.fromEntries(properties) };
}

function toThink(
  { reasoning_effort: effort, thinking_budget: budget }: CallSettings,
  degradations: Degradations,
): { think?: boolean | string } {
  if (budget !== undefined) {
    if (budget > 0) {
      degradations.add(
        `thinking_budget ${budget}`,
        "Ollama has no limit for thinking",
        "thinking without a limit",
      );
    }
    return { think: budget > 0 };
  }
  if (effort === undefined) return {};
  if (LEVELS.has(effort)) return { think: effort };
  const think = Object.hasOwn(EFFORTS, effort) ? EFFORTS[effort]! : true;
  if (think !== false) {
    degradations.add(
      `reasoning_effort ${effort}`,
      "Ollama has the levels low, medium, high and max",
      String(think),
    );
  }
  return { think };
}

/** A format constrains the whole answer, so that the model could not call a tool. */
function toFormat(
  { response_format: format }: CallSettings,
  with_tools: boolean,
  degradations: Degradations,
): { format?: unknown } {
  if (format === undefined || format.type === "text") return {};
  if (with_tools) {
    degradations.add(`response_format ${format.type}`, "Ollama cannot combine tools with a format", "text");
    return {};
  }
  return { format: format.type === "json" ? "json" : format.schema };
}

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
function toMessages(conversation: Conversation, degradations: Degradations): OllamaMessage[] {
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
  const own: (TextPart | MediaPart)[] = [];
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
  parts: readonly (TextPart | MediaPart)[],
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

function fileText(part: MediaPart): string | undefined {
  const text = textOfFile(part);
  return text === undefined || part.name === undefined ? text : `File ${part.name}:\n${text}`;
}

function leftOut({ type, media_type, url, name }: MediaPart, degradations: Degradations): string {
  const what = `${type} ${name ?? url ?? media_type ?? ""}`.trim();
  return degradations.addUnreadable(what, "Ollama takes images as data, and no other files than texts");
}

function joined(texts: readonly string[]): string {
  return texts.join("\n\n");
}
