/** Converts a call to a request of the API. */
import { isObject, type JsonObject } from "preamp/base";
import {
  type AssistantPart,
  type CallSettings,
  type Conversation,
  Degradations,
  type MediaPart,
  type TextPart,
  type ToolResultPart,
  unusedName,
  type UserPart,
  type WireRequest,
} from "preamp/provider";
import type {
  Content,
  FunctionDeclaration,
  GenerateContentConfig,
  Part,
  ThinkingConfig,
  Tool,
  ToolConfig,
} from "./client_types.ts";
import { isBeforeGemini3, type ThinkingLevel, thinkingOf } from "./mod.ts";
import { withoutMaxItems, withoutReferences } from "./schema.ts";

/** Settings of the plan that only this provider has. */
export interface RequestSettings {
  /** Whether answers contain summaries of the model's thoughts. */
  readonly include_thoughts: boolean;
  /** `safetySettings` of the API. */
  readonly safety_settings?: readonly JsonObject[];
}

/** Tools that the API runs itself: the key of a specification is the field of the API's `Tool`. */
const SERVER_TOOLS = [
  "googleSearch",
  "googleMaps",
  "codeExecution",
  "urlContext",
  "fileSearch",
  "computerUse",
  "googleSearchRetrieval",
] as const;

/**
 * Returns the request for a call: `{model, contents, config}` of the vendor's client.
 *
 * @param refused_formats Results of {@link formatKey} for the response formats to leave out.
 */
export function toRequest(
  call: CallSettings,
  settings: RequestSettings,
  refused_formats: ReadonlySet<string> = new Set(),
): WireRequest {
  const degradations = new Degradations();
  const { system, turns } = call.conversation;
  const names = functionNames(call.tools);
  const nameOf: NameOf = (tool) => names.get(tool) ?? functionName(tool);
  const tools = toTools(call, nameOf, degradations);
  const config: GenerateContentConfig = {
    ...(system.length ? { systemInstruction: { parts: system.map(({ text }) => ({ text })) } } : {}),
    maxOutputTokens: call.max_output_tokens,
    ...(call.temperature === undefined ? {} : { temperature: call.temperature }),
    ...(call.top_p === undefined ? {} : { topP: call.top_p }),
    ...(call.stop?.length ? { stopSequences: [...call.stop] } : {}),
    ...tools,
    ...toResponseFormat(call, tools, refused_formats, degradations),
    ...toThinkingConfig(call, settings.include_thoughts, degradations),
    ...(settings.safety_settings ? { safetySettings: [...settings.safety_settings] } : {}),
  };
  const body = {
    model: call.model,
    contents: toContents(turns, { model: call.model, nameOf, degradations }),
    config,
  };
  const context: RequestContext = new Map([...names].map(([tool, name]) => [name, tool]));
  return { body, context, degradation: degradations.merged() };
}

/** Names of functions in a request, with the names of their tools. */
export type RequestContext = ReadonlyMap<string, string>;

/** Returns the name of a tool's function in a request; the tool may be one of the history only. */
type NameOf = (tool: string) => string;

/** Maximum characters of a name; the API refuses longer ones. */
const MAX_NAME_CHARS = 64;

/** Returns the names of functions in a request by the names of their tools; each is another one. */
function functionNames(tools: CallSettings["tools"]): ReadonlyMap<string, string> {
  const used = new Set(tools.map(({ name }) => name));
  return new Map(tools.map(({ name: tool }) => {
    const name = functionName(tool);
    return [tool, name === tool ? tool : unusedName(name, used)];
  }));
}

/** Returns the name of a tool as the API takes it: it must begin with a letter or an underscore. */
function functionName(tool: string): string {
  return /^[a-zA-Z_]/.test(tool) ? tool : `_${tool}`.slice(0, MAX_NAME_CHARS);
}

