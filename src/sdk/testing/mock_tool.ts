/** A tool that remembers how it was called. */
import type { Clock } from "../contracts.ts";
import { isObject, type JsonObject, type JsonSchema, toPlainObject } from "../json.ts";
import { type RiskLevel, type Tool, type ToolCallContext, ToolResult } from "../tools.ts";

/** How a {@link MockTool} behaves. */
export interface MockToolOptions {
  /** Name; default `mock_tool`. */
  name?: string;
  /** Description; default `Mock tool: <name>`. */
  description?: string;
  /** What it returns: a ToolResult, or the output of one. Default `Success`. */
  return_value?: unknown;
  /** The same as `return_value`, as upstream spells it. */
  output?: unknown;
  /** Thrown by every call. */
  error?: Error;
  /** Decides per call instead of `return_value`. */
  execute?: (input: JsonObject, call?: ToolCallContext) => unknown;
  /** JSON Schema of the input; default any object. */
  input_schema?: JsonSchema;
  /** Declared risk. */
  risk?: RiskLevel;
  /** Whether it asks to be approved. */
  requires_approval?: boolean;
  /** Whether a call may be repeated after a crash. */
  idempotent?: boolean;
  /** Milliseconds a call takes, on `clock`; ends early when the call is aborted. */
  delay_ms?: number;
  /** Time in which `delay_ms` passes. */
  clock?: Clock;
}

/** One call of a {@link MockTool}. */
export interface RecordedCall {
  /** A copy of the input. */
  input: JsonObject;
  /** What the tool was told beside it; absent when nothing. */
  call?: ToolCallContext;
}

/** A tool that counts its calls and keeps their inputs. Both constructors of the requirements work (C14). */
export class MockTool implements Tool {
  /** Name the model calls it by. */
  readonly name: string;
  /** Description for the model. */
  readonly description: string;
  /** JSON Schema of the input. */
  readonly input_schema: JsonSchema;
  /** Declared risk; absent: low. */
  declare readonly risk?: RiskLevel;
  /** Whether it asks to be approved. */
  declare readonly requires_approval?: boolean;
  /** Whether a call may be repeated after a crash. */
  declare readonly idempotent?: boolean;
  /** Its calls, in the order they began. */
  readonly calls: RecordedCall[] = [];
  readonly #options: MockToolOptions;

  /** Creates a tool from options, or from a name and an output. */
  constructor(options: MockToolOptions | string = {}, output?: unknown) {
    const given = typeof options === "string" ? { name: options, output } : options;
    this.#options = given;
    this.name = given.name ?? "mock_tool";
    this.description = given.description ?? `Mock tool: ${this.name}`;
    this.input_schema = given.input_schema ?? { type: "object", properties: {} };
    if (given.risk !== undefined) this.risk = given.risk;
    if (given.requires_approval !== undefined) this.requires_approval = given.requires_approval;
    if (given.idempotent !== undefined) this.idempotent = given.idempotent;
  }

  /** How often it was called. */
  get call_count(): number {
    return this.calls.length;
  }

  /** Input of the last call, or null. */
  get last_input(): JsonObject | null {
    return this.calls.at(-1)?.input ?? null;
  }

  /** Runs one call: waits, then throws, decides or returns as the options say. */
  async execute(input: JsonObject, call?: ToolCallContext): Promise<ToolResult | unknown> {
    this.calls.push({ input: toPlainObject(input), ...(call === undefined ? {} : { call }) });
    const { clock, delay_ms, error, execute } = this.#options;
    if (clock && delay_ms !== undefined) await clock.after(delay_ms, call?.signal);
    if (error) throw error;
    if (execute) return await execute(input, call);
    const { return_value, output } = this.#options;
    const value = return_value !== undefined ? return_value : output !== undefined ? output : "Success";
    if (isObject(value) && typeof value.success === "boolean") return value;
    return ToolResult({ output: value });
  }
}
