/** Tools: the contract, the calls, the results, and how anything a tool returns is read (behaviour.md §4.1, §4.2, C1, C8). */
import { fieldError } from "./checks.ts";
import { isObject, type JsonObject, type JsonSchema, toPlain } from "./json.ts";

/** What models can call a tool: vendors refuse a request in which one tool has another name. */
export const TOOL_NAME: RegExp = /^[A-Za-z0-9_-]{1,64}$/;

/** How much harm a call can do, as the tool itself declares it. */
export type RiskLevel = "low" | "medium" | "high" | "critical";

/** What a tool is told about one call. */
export interface ToolCallContext {
  /** Id of the call. */
  readonly id: string;
  /** Aborts on immediate cancellation and at the tool's deadline. */
  readonly signal: AbortSignal;
  /** Session the call belongs to. */
  readonly session_id: string;
  /** Tells the user how far the call is; shown as `user:notification`. */
  progress(text: string): void;
}

/** A capability that a model may call. */
export interface Tool {
  /** Short, snake_case, unique among the mounted tools. */
  readonly name: string;
  /** What it does and expects, for the model. */
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
   * Provider id → fields laid over the tool's specification for that provider, such as a native tool's `type`. The name stays
   * the tool's own.
   */
  readonly native_specs?: Readonly<Record<string, JsonObject>>;
  /**
   * Optional: returns what is wrong with an input by the tool's own schema, in the model's words; asked in place of evaluating
   * `input_schema`. Tools that run elsewhere have it: a stranger's schema is evaluated where the stranger is (architecture.md).
   */
  checkInput?(input: JsonObject): Promise<readonly string[]>;
  /** Runs one call. A returned failure is for the model to mend; a thrown error is reported as `tool:error`. */
  execute(input: JsonObject, call?: ToolCallContext): Promise<ToolResult | unknown> | ToolResult | unknown;
}

/** A model's request to call a tool. `tool` and `input` read the same values under their other names (C1). */
export interface ToolCall {
  /** Unique within the session. */
  readonly id: string;
  /** Name of the tool. */
  readonly name: string;
  /** Input of the tool. */
  readonly arguments: JsonObject;
  /** The same as `name`. */
  readonly tool: string;
  /** The same as `arguments`. */
  readonly input: JsonObject;
  /** Set when the arguments were text that is not a JSON object. */
  readonly invalid_arguments?: string;
}

class ToolCallValue implements ToolCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: JsonObject;
  declare readonly invalid_arguments?: string;

  /** @param extra Whatever else the call came with; what is read of it under its own name is not copied. */
  constructor(id: string, name: string, args: JsonObject, extra: JsonObject) {
    this.id = id;
    this.name = name;
    this.arguments = args;
    for (const key of Object.keys(extra)) {
      if (!CALL_FIELDS.has(key)) Object.assign(this, { [key]: extra[key] });
    }
  }

  get tool(): string {
    return this.name;
  }

  get input(): JsonObject {
    return this.arguments;
  }
}

/** Fields that {@link parseToolCall} reads, or that say what kind of record the call came in. */
const CALL_FIELDS: ReadonlySet<string> = new Set([
  "id",
  "name",
  "tool",
  "arguments",
  "input",
  "function",
  "type",
  "invalid_arguments",
  "__proto__",
]);

/**
 * Returns a tool call from any spelling: `name` or `tool`, `arguments` or `input` (an object, or the JSON text of one), and
 * an id made up when there is none. Other fields are kept. Arguments that cannot be read become `{}` and are kept as
 * `invalid_arguments`, so that the call can be answered with an error the model can mend.
 */
export function parseToolCall(value: unknown): ToolCall {
  const given = isObject(value) ? value : {};
  const named = isObject(given.function) ? { ...given, ...given.function } : given;
  const name = String(named.name ?? named.tool ?? "");
  const id = typeof given.id === "string" && given.id ? given.id : `call_${crypto.randomUUID()}`;
  const raw = named.arguments ?? named.input ?? {};
  const args = typeof raw === "string" ? parseArguments(raw) : raw;
  const call = new ToolCallValue(id, name, isObject(args) ? args : {}, given);
  const invalid = isObject(args)
    ? given.invalid_arguments
    : typeof raw === "string"
    ? raw
    : JSON.stringify(toPlain(raw));
  if (typeof invalid === "string") Object.defineProperty(call, "invalid_arguments", { value: invalid });
  return call;
}

