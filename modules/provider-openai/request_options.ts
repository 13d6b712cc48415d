/**
 * Parts of a request that both APIs share: what a model accepts, tools, the choice among them, and
 * response formats: JSON Schemas in the subset that OpenAI enforces, and instructions where it enforces
 * none.
 */
import { isObject, type JsonObject, type JsonSchema, type ResponseFormat, type ToolSpec } from "preamp/base";
import { type CallSettings, Degradations, type MediaPart, objectSchema, textOfFile } from "preamp/provider";
import { effortMark } from "./refusals.ts";

/** Settings of the plan that change requests. */
export interface PlanOptions {
  /** Whether requests go to OpenAI itself, not to another server with the same API. */
  readonly own_host: boolean;
  /** Key that directs the requests of one session to the same prompt cache. */
  readonly prompt_cache_key?: string;
  /** Whether the model may make several calls at once; absent: the API's default. */
  readonly parallel_tool_calls?: boolean;
  /** Detail of reasoning summaries; `none` requests none. */
  readonly reasoning_summary: string;
}

/** What decides about the request of one call, besides the call itself. */
export interface RequestOptions extends PlanOptions {
  /** Parameters and forms of messages that the server refused for the model; they are left out. */
  readonly refused: ReadonlySet<string>;
  readonly traits: ModelTraits;
  /** Whether parts mark where the prompt cache may end. */
  readonly marks: boolean;
  /** Receives what the request leaves out. */
  readonly degradations: Degradations;
}

/** Returns the options of a request to a model. */
export function optionsOf(plan: PlanOptions, model: string, refused: ReadonlySet<string>): RequestOptions {
  const traits = traitsOf(model);
  const marks = plan.own_host && traits.breakpoints;
  return { ...plan, refused, traits, marks, degradations: new Degradations() };
}

/** What a model accepts. */
interface ModelTraits {
  readonly reasoning: boolean;
  /** Whether it accepts `temperature` and `top_p`: always, only with the effort `none`, or never. */
  readonly sampling: "always" | "effort_none" | "never";
  readonly breakpoints: boolean;
}

/** Returns what a model accepts, by its name; a vendor before the name (`openai/gpt-5`) is ignored. */
function traitsOf(model: string): ModelTraits {
  const name = model.slice(model.lastIndexOf("/") + 1);
  const version = /^gpt-(\d+)(?:\.(\d+))?(?:-|$)/.exec(name);
  const major = Number(version?.[1] ?? 0);
  const minor = Number(version?.[2] ?? 0);
  // Azure's gpt-35 is GPT-3.5
  const reasoning = (major >= 5 && major !== 35 && !name.includes("-chat")) || /^o\d/.test(name);
  return {
    reasoning,
    sampling: !reasoning ? "always" : major > 5 || minor > 0 ? "effort_none" : "never",
    breakpoints: reasoning && (major > 5 || minor >= 6),
  };
}

const REFUSED = "the server refused it for this model";

/** Returns whether a parameter may be in the request; reports it as left out when the server refused it. */
export function accepts(
  name: string,
  requested: unknown,
  { refused, degradations }: RequestOptions,
): boolean {
  if (requested === undefined) return false;
  if (!refused.has(name)) return true;
  degradations.add(`${name} ${JSON.stringify(requested)}`, REFUSED);
  return false;
}

/** Returns `temperature` and `top_p` of a call as far as its model accepts them. */
export function samplingOf(
  call: CallSettings,
  options: RequestOptions,
): { temperature?: number; top_p?: number } {
  const { traits: { sampling }, degradations } = options;
  const takes = sampling === "always" || sampling === "effort_none" && call.reasoning_effort === "none";
  const parameters: { temperature?: number; top_p?: number } = {};
  for (const name of ["temperature", "top_p"] as const) {
    const value = call[name];
    if (!accepts(name, value, options)) continue;
    if (takes) parameters[name] = value!; // `accepts` checked it
    else {
      const only = sampling === "never" ? "" : ' except with reasoning_effort "none"';
      degradations.add(`${name} ${value}`, `${call.model} does not accept ${name}${only}`);
    }
  }
  return parameters;
}

/** Efforts → those to replace them, the nearest first. A model may have one effort only. */
const NEAREST_EFFORTS: ReadonlyMap<string, readonly string[]> = new Map([
  ["none", ["low", "medium", "high"]],
  ["minimal", ["low", "medium", "high"]],
  ["low", ["medium", "high"]],
  ["medium", ["high", "low"]],
  ["high", ["medium", "low"]],
  ["xhigh", ["high", "medium", "low"]],
  ["max", ["high", "medium", "low"]],
]);

