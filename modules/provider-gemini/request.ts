/** Converts a call to a request of the API. */
import type { JsonObject, ToolSpec } from "preamp/base";
import { type CallSettings, Degradations, type WireRequest } from "preamp/provider";
import type { GenerateContentConfig, Tool, ToolConfig } from "./client_types.ts";
import { toContents } from "./contents.ts";
import { isBeforeGemini3, thinkingOf } from "./models.ts";
import { toThinkingConfig } from "./thinking.ts";

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

/** Returns the request for a call: `{model, contents, config}` of the vendor's client. */
export function toRequest(call: CallSettings, settings: RequestSettings): WireRequest {
  const degradations = new Degradations();
  const { system, turns } = call.conversation;
  const tools = toTools(call, degradations);
  const config: GenerateContentConfig = {
    ...(system.length ? { systemInstruction: { parts: system.map(({ text }) => ({ text })) } } : {}),
    maxOutputTokens: call.max_output_tokens,
    ...(call.temperature === undefined ? {} : { temperature: call.temperature }),
    ...(call.top_p === undefined ? {} : { topP: call.top_p }),
    ...(call.stop?.length ? { stopSequences: [...call.stop] } : {}),
    ...tools,
    ...toResponseFormat(call, tools.tools !== undefined, degradations),
    ...toThinkingConfig(call, thinkingOf(call.model), settings.include_thoughts, degradations),
    ...(settings.safety_settings ? { safetySettings: [...settings.safety_settings] } : {}),
  };
  const body = { model: call.model, contents: toContents({ system, turns }, call.model), config };
  const degradation = degradations.merged();
  return { body, ...(degradation ? { degradation } : {}) };
}

function toTools(
  { model, tools, tool_choice }: CallSettings,
  degradations: Degradations,
): Pick<GenerateContentConfig, "tools" | "toolConfig"> {
  const server = Object.assign({}, ...tools.map(serverTool)) as Tool;
  const functionDeclarations = tools.filter((tool) => !isServerTool(tool)).map(toDeclaration);
  const names = Object.keys(server);
  if (functionDeclarations.length === 0) return names.length === 0 ? {} : { tools: [server] };
  if (names.length > 0 && isBeforeGemini3(model)) {
    degradations.add(
      `${names.join(", ")} together with functions`,
      `${model} does not combine tools of the server with functions`,
      "functions only",
    );
    return { tools: [{ functionDeclarations }], ...toToolConfig(tool_choice, false) };
  }
  return {
    tools: [{ ...server, functionDeclarations }],
    ...toToolConfig(tool_choice, names.length > 0),
  };
}

function serverTool(tool: ToolSpec): JsonObject {
  return Object.fromEntries(SERVER_TOOLS.flatMap((key) => tool[key] === undefined ? [] : [[key, tool[key]]]));
}

function isServerTool(tool: ToolSpec): boolean {
  return SERVER_TOOLS.some((key) => tool[key] !== undefined);
}

function toDeclaration({ name, description, parameters }: ToolSpec) {
  return { name, ...(description ? { description } : {}), parametersJsonSchema: parameters };
}

/** Returns the `toolConfig` for a choice. With tools of the server it also asks for their calls and results. */
function toToolConfig(
  choice: CallSettings["tool_choice"],
  with_server_tools: boolean,
): { toolConfig?: ToolConfig } {
  const toolConfig: ToolConfig = {
    ...(with_server_tools ? { includeServerSideToolInvocations: true } : {}),
    ...toFunctionCalling(choice),
  };
  return Object.keys(toolConfig).length === 0 ? {} : { toolConfig };
}

const MODES: Readonly<Record<string, string>> = { auto: "AUTO", none: "NONE", required: "ANY", any: "ANY" };

function toFunctionCalling(choice: CallSettings["tool_choice"]): ToolConfig {
  if (choice === undefined) return {};
  if (typeof choice === "object") return choice as ToolConfig; // the API's own form
  const config = Object.hasOwn(MODES, choice)
    ? { mode: MODES[choice]! }
    : { mode: "ANY", allowedFunctionNames: [choice] };
  return { functionCallingConfig: config };
}

function toResponseFormat(
  { model, response_format: format }: CallSettings,
  with_tools: boolean,
  degradations: Degradations,
): Pick<GenerateContentConfig, "responseMimeType" | "responseJsonSchema"> {
  if (format === undefined || format.type === "text") return {};
  if (with_tools && isBeforeGemini3(model)) {
    degradations.add(
      `response_format ${format.type}`,
      `${model} does not combine tools with a response format`,
      "text",
    );
    return {};
  }
  return {
    responseMimeType: "application/json",
    ...(format.type === "json_schema" ? { responseJsonSchema: format.schema } : {}),
  };
}
