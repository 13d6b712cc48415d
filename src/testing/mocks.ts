/** Small parts of a session for tests: a context manager, a tool, an orchestrator and an approval system. */
import type {
  Clock,
  ContextManager,
  ExecuteOptions,
  Orchestrator,
  RequestOptions,
} from "../sdk/contracts.ts";
import type { ApprovalQuestion, HookRegistry } from "../sdk/hooks.ts";
import { isObject, type JsonObject, type JsonSchema, toPlain, toPlainObject } from "../sdk/json.ts";
import { type Message, type Prompt, textOf, toBlocks } from "../sdk/messages.ts";
import type { Provider } from "../sdk/providers.ts";
import { withSnakeCase } from "../sdk/snake_case_aliases.ts";
import { type RiskLevel, type Tool, type ToolCallContext, ToolResult } from "../sdk/tools.ts";

/** A context manager over a list that never compacts; copies messages in and out. */
export class MockContextManager implements ContextManager {
  /** Options of all calls of `getMessagesForRequest`, in order. */
  readonly requests: RequestOptions[] = [];
  #messages: Message[];

  /** Creates a context manager with these messages. */
  constructor(messages: readonly Message[] = []) {
    this.#messages = copy(messages);
  }

  /** A copy of the stored messages. */
  get messages(): Message[] {
    return copy(this.#messages);
  }

  addMessage(message: Message): Promise<void> {
    this.#messages.push(...copy([message]));
    return Promise.resolve();
  }

  /** Resolves to all messages; ignores the budget. */
  getMessagesForRequest(options: RequestOptions = {}): Promise<Message[]> {
    this.requests.push(options);
    return Promise.resolve(this.messages);
  }

  getMessages(): Promise<Message[]> {
    return Promise.resolve(this.messages);
  }

  setMessages(messages: Message[]): Promise<void> {
    this.#messages = copy(messages);
    return Promise.resolve();
  }

  clear(): Promise<void> {
    this.#messages = [];
    return Promise.resolve();
  }
}

withSnakeCase(MockContextManager);

function copy(messages: readonly Message[]): Message[] {
  return toPlain(messages) as unknown as Message[]; // messages are plain data
}

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
  readonly name: string;
  readonly description: string;
  readonly input_schema: JsonSchema;
  declare readonly risk?: RiskLevel;
  declare readonly requires_approval?: boolean;
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

/**
 * An orchestrator that answers in order, then with `DONE`; calls no provider and emits the events of a turn.
 */
export class ScriptedOrchestrator implements Orchestrator {
  /** Number of calls of `execute`. */
  call_count = 0;
  /** The prompts, in order. */
  readonly prompts: Prompt[] = [];
  readonly #responses: readonly string[];

  /** Creates an orchestrator with a script. */
  constructor(responses: readonly string[] = []) {
    this.#responses = responses;
  }

  /** Stores the prompt and the next answer, emits the events of one turn, and resolves to the answer. */
  async execute(
    prompt: Prompt,
    context: ContextManager,
    _providers: Record<string, Provider>,
    _tools: Record<string, Tool>,
    hooks: HookRegistry,
    options?: ExecuteOptions,
  ): Promise<string> {
    this.prompts.push(prompt);
    const answer = this.#responses[this.call_count++] ?? "DONE";
    await hooks.emit("execution:start", { prompt });
    const emitted = await hooks.emit("prompt:submit", { prompt });
    const submitted = await options?.coordinator.processHookResult(emitted, "prompt:submit") ?? emitted;
    const denied = submitted.action === "deny";
    const response = denied ? `Operation denied: ${submitted.reason}` : answer;
    if (!denied) {
      await context.addMessage({
        role: "user",
        content: typeof prompt === "string" ? prompt : toBlocks(prompt),
      });
      await context.addMessage({ role: "assistant", content: answer });
      const length = [...answer].length;
      await hooks.emit("prompt:complete", { response_preview: textOf(answer).slice(0, 200), length });
    }
    await hooks.emit("execution:end", { response, status: "completed" });
    const status = denied ? "incomplete" : "success";
    await hooks.emit("orchestrator:complete", {
      orchestrator: "scripted",
      turn_count: denied ? 0 : 1,
      status,
    });
    return response;
  }
}

/**
 * A scripted answer: an option's label, `timeout` (times out at once), `never` (never answers; the caller
 * must time out), an error to throw, or a function that decides.
 */
export type ScriptedAnswer = string | Error | ((question: ApprovalQuestion) => string | Promise<string>);

/** Thrown by an approval system after a timeout. */
export class ApprovalTimeoutError extends Error {
  /** Always `ApprovalTimeoutError`. */
  override readonly name = "ApprovalTimeoutError";
}

/** An approval system that answers in order. The last answer repeats; the default is `Deny`. */
export class FakeApproval {
  /** All questions, in order. */
  readonly requests: ApprovalQuestion[] = [];
  readonly #answers: readonly ScriptedAnswer[];

  /** Creates an approval system with a script. */
  constructor(answers: readonly ScriptedAnswer[] = []) {
    this.#answers = answers;
  }

  /**
   * Resolves to the chosen option's label.
   *
   * @throws {ApprovalTimeoutError} when the script says `timeout`.
   */
  async requestApproval(question: ApprovalQuestion): Promise<string> {
    const answer = this.#answers[Math.min(this.requests.length, this.#answers.length - 1)] ?? "Deny";
    this.requests.push(structuredClone(question));
    if (answer === "never") return await new Promise<string>(() => {});
    if (answer === "timeout") throw new ApprovalTimeoutError("no answer in time");
    if (answer instanceof Error) throw answer;
    return typeof answer === "function" ? await answer(question) : answer;
  }
}

withSnakeCase(FakeApproval);