/** Returns the reasoning effort of a call, if its model reasons; reports what is left out or replaced. */
export function effortOf(call: CallSettings, options: RequestOptions): string | undefined {
  const { reasoning_effort, thinking_budget, model } = call;
  const { degradations } = options;
  if (thinking_budget !== undefined) {
    degradations.add(
      `thinking_budget ${thinking_budget}`,
      "OpenAI's API has no budget for thinking; use reasoning_effort",
    );
  }
  if (!accepts("reasoning_effort", reasoning_effort, options)) return undefined;
  if (reasoning_effort !== undefined && options.refused.has(effortMark(reasoning_effort))) {
    const nearest = NEAREST_EFFORTS.get(reasoning_effort)?.find((effort) =>
      !options.refused.has(effortMark(effort))
    );
    degradations.add(`reasoning_effort ${reasoning_effort}`, REFUSED, nearest);
    return nearest;
  }
  if (options.traits.reasoning || !options.own_host) return reasoning_effort;
  degradations.add(`reasoning_effort ${reasoning_effort}`, `${model} does not reason`);
  return undefined;
}

/**
 * Returns a file of text as text, with its name; undefined for other files, which both APIs take as they are.
 */
export function namedText(part: MediaPart): string | undefined {
  const text = textOfFile(part);
  const name = part.name === undefined ? "" : ` name=${JSON.stringify(part.name)}`;
  return text === undefined ? undefined : `<file${name}>\n${text}\n</file>`;
}

/** Returns a note in the place of an image that OpenAI refuses; undefined for all other parts. */
export function noteOnImage(
  { type, media_type, data, name }: MediaPart,
  { own_host, degradations }: RequestOptions,
): string | undefined {
  if (!own_host || type !== "image" || data === undefined) return undefined;
  if (/^image\/(png|jpeg|gif|webp)$/.test(media_type ?? "")) return undefined;
  const reason = "the API takes PNG, JPEG, GIF and WebP only";
  return degradations.addUnreadable(`image ${name ?? media_type}`, reason);
}

/** Returns a name for a file that has none; the API recognises PDF files by their name. */
export function fileName({ name, media_type = "" }: MediaPart): string {
  return name ?? (media_type === "" || media_type === "application/pdf" ? "file.pdf" : "file");
}

/** Returns the type of a native tool, or undefined for a function. */
export function nativeType({ type }: ToolSpec): string | undefined {
  return typeof type === "string" && type !== "function" ? type : undefined;
}

/**
 * Returns the schema of a tool's input as OpenAI accepts it: an object with `properties`, of which alone it
 * requires some.
 */
export function functionParameters(schema: JsonSchema | undefined): JsonObject {
  const { required, ...rest } = objectSchema(schema ?? {});
  const { properties = {} } = rest;
  const known = Array.isArray(required)
    ? required.filter((name) => Object.hasOwn(properties as JsonObject, name))
    : [];
  return { ...rest, properties, ...(known.length > 0 ? { required: known } : {}) };
}

/** A choice among the tools in one form: a mode, the name of a function, or the API's own object. */
export type ToolChoice = { mode: "auto" | "none" | "required" } | { name: string } | { own: JsonObject };

/**
 * Returns the fields of a request with tools besides these: the choice among them, from the forms that
 * vendors use, and whether several calls may be made at once.
 */
export function toolFields<Choice>(
  { tool_choice }: CallSettings,
  { refused, parallel_tool_calls }: RequestOptions,
  toOwn: (choice: ToolChoice) => Choice,
): { tool_choice?: Choice; parallel_tool_calls?: boolean } {
  return {
    ...(tool_choice === undefined || refused.has("tool_choice")
      ? {}
      : { tool_choice: toOwn(choiceOf(tool_choice)) }),
    ...(parallel_tool_calls === undefined || refused.has("parallel_tool_calls")
      ? {}
      : { parallel_tool_calls }),
  };
}

function choiceOf(choice: string | JsonObject): ToolChoice {
  if (typeof choice === "string") return modeOf(choice) ?? { name: choice };
  const { type, name } = choice;
  const called = isObject(choice.function) ? choice.function.name : name;
  if (typeof called === "string" && (type === "function" || type === "tool" || type === undefined)) {
    return { name: called };
  }
  return modeOf(type) ?? { own: choice };
}

function modeOf(text: unknown): { mode: "auto" | "none" | "required" } | undefined {
  if (text === "auto" || text === "none" || text === "required") return { mode: text };
  return text === "any" ? { mode: "required" } : undefined;
}

/** Returns the key of the prompt cache as far as the server accepts it. */
export function cacheKeyOf({ prompt_cache_key, refused }: RequestOptions): { prompt_cache_key?: string } {
  return prompt_cache_key === undefined || refused.has("prompt_cache_key") ? {} : { prompt_cache_key };
}

/** A response format that the API accepts, and an instruction for the model where the format needs one. */
export interface FormatRequest {
  /** The format; absent: text. */
  readonly format?:
    | { readonly type: "json_object" }
    | {
      readonly type: "json_schema";
      readonly name: string;
      readonly schema: JsonObject;
      readonly strict: boolean;
    };
  /** Text to add to the system prompt. */
  readonly instruction?: string;
}

