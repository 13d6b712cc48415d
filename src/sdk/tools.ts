/** Tools: the contract, calls, results, and the conversion of any value that a tool returns. */
import { fieldError } from "./checks.ts";
import { errorCode, errorName } from "./errors.ts";
import { isObject, type JsonObject, type JsonSchema, toFrozen, toFrozenOwn, toPlain } from "./json.ts";
import type { ContentBlock } from "./content_blocks.ts";
import {
  asResultContent,
  readResultContent,
  type ResultBlock,
  textOfContent,
  withoutImages,
} from "./result_content.ts";

/** Pattern of tool names: vendors refuse a request with a tool name that does not match. */
export const TOOL_NAME: RegExp = /^[A-Za-z0-9_-]{1,64}$/;

/** Possible harm of a call, as declared by the tool. */
export type RiskLevel = "low" | "medium" | "high" | "critical";

/** Context of one call. */
export interface ToolCallContext {
  /** Id of the call. */
  readonly id: string;
  /** Aborts on immediate cancellation and at the tool's deadline. */
  readonly signal: AbortSignal;
  /** Session the call belongs to. */
  readonly session_id: string;
  /** Reports progress to the user, as `user:notification`. */
  progress(text: string): void;
  /**
   * Shows people what the tool writes while it runs, as `tool:output`: at most 262,144 characters of one
   * call. The model reads the result only. Absent: no one watches.
   *
   * @param stream Default: `stdout`.
   */
  output?(text: string, stream?: "stdout" | "stderr"): void;
}

/** A function that a model may call. */
export interface Tool {
  /** Short, snake_case, unique among the mounted tools. */
  readonly name: string;
  /** Description for the model: what the tool does and expects. */
  readonly description: string;
  /** JSON Schema of the input. Absent: any object. */
  readonly input_schema?: JsonSchema;
  /** Declared risk; default `low`. */
  readonly risk?: RiskLevel;
  /** Whether `hooks-approval` asks before each call. */
  readonly requires_approval?: boolean;
  /** Whether a call may be repeated after a crash without a second effect. */
  readonly idempotent?: boolean;
  /**
   * Provider id → fields that replace those of the tool's specification for that provider, such as a native
   * tool's `type`. The name is not replaced.
   */
  readonly native_specs?: Readonly<Record<string, JsonObject>>;
  /**
   * Optional: returns what is wrong with an input, in words for the model; used instead of validating against
   * `input_schema`. Tools in a sandbox have it: their schema is evaluated inside the sandbox.
   */
  checkInput?(input: JsonObject): Promise<readonly string[]>;
  /**
   * Optional: resolves to what a call would do, such as a diff, for the person who is asked about it. It must
   * have no effect.
   */
  preview?(input: JsonObject): Promise<string> | string;
  /**
   * Runs one call. The model reads a returned failure and can correct it; a thrown error is reported as
   * `tool:error`.
   */
  execute(input: JsonObject, call?: ToolCallContext): Promise<ToolResult | unknown> | ToolResult | unknown;
}

/** A model's request to call a tool. `tool` is an alias of `name`, `input` of `arguments`. */
export interface ToolCall {
  /** Unique within the session. */
  readonly id: string;
  /** Name of the tool. */
  readonly name: string;
  /** Input of the tool. */
  readonly arguments: JsonObject;
  /** Equal to `name`. */
  readonly tool: string;
  /** Equal to `arguments`. */
  readonly input: JsonObject;
  /** The original text when the arguments were not a JSON object. */
  readonly invalid_arguments?: string;
}

class ToolCallValue implements ToolCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: JsonObject;
  declare readonly invalid_arguments?: string;

  /**
   * Creates a call with its other fields.
   *
   * @param extra Fields to copy; {@link CALL_FIELDS} are skipped.
   */
  constructor(id: string, name: string, args: JsonObject, extra: JsonObject) {
    this.id = id;
    this.name = name;
    this.arguments = args;
    for (const key in extra) {
      if (!CALL_FIELDS.has(key) && Object.hasOwn(extra, key)) Object.assign(this, { [key]: extra[key] });
    }
  }

  get tool(): string {
    return this.name;
  }

  get input(): JsonObject {
    return this.arguments;
  }
}

