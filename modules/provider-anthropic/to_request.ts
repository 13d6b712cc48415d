/** Converts a call to the body of `POST /v1/messages`. */
import type { Anthropic } from "@anthropic-ai/sdk";
import { isObject, type JsonObject, type ToolSpec } from "preamp/base";
import {
  type AssistantPart,
  type CallSettings,
  type Conversation,
  Degradations,
  type MediaPart,
  type NativePart,
  textOfFile,
  type TextPart,
  type ToolResultPart,
  type Turn,
  type UserPart,
  type WireRequest,
} from "preamp/provider";
import { CONTAINER } from "./from_response.ts";
import { traitsOf } from "./mod.ts";
import { inputSchema } from "./property_names.ts";
import { formatOf } from "./response_format.ts";

type Body = Anthropic.MessageCreateParamsNonStreaming;
type Block = Anthropic.ContentBlockParam;

/** Breakpoints that the API accepts in one request. */
const MAX_BREAKPOINTS = 4;
/** Least tokens of a thinking budget. */
const MIN_BUDGET = 1024;
const EFFORTS: ReadonlySet<string> = new Set(["low", "medium", "high", "xhigh", "max"]);

/**
 * Returns the request for a call: the body of the API.
 *
 * @param refused_formats Results of `formatKey` for the response formats to leave out.
 */
export function toRequest(call: CallSettings, refused_formats: ReadonlySet<string> = new Set()): WireRequest {
  const { model, conversation, tools, max_output_tokens, stop, temperature, top_p } = call;
  const traits = traitsOf(model);
  const degradations = new Degradations();
  const thinking = thinkingOf(call, degradations);
  const unpaired = unpairedBlocks(conversation.turns);
  const output_config = {
    ...effortOf(call, thinking, degradations),
    ...formatOf(call, refused_formats, degradations),
  };
  const sampling = traits.sampling && (thinking === undefined || isOff(thinking));
  const body: Body = {
    model,
    max_tokens: max_output_tokens,
    messages: conversation.turns.map((turn) => toMessage(turn, unpaired, degradations))
      .filter(({ content }) => content.length > 0),
    ...(conversation.system.length > 0 ? { system: conversation.system.map(textBlock) } : {}),
    ...(tools.length > 0 ? { tools: tools.map(toTool) } : {}),
    ...toolChoiceOf(call, thinking, degradations),
    ...containerOf(conversation.turns.at(-2)),
    ...(stop && stop.length > 0 ? { stop_sequences: stop.filter((text) => text.trim() !== "") } : {}),
    ...(sampling && temperature !== undefined ? { temperature: Math.min(temperature, 1) } : {}),
    ...(sampling && top_p !== undefined && temperature === undefined ? { top_p } : {}),
    ...(thinking ? { thinking } : {}),
    ...(Object.keys(output_config).length > 0 ? { output_config } : {}),
  };
  keepBreakpoints(body);
  // the SDK's interfaces have no index signature
  return { body: body as unknown as JsonObject, degradation: degradations.merged(), context: call };
}

/**
 * Returns the message of a turn. The API refuses an assistant's message that ends with thinking, such as that
 * of an answer that was cut off. Nothing may be left of it: the API joins the messages around it.
 *
 * @param unpaired Blocks to leave out.
 */
function toMessage(
  { role, parts }: Turn,
  unpaired: ReadonlySet<JsonObject>,
  degradations: Degradations,
): Anthropic.MessageParam & { content: Block[] } {
  if (role === "user") return { role, content: parts.map((part) => userBlock(part, degradations)) };
  const paired = parts.filter((part) =>
    part.type !== "native" || !unpaired.has(part.block) && part.block.type !== CONTAINER
  );
  const end = paired.findLastIndex((part) => !isThinking(part));
  return { role, content: paired.slice(0, end + 1).map(assistantBlock) };
}

/**
 * Returns the container of the last answer: where the API executes code for its own tools, it wants the
 * container back together with the results of the answer's calls.
 */
function containerOf(last: Turn | undefined): { container?: string } {
  const block = last?.parts.find((part) => part.type === "native" && part.block.type === CONTAINER);
  return block?.type === "native" ? { container: String(block.block.id) } : {};
}

/**
 * Returns the blocks of the API's own tools that it refuses: calls without a result, such as those of an
 * answer that was cut off, and results without a call, such as after a compaction. Beside calls of the plan's
 * tools, the result is in the next answer.
 */
