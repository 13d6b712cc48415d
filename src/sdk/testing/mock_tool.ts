/** A tool that records its calls. */
import type { Clock } from "../contracts.ts";
import { isObject, type JsonObject, type JsonSchema, toPlainObject } from "../json.ts";
import { type RiskLevel, type Tool, type ToolCallContext, ToolResult } from "../tools.ts";

/** Options of a {@link MockTool}. */
export interface MockToolOptions {
  /** Name; default `mock_tool`. */
  name?: string;
  /** Description; default `Mock tool: <name>`. */
  description?: string;
  /** Return value: a ToolResult, or the output of one. Default `Success`. */
  return_value?: unknown;
  /** Amplifier's name of `return_value`. */
  output?: unknown;
  /** Error that every call throws. */
  error?: Error;
  /** Called for each call instead of using `return_value`. */
  execute?: (input: JsonObject, call?: ToolCallContext) => unknown;
  /** JSON Schema of the input; default any object. */
  input_schema?: JsonSchema;
  /** Declared risk. */
  risk?: RiskLevel;
  /** Whether it requires approval. */
  requires_approval?: boolean;
  /** Whether a call may be repeated after a crash. */
  idempotent?: boolean;
  /** Duration of a call in milliseconds, on `clock`; ends early when the call is aborted. */
  delay_ms?: number;
  /** Clock of `delay_ms`. */
  clock?: Clock;
}

/** One call of a {@link MockTool}. */
export interface RecordedCall {
  /** A copy of the input. */
  input: JsonObject;
  /** Context of the call, if any. */
  call?: ToolCallContext;
}

/** A tool that records its calls. Created from options, or from a name and an output. */
export class MockTool implements Tool {
  /** Name that the model uses to call it. */
  readonly name: string;
  /** Description for the model. */
  readonly description: string;
  /** JSON Schema of the input. */
  readonly input_schema: JsonSchema;
  /** Declared risk; absent: low. */
  declare readonly risk?: RiskLevel;
  /** Whether it requires approval. */
  declare readonly requires_approval?: boolean;
  /** Whether a call may be repeated after a crash. */
  declare readonly idempotent?: boolean;
  /** All calls, in order of their start. */
  readonly calls: RecordedCall[] = [];
  readonly #options: MockToolOptions;

  /** Creates a tool from options, or from a name and an output. */
  constructor(options: MockToolOptions | string = {}, output?: unknown) {
    const settings = typeof options === "string" ? { name: options, output } : options;
    this.#options = settings;
    this.name = settings.name ?? "mock_tool";
    this.description = settings.description ?? `Mock tool: ${this.name}`;
    this.input_schema = settings.input_schema ?? { type: "object", properties: {} };
    if (settings.risk !== undefined) this.risk = settings.risk;
    if (settings.requires_approval !== undefined) this.requires_approval = settings.requires_approval;
    if (settings.idempotent !== undefined) this.idempotent = settings.idempotent;
  }

  /** Number of calls. */
  get call_count(): number {
    return this.calls.length;
  }

  /** Input of the last call, or null. */
  get last_input(): JsonObject | null {
    return this.calls.at(-1)?.input ?? null;
  }

  /** Runs one call: waits, then throws, calls `execute` or returns, according to the options. */
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