function toTools(
  { model, tools, tool_choice }: CallSettings,
  nameOf: NameOf,
  degradations: Degradations,
): Pick<GenerateContentConfig, "tools" | "toolConfig"> {
  const server: Tool = {};
  const functionDeclarations: FunctionDeclaration[] = [];
  for (const { name, description, parameters, ...fields } of tools) {
    const keys = SERVER_TOOLS.filter((key) => fields[key] !== undefined);
    for (const key of keys) server[key] = fields[key];
    if (keys.length > 0) continue;
    functionDeclarations.push({
      name: nameOf(name),
      ...(description ? { description } : {}),
      // the API refuses a schema without a type; the runtime checks the input by the tool's own schema
      parametersJsonSchema: { ...withoutMaxItems(withoutReferences(parameters)), type: "object" },
    });
  }
  const names = Object.keys(server);
  if (functionDeclarations.length === 0) return names.length === 0 ? {} : { tools: [server] };
  if (names.length > 0 && isBeforeGemini3(model)) {
    degradations.add(
      `${names.join(", ")} together with functions`,
      `${model} does not combine tools of the server with functions`,
      "functions only",
    );
    return { tools: [{ functionDeclarations }], ...toToolConfig(tool_choice, nameOf, false) };
  }
  return {
    tools: [{ ...server, functionDeclarations }],
    ...toToolConfig(tool_choice, nameOf, names.length > 0),
  };
}

/**
 * Returns the `toolConfig` for a choice. With tools of the server it also asks for their calls and results.
 */
function toToolConfig(
  choice: CallSettings["tool_choice"],
  nameOf: NameOf,
  with_server_tools: boolean,
): { toolConfig?: ToolConfig } {
  if (choice === undefined && !with_server_tools) return {};
  return {
    toolConfig: {
      ...(with_server_tools ? { includeServerSideToolInvocations: true } : {}),
      ...(typeof choice === "string" ? { functionCallingConfig: callingOf(choice, nameOf) } : choice), // or the API's own form
    },
  };
}

function callingOf(choice: string, nameOf: NameOf): ToolConfig["functionCallingConfig"] & object {
  if (choice === "auto" || choice === "none") return { mode: choice.toUpperCase() };
  return choice === "required" || choice === "any"
    ? { mode: "ANY" }
    : { mode: "ANY", allowedFunctionNames: [nameOf(choice)] };
}

function toResponseFormat(
  { model, response_format: format }: CallSettings,
  { tools, toolConfig }: Pick<GenerateContentConfig, "tools" | "toolConfig">,
  refused: ReadonlySet<string>,
  degradations: Degradations,
): Pick<GenerateContentConfig, "responseMimeType" | "responseJsonSchema"> {
  if (format === undefined || format.type === "text") return {};
  const is_forced = toolConfig?.functionCallingConfig?.mode === "ANY";
  if (is_forced || tools !== undefined && isBeforeGemini3(model)) {
    const what = is_forced ? "a required call" : "tools";
    degradations.add(
      `response_format ${format.type}`,
      `${model} does not combine ${what} with a response format`,
      "text",
    );
    return {};
  }
  const responseMimeType = "application/json";
  if (format.type === "json") return { responseMimeType };
  const responseJsonSchema = withoutMaxItems(withoutReferences(format.schema as JsonObject));
  if (!refused.has(formatKey(model, responseJsonSchema))) return { responseMimeType, responseJsonSchema };
  addRefusedFormat(degradations);
  return { responseMimeType };
}

/** Returns a text that identifies a model's schema of answers. */
export function formatKey(model: string, schema: unknown): string {
  return JSON.stringify([model, schema]);
}

/** Adds that a schema of answers is left out because the API refuses it. */
export function addRefusedFormat(degradations: Degradations): void {
  degradations.add("response_format json_schema", "the API refuses its schema", "response_format json");
}

/**
 * The signature that the API documents for calls that the model did not make, such as those of another
 * provider: from Gemini 3 on, the first call of a turn must have one.
 */