/**
 * Returns a tool call; the requirements' constructor. Takes either spelling (C1).
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
    return JSON.parse(text);
  } catch {
    return undefined; // reported as invalid_arguments: the model can mend it
  }
}

/** What a tool call came to. */
export interface ToolResult {
  /** Whether the call did what was asked. */
  success: boolean;
  /** Any JSON-safe value; text or an object by habit. */
  output: unknown;
  /** Conventional keys: `message`, `type`, `code`. */
  error: JsonObject | null;
  /** Returns the text that goes to the model (behaviour.md §4.2). */
  getSerializedOutput(): string;
  /** The requirements' spelling of `getSerializedOutput`. */
  get_serialized_output(): string;
}

class ToolResultValue implements ToolResult {
  success: boolean;
  output: unknown;
  error: JsonObject | null;

  constructor(success: boolean, output: unknown, error: JsonObject | null) {
    this.success = success;
    this.output = output;
    this.error = error;
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

/**
 * Returns a tool result. Defaults: `success` true, `output` and `error` null; a failure without output takes its error's
 * message as output (behaviour.md §4.2).
 *
 * @throws {TypeError} when `success` is no boolean or `error` no object.
 */
export function ToolResult(
  fields: { success?: boolean; output?: unknown; error?: JsonObject | null } = {},
): ToolResult {
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
  return new ToolResultValue(success, output, error);
}

/**
 * Returns whatever a tool returned as a result (C8): an object with a boolean `success` (or `is_error`, C33) is read as
 * one; any other value is the output of a success; undefined is a success without output. The result is JSON-safe and
 * shares nothing with what the tool returned.
 */
export function toToolResult(value: unknown): ToolResult {
  if (typeof value === "string") return new ToolResultValue(true, value, null);
  if (isObject(value)) {
    const success = typeof value.success === "boolean"
      ? value.success
      : typeof value.is_error === "boolean"
      ? !value.is_error
      : undefined;
    if (success !== undefined) {
      const error = toPlain(value.error);
      return ToolResult({
        success,
        output: toPlain(value.output),
        error: isObject(error) ? error : typeof error === "string" && error ? { message: error } : null,
      });
    }
  }
  return new ToolResultValue(true, value === undefined ? null : toPlain(value), null);
}

/** Returns a failed result for something thrown or refused; `code` is one of the `tool_…` codes of http.md. */
export function toolFailure(message: string, fields: JsonObject = {}): ToolResult {
  return ToolResult({ success: false, error: { message, ...fields } });
}

/** Returns the text of a result that goes to the model: JSON for objects, the string form otherwise (behaviour.md §4.2). */
export function serializeOutput(
  result: { success: boolean; output: unknown; error: JsonObject | null },
): string {
  if (result.output !== null && result.output !== undefined) return sanitizeText(textOfValue(result.output));
  if (result.success) return "Success";
  return result.error ? `Error: ${result.error.message ?? "Unknown error"}` : "Error: Failed";
}

function textOfValue(value: unknown): string {
  if (typeof value === "string") return value;
  const plain = toPlain(value);
  return typeof plain === "object" && plain !== null ? JSON.stringify(plain) : String(plain);
}

/** Returns what a call is answered with that cancellation kept from finishing (behaviour.md §7.7). */
export function cancelledCallText(tool: string): string {
  return JSON.stringify({ error: "Tool execution was cancelled by user", cancelled: true, tool });
}

/** Python's falsity, by which upstream prints "Success": also an empty list or object. */
function isFalsy(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  return isObject(value) ? Object.keys(value).length === 0 : !value;
}

// deno-lint-ignore no-control-regex -- the control characters are what is removed
const UNSAFE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/;
// deno-lint-ignore no-control-regex -- the same, everywhere
const ALL_UNSAFE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g;

/** Returns text without control characters (tab, LF and CR stay) and without lone surrogates (behaviour.md §4.2). */
export function sanitizeText(text: string): string {
  const clean = UNSAFE.test(text) ? text.replace(ALL_UNSAFE, "") : text;
  return clean.isWellFormed()
    ? clean
    : clean.replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "");
}