/** Returns the response format of a call; reports what the API does not enforce. */
export function formatOf(call: CallSettings, { refused, degradations }: RequestOptions): FormatRequest {
  const wanted = call.response_format;
  if (wanted === undefined || wanted.type === "text") return {};
  if (refused.has("response_format")) {
    degradations.add(`response_format ${wanted.type}`, REFUSED, "instruction");
    return { instruction: instructionOf(wanted) };
  }
  if (wanted.type === "json") {
    // OpenAI refuses JSON mode when no message contains the word
    const instruction = mentionsJson(call) ? {} : { instruction: instructionOf(wanted) };
    return { format: { type: "json_object" }, ...instruction };
  }
  const schema = wanted.schema as JsonObject;
  if (schema.type !== "object") {
    degradations.add("response_format json_schema", "the schema must be that of an object", "instruction");
    return { instruction: instructionOf(wanted) };
  }
  const name = nameOf(schema);
  const formatWith = (schema: JsonObject, strict: boolean): FormatRequest => ({
    format: { type: "json_schema", name, schema, strict },
  });
  if (wanted.strict === false) return formatWith(schema, false);
  const strict = strictSchema(schema);
  if ("schema" in strict) return formatWith(strict.schema, true);
  degradations.add("response_format json_schema, strict", strict.problem, "not strict");
  return formatWith(schema, false);
}

function instructionOf(format: ResponseFormat): string {
  const text = "Answer with JSON alone: no other text, no code fence.";
  return format.type === "json_schema"
    ? `${text} It must match this JSON Schema:\n${JSON.stringify(format.schema)}`
    : text;
}

function mentionsJson({ conversation: { system, turns } }: CallSettings): boolean {
  const parts = [...system, ...turns.flatMap(({ parts }) => parts as readonly { type: string }[])];
  return parts.some((part) => "text" in part && /json/i.test(String(part.text)));
}

function nameOf({ title }: JsonObject): string {
  const name = typeof title === "string" ? title.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, 64) : "";
  return name || "answer";
}

/** Keywords that OpenAI enforces or ignores in a strict schema. */
const KEPT: ReadonlySet<string> = new Set(
  ("type title description enum const $ref pattern format multipleOf minimum maximum " +
    "exclusiveMinimum exclusiveMaximum minItems maxItems").split(" "),
);

/** Keywords without which the schema would mean something else. */
const NEEDED: ReadonlySet<string> = new Set(
  ("allOf oneOf not if then else patternProperties dependentRequired dependentSchemas dependencies " +
    "propertyNames prefixItems contains unevaluatedProperties unevaluatedItems $dynamicRef " +
    "$recursiveRef").split(" "),
);

/**
 * Returns a schema in the subset that OpenAI enforces, or the reason against it. Every answer that matches it
 * matches the given schema, except for keywords such as `minLength`, which the runtime checks.
 */
export function strictSchema(schema: JsonObject): { schema: JsonObject } | { problem: string } {
  try {
    return { schema: strict(schema, "the schema") };
  } catch (error) {
    if (error instanceof NotStrict) return { problem: error.message };
    throw error;
  }
}

class NotStrict extends Error {}

function strict(schema: unknown, path: string): JsonObject {
  if (!isObject(schema)) throw new NotStrict(`strict output needs a schema object at ${path}`);
  const result: JsonObject = {};
  for (const [key, value] of Object.entries(schema)) {
    if (NEEDED.has(key)) throw new NotStrict(`strict output does not support ${key} at ${path}`);
    if (KEPT.has(key)) result[key] = value;
    else if (key === "items") result.items = strict(value, `${path}.items`);
    else if (key === "anyOf" && Array.isArray(value)) {
      result.anyOf = value.map((item, index) => strict(item, `${path}.anyOf[${index}]`));
    } else if ((key === "$defs" || key === "definitions") && isObject(value)) {
      result[key] = mapValues(value, (item, name) => strict(item, `${path}.${key}.${name}`));
    }
  }
  if (isObjectSchema(schema)) Object.assign(result, objectKeywords(schema, path));
  return result;
}

function isObjectSchema({ type, properties }: JsonObject): boolean {
  return type === "object" || Array.isArray(type) && type.includes("object") || isObject(properties);
}

function objectKeywords(schema: JsonObject, path: string): JsonObject {
  const properties = isObject(schema.properties) ? schema.properties : {};
  const { additionalProperties = !isObject(schema.properties) } = schema;
  if (additionalProperties !== false) {
    throw new NotStrict(`strict output does not allow additionalProperties at ${path}`);
  }
  const names = Object.keys(properties);
  const required: readonly unknown[] = Array.isArray(schema.required) ? schema.required : [];
  const optional = names.find((name) => !required.includes(name));
  if (optional !== undefined) {
    throw new NotStrict(
      `strict output needs every property in required: ${path} has the optional "${optional}"`,
    );
  }
  return {
    properties: mapValues(properties, (value, name) => strict(value, `${path}.${name}`)),
    required: names,
    additionalProperties: false,
  };
}

function mapValues(
  fields: JsonObject,
  change: (value: unknown, key: string) => JsonObject,
): JsonObject {
  return Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, change(value, key)]));
}