export const NO_SIGNATURE = "skip_thought_signature_validator";

/** Media types by extension, for URLs. */
const MEDIA_TYPES: Readonly<Record<string, string>> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  webp: "image/webp",
  heic: "image/heic",
  heif: "image/heif",
  gif: "image/gif",
  bmp: "image/bmp",
  svg: "image/svg+xml",
  tiff: "image/tiff",
  avif: "image/avif",
  pdf: "application/pdf",
  txt: "text/plain",
};

/** What the contents of a request depend on, besides the conversation. */
interface ContentOptions {
  readonly model: string;
  readonly nameOf: NameOf;
  readonly degradations: Degradations;
}

function toContents(turns: Conversation["turns"], options: ContentOptions): Content[] {
  const early = isBeforeGemini3(options.model);
  return turns.map((turn) =>
    turn.role === "user"
      ? { role: "user", parts: turn.parts.flatMap((part) => toUserParts(part, early, options)) }
      : {
        role: "model",
        parts: signFirstCall(turn.parts.map((part) => toModelPart(part, options.nameOf)), early),
      }
  );
}

function toUserParts(part: UserPart, early: boolean, options: ContentOptions): Part[] {
  if (part.type !== "tool_result") return [toContentPart(readable(part, options.degradations))];
  const { functionResponse, media } = toFunctionResponse(part, options);
  if (media.length === 0) return [{ functionResponse }];
  // before Gemini 3 a function response is JSON only
  if (early) return [{ functionResponse }, ...media];
  return [{ functionResponse: { ...functionResponse, parts: media } }];
}

function toFunctionResponse(
  { tool_call_id: id, name, content, is_error }: ToolResultPart,
  { nameOf, degradations }: ContentOptions,
) {
  const parts = typeof content === "string" ? [] : content.map((part) => readable(part, degradations));
  const text = typeof content === "string"
    ? content
    : parts.flatMap((part) => part.type === "text" ? part.text : []).join("\n\n");
  const response = { [is_error ? "error" : "output"]: text };
  const media = parts.filter(({ type }) => type !== "text").map(toContentPart);
  return { functionResponse: { id, name: nameOf(name), response }, media };
}

/** Returns a note in the place of an image that the API refuses, such as GIF; any other part as it is. */
function readable(part: TextPart | MediaPart, degradations: Degradations): TextPart | MediaPart {
  if (part.type === "text") return part;
  const { data, url = "", name, media_type = typeOfUrl(url) } = part;
  if (media_type === undefined || /^image\/(png|jpeg|webp|heic|heif)$/.test(media_type)) return part;
  const is_image = media_type.startsWith("image/") || part.type === "image" && data !== undefined;
  if (!is_image) return part;
  const reason = "the API takes PNG, JPEG, WebP, HEIC and HEIF only";
  return { type: "text", text: degradations.addUnreadable(`image ${name ?? media_type}`, reason) };
}

function toContentPart(part: TextPart | MediaPart): Part {
  if (part.type === "text") return { text: part.text };
  const { data, url, file_id } = part;
  const media_type = part.media_type?.startsWith("text/") ? "text/plain" : part.media_type; // it refuses many others
  if (data !== undefined) return { inlineData: { mimeType: media_type ?? "application/octet-stream", data } };
  const fileUri = url ?? file_id ?? "";
  const mimeType = media_type ?? typeOfUrl(fileUri);
  return { fileData: { fileUri, ...(mimeType === undefined ? {} : { mimeType }) } };
}