function unpairedBlocks(turns: Conversation["turns"]): ReadonlySet<JsonObject> {
  const unpaired = new Set<JsonObject>();
  let open = new Map<unknown, JsonObject>();
  for (const { role, parts } of turns) {
    if (role === "user") continue;
    const earlier = open;
    open = new Map();
    for (const part of parts) {
      if (part.type !== "native") continue;
      const { block } = part;
      if (/^(server|mcp)_tool_use$/.test(String(block.type))) open.set(block.id, block);
      else if (
        block.tool_use_id !== undefined && !open.delete(block.tool_use_id) &&
        !earlier.delete(block.tool_use_id)
      ) {
        unpaired.add(block);
      }
    }
    const isPending = parts.some(({ type }) => type === "tool_call");
    for (const block of [...earlier.values(), ...(isPending ? [] : open.values())]) unpaired.add(block);
    if (!isPending) open.clear();
  }
  return unpaired;
}

/** Returns whether a part is a block of thinking, as it was received. */
export function isThinking(part: UserPart | AssistantPart): part is NativePart {
  return part.type === "native" && /^(redacted_)?thinking$/.test(String(part.block.type));
}

function userBlock(part: UserPart, degradations: Degradations): Block {
  switch (part.type) {
    case "text":
      return textBlock(part);
    case "tool_result":
      return toolResult(part, degradations);
    default:
      return mediaBlock(part, degradations);
  }
}

function assistantBlock(part: AssistantPart): Block {
  switch (part.type) {
    case "text":
      // a stored block has citations, which the API wants back
      return part.block ? cached(part, part.block as unknown as Anthropic.TextBlockParam) : textBlock(part);
    case "tool_call": {
      const { id, name, input, block } = part;
      const caller = block?.caller as Anthropic.ToolUseBlockParam["caller"]; // the API's own
      return cached(part, { type: "tool_use", id, name, input, ...(caller ? { caller } : {}) });
    }
    default:
      return part.block as unknown as Block; // the API's own block, as it was received
  }
}

function textBlock(part: TextPart): Anthropic.TextBlockParam {
  return cached(part, { type: "text", text: part.text });
}

function toolResult(part: ToolResultPart, degradations: Degradations): Anthropic.ToolResultBlockParam {
  const { tool_call_id, content } = part;
  // the API refuses a failed result with anything but text
  const is_error = part.is_error &&
    (typeof content === "string" || content.every(({ type }) => type === "text"));
  return cached(part, {
    type: "tool_result",
    tool_use_id: tool_call_id,
    content: typeof content === "string"
      ? content
      : content.map((part) => part.type === "text" ? textBlock(part) : mediaBlock(part, degradations)),
    ...(is_error ? { is_error } : {}),
  });
}

function mediaBlock(
  part: MediaPart,
  degradations: Degradations,
): Anthropic.ImageBlockParam | Anthropic.TextBlockParam {
  const { type, data, url, file_id, name, media_type } = part;
  if (data !== undefined && !isReadable(part, data)) {
    const reason = "the API takes JPEG, PNG, GIF, WebP, PDF and text only";
    const text = degradations.addUnreadable(`${type} ${name ?? media_type}`, reason);
    return cached(part, { type: "text", text });
  }
  const source = data !== undefined
    ? dataSource(part, data)
    : url !== undefined
    ? { type: "url", url }
    : { type: "file", file_id };
  const block = type === "image"
    ? { type, source }
    : { type: "document", source, ...(name === undefined ? {} : { title: name.slice(0, 255) }) };
  return cached(part, block as unknown as Anthropic.ImageBlockParam); // or a document
}

/** Whether the API takes data of this type: it refuses a request with any other, and the whole history. */
function isReadable({ type, media_type = "" }: MediaPart, data: string): boolean {
  if (type === "image") return /^image\/(jpeg|png|gif|webp)$/.test(media_type);
  return media_type.startsWith("text/") || media_type === "application/pdf" || data.startsWith(PDF);
}

/** Beginning of a PDF file in base64. */
const PDF = "JVBERi";

function dataSource(part: MediaPart, data: string): JsonObject {
  if (part.type === "image") return { type: "base64", data, media_type: part.media_type };
  return part.media_type?.startsWith("text/")
    ? { type: "text", media_type: "text/plain", data: textOfFile(part) ?? data } // not base64: the text itself
    : { type: "base64", media_type: "application/pdf", data };
}

function cached<T extends object>({ cache }: { cache?: true }, block: T): T {
  return cache ? { ...block, cache_control: { type: "ephemeral" } } : block;
}

/**
 * Removes breakpoints, because the API refuses more: it keeps that of the system prompt, which outlives a
 * compaction, and the last ones.
 */
function keepBreakpoints({ system, tools = [], messages }: Body): void {
  const first = markedOf([tools, system].flat()).at(-1);
  const marked = markedOf([tools, system, ...messages.map(({ content }) => content)].flat())
    .filter((block) => block !== first);
  const kept = first ? MAX_BREAKPOINTS - 1 : MAX_BREAKPOINTS;
  for (const block of marked.slice(0, -kept)) delete block.cache_control;
}

function markedOf(blocks: readonly unknown[]): JsonObject[] {
  return blocks.filter((block): block is JsonObject => isObject(block) && "cache_control" in block);
}