/** Fields that {@link parseToolCall} reads, or that name the format of the call. */
const CALL_FIELDS: ReadonlySet<string> = new Set(
  "id name tool arguments input function type invalid_arguments __proto__".split(" "),
);

/**
 * Returns a tool call from any format: `name` or `tool`, `arguments` or `input` (an object or its JSON text).
 * A missing id is generated. Other fields are kept. Arguments that cannot be read become `{}` and are kept as
 * `invalid_arguments`, so that the call gets an error which the model can correct.
 */
export function parseToolCall(value: unknown): ToolCall {
  const fields = isObject(value) ? value : {};
  const named = isObject(fields.function) ? { ...fields, ...fields.function } : fields;
  const name = String(named.name ?? named.tool ?? "");
  const id = typeof fields.id === "string" && fields.id ? fields.id : `call_${crypto.randomUUID()}`;
  const raw = named.arguments ?? named.input ?? {};
  const args = typeof raw === "string" ? parseArguments(raw) : raw;
  const call = new ToolCallValue(id, name, isObject(args) ? args : {}, fields);
  const invalid = isObject(args)
    ? fields.invalid_arguments
    : typeof raw === "string"
    ? raw
    : JSON.stringify(toPlain(raw));
  if (typeof invalid === "string") Object.defineProperty(call, "invalid_arguments", { value: invalid });
  return call;
}

/**
 * Returns a tool call. Accepts every format of {@link parseToolCall}.
 *
 * @throws {TypeError} when it names no tool.
 */
export function ToolCall(fields: unknown): ToolCall {
  const call = parseToolCall(fields);
  if (call.name === "") throw fieldError("ToolCall", "name", "must be a non-empty string", call.name);
  return call;
}

function parseArguments(text: string): unknown {
  if (text.trim() === "") return {};
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "string" ? JSON.parse(value) : value; // some models write JSON as JSON text
  } catch {
    return undefined; // reported as invalid_arguments
  }
}

/** Result of a tool call. */
export interface ToolResult {
  /** Whether the call succeeded. */
  success: boolean;
  /** Any JSON-safe value, usually text or an object. */
  output: unknown;
  /** Conventional keys: `message`, `type`, `code`. */
  error: JsonObject | null;
  /**
   * Texts and images in base64 that the model gets in place of the output; everyone else has the output.
   * Absent without any.
   */
  content?: ResultBlock[];
  /** Returns the text of the output. */
  getSerializedOutput(): string;
  /** Alias of `getSerializedOutput`. */
  get_serialized_output(): string;
}

class ToolResultValue implements ToolResult {
  success: boolean;
  output: unknown;
  error: JsonObject | null;
  declare content?: ResultBlock[];

  constructor(success: boolean, output: unknown, error: JsonObject | null, content?: ResultBlock[]) {
    this.success = success;
    this.output = output;
    this.error = error;
    if (content) this.content = content;
  }

  getSerializedOutput(): string {
    return serializeOutput(this);
  }

  get_serialized_output(): string {
    return serializeOutput(this);
  }

  toString(): string {
    if (this.success) return isFalsy(this.output) ? "Success" : textOfValue(this.output);
    return this.error ? `Error: ${this.error.message ?? "Unknown error"}` : "Failed";
  }
}

/** Fields of a {@link ToolResult}. */
export interface ToolResultFields {
  /** Whether the call succeeded; default true. */
  success?: boolean;
  /** Any JSON-safe value; default null. */
  output?: unknown;
  /** Error of a failure; default null. */
  error?: JsonObject | null;
  /** Texts, and images in base64; default: none. */
  content?: unknown;
}

/**
 * Returns a tool result. A failure without output gets its error's message as output. Blocks of the content
 * lose fields that are not part of it.
 *
 * @throws {TypeError} when `success` is not a boolean, `error` not an object, or `content` not a list of
 * texts and of images in base64.
 */
export function ToolResult(fields: ToolResultFields = {}): ToolResult {
  const success = fields.success ?? true;
  const error = fields.error ?? null;
  if (typeof success !== "boolean") throw fieldError("ToolResult", "success", "must be a boolean", success);
  if (error !== null && !isObject(error)) {
    throw fieldError("ToolResult", "error", "must be an object such as {message}", error);
  }
  let output = fields.output ?? null;
  if (!success && output === null && typeof error?.message === "string" && error.message) {
    output = error.message;
  }
  return new ToolResultValue(success, output, error, readResultContent(fields.content));
}