function typeOfUrl(url: string): string | undefined {
  const extension = /\.([a-z]{3,4})(?:[?#]|$)/i.exec(url)?.[1]?.toLowerCase() ?? "";
  return Object.hasOwn(MEDIA_TYPES, extension) ? MEDIA_TYPES[extension] : undefined;
}

function toModelPart(part: AssistantPart, nameOf: NameOf): Part {
  switch (part.type) {
    case "text":
      return { text: part.text, ...signatureOf(part.block?.thought_signature) };
    case "tool_call": {
      const { id, name, input } = part;
      return {
        functionCall: { id, name: nameOf(name), args: input },
        ...signatureOf(part.block?.thought_signature),
      };
    }
    default: {
      const { block } = part;
      if (block.type === "gemini_part" && isObject(block.part)) return block.part as Part; // as the API sent it
      return { text: String(block.thinking ?? ""), thought: true, ...signatureOf(block.signature) };
    }
  }
}

function signatureOf(signature: unknown): { thoughtSignature?: string } {
  return typeof signature === "string" ? { thoughtSignature: signature } : {};
}

function signFirstCall(parts: Part[], early: boolean): Part[] {
  const first = parts.findIndex((part) => part.functionCall);
  if (early || first === -1 || parts[first]!.thoughtSignature !== undefined) return parts;
  return parts.with(first, { ...parts[first]!, thoughtSignature: NO_SIGNATURE });
}

/** Effort → thinking tokens of Gemini 2.5, as in the API's own OpenAI-compatible endpoint. */
const BUDGETS = { none: 0, minimal: 1_024, low: 1_024, medium: 8_192, high: 24_576 };

/** All levels, lowest first. */
const ORDER: readonly ThinkingLevel[] = ["MINIMAL", "LOW", "MEDIUM", "HIGH"];

/** Effort → level; all other efforts get the highest. */
const LEVELS: ReadonlyMap<string, ThinkingLevel> = new Map([
  ["none", "MINIMAL"],
  ["minimal", "MINIMAL"],
  ["low", "LOW"],
  ["medium", "MEDIUM"],
]);

/**
 * Returns the `thinkingConfig` of a call: a level from Gemini 3 on, a number of tokens before. What the model
 * cannot do is replaced by the nearest possible value, which is added to `degradations`.
 */
function toThinkingConfig(
  { model, reasoning_effort, thinking_budget }: CallSettings,
  include_thoughts: boolean,
  degradations: Degradations,
): Pick<GenerateContentConfig, "thinkingConfig"> {
  const thinking = thinkingOf(model);
  const requested = thinking_budget === undefined ? reasoning_effort : `thinking_budget ${thinking_budget}`;
  if (thinking === "none") {
    if (requested !== undefined && requested !== "none") {
      degradations.add(requested, `${model} does not think`, "no thinking");
    }
    return {};
  }
  const shared: ThinkingConfig = include_thoughts ? { includeThoughts: true } : {};
  if (requested === undefined) return include_thoughts ? { thinkingConfig: shared } : {};
  if (thinking === "budget") {
    return { thinkingConfig: { ...shared, thinkingBudget: thinking_budget ?? budgetOf(reasoning_effort!) } };
  }
  const level = levelOf(
    thinking_budget === undefined ? reasoning_effort! : effortOf(thinking_budget),
    thinking,
  );
  if (level.toLowerCase() !== requested) {
    degradations.add(
      requested,
      `${model} has the thinking levels ${thinking.join(", ").toLowerCase()}`,
      `thinking level ${level.toLowerCase()}`,
    );
  }
  return { thinkingConfig: { ...shared, thinkingLevel: level } };
}

function budgetOf(effort: string): number {
  return Object.hasOwn(BUDGETS, effort) ? BUDGETS[effort as keyof typeof BUDGETS] : BUDGETS.high;
}

/** Returns the effort that a number of tokens corresponds to. */
function effortOf(budget: number): string {
  if (budget <= BUDGETS.low) return budget === 0 ? "none" : "low";
  return budget <= BUDGETS.medium ? "medium" : "high";
}

function levelOf(effort: string, levels: readonly ThinkingLevel[]): ThinkingLevel {
  const wanted = LEVELS.get(effort) ?? "HIGH";
  const above = ORDER.slice(ORDER.indexOf(wanted)).find((level) => levels.includes(level));
  return above ?? levels.at(-1)!;
}