/** A tool with a `type` is native, such as `web_search_20260318`; its fields go to the API as they are. */
function toTool(tool: ToolSpec): Anthropic.ToolUnion {
  const { name, description, parameters, ...fields } = tool;
  if (typeof fields.type === "string" && fields.type !== "custom" && fields.type !== "function") {
    return { name, ...fields } as unknown as Anthropic.ToolUnion; // a native tool of the plan
  }
  const { type: _, ...extra } = fields;
  return {
    name,
    ...(description ? { description } : {}),
    input_schema: inputSchema(parameters),
    ...extra,
  } as unknown as Anthropic.Tool; // its schema is that of an object
}

type Thinking = Anthropic.ThinkingConfigParam;

function isOff(thinking: Thinking | undefined): boolean {
  return thinking?.type === "disabled" || thinking?.type === "between_tools";
}

function thinkingOf(call: CallSettings, degradations: Degradations): Thinking | undefined {
  const { model, thinking_budget: budget, reasoning_effort, max_output_tokens } = call;
  const { thinking, thinking_off, thinks_by_default } = traitsOf(model);
  if (thinking === "none") return undefined;
  if (budget === 0 || reasoning_effort === "none") return thinking_off && { type: thinking_off };
  const is_requested = budget !== undefined || reasoning_effort !== undefined;
  if (thinking === "adaptive" || thinking === "both" && budget === undefined) {
    if (!is_requested && thinks_by_default && thinking_off === "disabled" && isForced(call)) {
      return { type: "disabled" }; // the API refuses both together
    }
    return is_requested || thinks_by_default
      ? { type: "adaptive", display: "summarized" } // newer models leave the text out by default
      : undefined;
  }
  if (budget === undefined) return undefined;
  const budget_tokens = Math.max(MIN_BUDGET, Math.min(budget, max_output_tokens - 1));
  if (budget_tokens >= max_output_tokens) return undefined;
  if (mayBudget(call.conversation)) return { type: "enabled", budget_tokens };
  degradations.add(`thinking_budget ${budget}`, "the turn began without thinking");
  return undefined;
}

/** Returns whether a call must answer with a tool call. */
function isForced({ tools, tool_choice: choice }: CallSettings): boolean {
  return tools.length > 0 && choice !== undefined && /^(any|tool)$/.test(String(ownChoice(choice).type));
}

/** Returns a choice in the form of the API. */
function ownChoice(choice: string | JsonObject): JsonObject {
  if (isObject(choice)) return choice;
  if (choice === "none" || choice === "auto") return { type: choice };
  return choice === "required" ? { type: "any" } : { type: "tool", name: choice };
}

/**
 * Returns whether the API accepts a budget: calls of the current turn must begin with the thinking before
 * them. Those of another provider have none.
 */
function mayBudget({ turns }: Conversation): boolean {
  const question = turns.findLastIndex(({ role, parts }) =>
    role === "user" && parts.every(({ type }) => type !== "tool_result")
  );
  const answer = turns[question + 1];
  return answer?.role !== "assistant" || isThinking(answer.parts[0]!); // no turn is empty
}

/** Returns the effort of a call. Without thinking, newer models refuse the highest ones. */
function effortOf(
  { model, reasoning_effort }: CallSettings,
  thinking: Thinking | undefined,
  degradations: Degradations,
): Anthropic.OutputConfig {
  const { effort: has_effort, thinks_by_default } = traitsOf(model);
  if (reasoning_effort === undefined || !has_effort) return {};
  const effort = reasoning_effort === "minimal" ? "low" : reasoning_effort;
  if (thinks_by_default && isOff(thinking) && (effort === "xhigh" || effort === "max")) {
    degradations.add(`reasoning_effort ${effort}`, `${model} has it with thinking only`, "high");
    return { effort: "high" };
  }
  return EFFORTS.has(effort) ? { effort: effort as NonNullable<Anthropic.OutputConfig["effort"]> } : {};
}

function toolChoiceOf(
  call: CallSettings,
  thinking: Thinking | undefined,
  degradations: Degradations,
): Pick<Body, "tool_choice"> {
  const { tool_choice: choice, tools, model } = call;
  if (choice === undefined || tools.length === 0) return {};
  const own = ownChoice(choice);
  // a forced call excludes thinking: the API refuses both together, also of models that always think
  const thinks = thinking ? thinking.type !== "disabled" : traitsOf(model).thinking_off !== "disabled";
  if (thinks && isForced(call)) {
    const requested = isObject(choice) ? JSON.stringify(choice) : choice;
    degradations.add(
      `tool_choice ${requested}`,
      `${model} cannot be forced to a call while it thinks`,
      "auto",
    );
    const { name: _, ...options } = own;
    return { tool_choice: { ...options, type: "auto" } };
  }
  return { tool_choice: own as unknown as Anthropic.ToolChoice };
}