/**
 * Returns the return value of a tool as a result. An object with a boolean `success` (or `is_error`) is read
 * as a result. Any other value is the output of a success; undefined is a success without output. A list of
 * blocks with an image, as value or as output, is the content. The result is a JSON-safe, deeply frozen copy.
 *
 * @throws {TypeError} when the result has an invalid `content`.
 */
export function toToolResult(value: unknown): ToolResult {
  if (typeof value === "string") return new ToolResultValue(true, value, null);
  if (isResult(value)) {
    const error = toFrozen(value.error);
    const listed = value.content === undefined ? asResultContent(value.output) : undefined;
    return ToolResult({
      success: typeof value.success === "boolean" ? value.success : value.is_error !== true,
      output: listed ? textOfContent(listed) : toFrozen(value.output),
      error: isObject(error) ? error : typeof error === "string" && error ? { message: error } : null,
      content: listed ?? value.content,
    });
  }
  const listed = asResultContent(value);
  return listed
    ? new ToolResultValue(true, textOfContent(listed), null, listed)
    : new ToolResultValue(true, toFrozen(value), null);
}

/**
 * Returns a result as events have it: its fields, with a text in the place of each image of its content, and
 * no `content` without one.
 */
export function shownResult({ success, output, error, content }: ToolResult): JsonObject {
  return toFrozenOwn({ success, output, error, ...(content ? { content: withoutImages(content) } : {}) });
}

/** Returns what a model gets of a result: its content, else the text of its output. */
export function modelContent(result: ToolResult): string | ContentBlock[] {
  return result.content?.map((block) =>
    block.type === "text" ? { ...block, text: sanitizeText(String(block.text)) } : block
  ) ?? serializeOutput(result);
}

/** Returns whether the return value of a tool is read as a result, and not as an output. */
export function isResult(value: unknown): value is JsonObject {
  return isObject(value) && (typeof value.success === "boolean" || typeof value.is_error === "boolean");
}

/** Returns a failed result for an error or a refusal; `code` is one of the `tool_…` codes. */
export function toolFailure(message: string, fields: JsonObject = {}): ToolResult {
  return ToolResult({ success: false, error: { message, ...fields } });
}

/** Returns the `error.type` of `tool:error` for an error that a tool threw. */
export function toolErrorType(error: unknown): string {
  const code = errorCode(error);
  if (
    code !== undefined && (code.startsWith("tool_") || code === "limit_reached" || code === "interrupted")
  ) return code;
  const name = errorName(error);
  return name === "NotCapable" || name === "PermissionDenied" ? "tool_permission_denied" : name;
}

/** Returns the text of a result for the model: JSON for objects, otherwise the value as a string. */
export function serializeOutput(result: Pick<ToolResult, "success" | "output" | "error">): string {
  if (result.output !== null && result.output !== undefined) return sanitizeText(textOfValue(result.output));
  if (result.success) return "Success";
  return isFalsy(result.error) ? "Error: Failed" : `Error: ${result.error?.message ?? "Unknown error"}`;
}

function textOfValue(value: unknown): string {
  if (typeof value === "string") return value;
  const plain = toFrozen(value);
  return typeof plain === "object" && plain !== null ? JSON.stringify(plain) : String(plain);
}

/** Returns the result text of a call that was cancelled before it finished. */
export function cancelledCallText(tool: string): string {
  return JSON.stringify({ error: "Tool execution was cancelled by user", cancelled: true, tool });
}

/**
 * Returns whether a value is false in Python, which also holds for an empty list or object: Amplifier then
 * prints "Success".
 */
function isFalsy(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  return isObject(value) ? Object.keys(value).length === 0 : !value;
}

// deno-lint-ignore no-control-regex -- the control characters are what is removed
const UNSAFE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/;
// deno-lint-ignore no-control-regex -- the same, everywhere
const ALL_UNSAFE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g;

/** Returns text without control characters (tab, LF and CR stay) and without lone surrogates. */
export function sanitizeText(text: string): string {
  const clean = UNSAFE.test(text) ? text.replace(ALL_UNSAFE, "") : text;
  return clean.isWellFormed()
    ? clean
    : clean.replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "");
}
