/** The guard around a tool: a call is counted, has a deadline, and runs only with the allowed input. */
import { errorCode, errorMessage, errorName, PreampError } from "../../sdk/errors.ts";
import {
  deepFreeze,
  estimateJsonBytes,
  isObject,
  isThenable,
  jsonEqual,
  toFrozenObject,
  toPlainObject,
} from "../../sdk/json.ts";
import { inputSchemaOf } from "../../sdk/snake_case_aliases.ts";
import { serializeOutput, toolFailure, ToolResult, toToolResult } from "../../sdk/tools.ts";
import type { JsonObject, JsonSchema, RiskLevel, Tool, ToolCallContext } from "../../sdk/types.ts";
import type { Host } from "../host.ts";
import type { KernelLimits, SessionContext } from "../session/session_context.ts";
import { recoveredResult } from "../session/interrupted_turn.ts";
import type { CallRecord, Turn } from "../session/turn_state.ts";
import type { StepAbort } from "../timeouts.ts";

/** Options of {@link ToolGuard}. */
export interface ToolMount {
  /** Name that the tool is mounted under. */
  key: string;
  /** Name that is sent to models. */
  name: string;
  /** Id of the module that mounted the tool. */
  module_id: string;
}

/** A guarded tool: the only form in which loops, modules and guests receive a tool. */
export class ToolGuard implements Tool {
  readonly name: string;
  readonly description: string;
  readonly input_schema: JsonSchema;
  readonly risk: RiskLevel;
  readonly requires_approval: boolean;
  readonly idempotent: boolean;
  declare readonly native_specs?: Readonly<Record<string, JsonObject>>;
  declare readonly checkInput?: (input: JsonObject) => Promise<readonly string[]>;
  readonly #session: SessionContext;
  readonly #tool: Tool;
  readonly #key: string;
  readonly #module_id: string;

  constructor(session: SessionContext, tool: Tool, { key, name, module_id }: ToolMount) {
    this.#session = session;
    this.#tool = tool;
    this.#key = key;
    this.#module_id = module_id;
    this.name = name;
    this.description = typeof tool.description === "string" ? tool.description : "";
    this.input_schema = deepFreeze(toPlainObject(inputSchemaOf(tool)));
    this.risk = tool.risk ?? "low";
    this.requires_approval = tool.requires_approval === true;
    this.idempotent = tool.idempotent === true;
    const { native_specs } = tool;
    if (isObject(native_specs)) {
      this.native_specs = deepFreeze(toPlainObject(native_specs)) as Record<string, JsonObject>;
    }
    const { checkInput } = tool;
    if (typeof checkInput === "function") {
      // perf: a named constant on purpose, see src/docs/performance.md#closures
      const check = (input: JsonObject) => Promise.resolve(checkInput.call(tool, toPlainObject(input)));
      this.checkInput = check;
    }
    Object.freeze(this); // so that no module changes the declared risk
  }

  async execute(input: JsonObject, context?: ToolCallContext): Promise<ToolResult> {
    const session = this.#session;
    const { turn } = session;
    if (turn === null) {
      throw new PreampError("internal", `Cannot execute tool "${this.name}": no turn is running`);
    }
    const call = this.#callFor(turn, input, context?.id);
    call.started = true;
    if (call.gate === "pending") await session.loop_steps.gateCall(call);
    if (call.gate !== "allowed") return toolFailure(`Denied by hook: ${call.reason}`, { type: "denied" });
    const deadline = call.deadline = new CallDeadline(session, call.name);
    session.cancellation.registerToolStart(call.id, call.name);
    try {
      let result = recoveredResult(turn.recovered?.get(call.id), this.name, this.idempotent);
      if (result === undefined) {
        session.run_limits.countToolCall();
        const returned = this.#tool.execute(toPlainObject(call.input), {
          id: call.id,
          session_id: session.session_id,
          signal: deadline.signal,
          progress: (text) => this.#progress(call, text, context),
        });
        result = this.#bounded(toToolResult(isThenable(returned) ? await deadline.wait(returned) : returned));
      }
      call.settled = { result };
    } catch (error) {
      turn.limit ??= limitOf(error);
      const at = session.error_locators?.get(this.#module_id)?.(error);
      if (at !== undefined) call.error_location = at;
      call.settled = { error: this.#brief(error) };
    } finally {
      deadline.stop();
      call.deadline = null;
      session.cancellation.registerToolComplete(call.id);
    }
    if (call.gated_by_kernel) await session.loop_steps.reportResult(call);
    const { settled } = call;
    if ("error" in settled) throw settled.error;
    return settled.result;
  }

  /** Returns the model's call of this execution; an input that no gate has seen is a new call. */
  #callFor(turn: Turn, input: JsonObject, id: string | undefined): CallRecord {
    const plain = toFrozenObject(input);
    const call = turn.find(
      id,
      undefined,
      (record) =>
        !record.started && (record.name === this.name || record.name === this.#key) &&
        (jsonEqual(plain, record.input) || jsonEqual(plain, record.requested_input)),
    );
    if (call) return call;
    const needs_id = id === undefined || turn.calls.some((record) => record.id === id);
    return turn.add(needs_id ? this.#session.host.newId("call") : id, this.name, plain);
  }

  #progress(call: CallRecord, text: string, context: ToolCallContext | undefined): void {
    context?.progress(text);
    this.#session.hooks.emit("user:notification", {
      message: String(text),
      level: "info",
      source: `tool:${call.name}`,
      tool_call_id: call.id,
    }).catch((error) => this.#session.host.warn("progress_lost", String(error)));
  }

  /** Shortens output and error to at most `max_tool_result_bytes` each. */
  #bounded(result: ToolResult): ToolResult {
    const limit = this.#session.limits.max_tool_result_bytes;
    const { success, output, error } = result;
    if (fits(output, limit) && (error === null || fits(error, limit))) return result;
    const shorter = output === null ? null : cut(serializeOutput(result), limit);
    const brief = error === null ? null : briefError(error, limit);
    if (shorter === null && brief === error) return result;
    return ToolResult({ success, output: shorter ?? output, error: brief });
  }

  /** Returns an error of the tool with a message of at most `max_tool_result_bytes`. */
  #brief(error: unknown): unknown {
    const message = cut(errorMessage(error), this.#session.limits.max_tool_result_bytes);
    if (message === null) return error;
    const code = errorCode(error);
    return Object.assign(new Error(message), { name: errorName(error) }, code === undefined ? {} : { code });
  }
}

/**
 * Returns whether the text of a value is surely short enough, by its estimated size: a character is at most
 * three bytes, and at most six as an escape in JSON.
 */
function fits(value: unknown, limit: number): boolean {
  return typeof value === "string" ? value.length * 3 <= limit : estimateJsonBytes(value) * 6 <= limit;
}

/**
 * Returns the head and tail of a text with more than `limit` bytes, and a marker between them; null for a
 * shorter text.
 */
function cut(text: string, limit: number): string | null {
  if (text.length * 3 <= limit) return null;
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= limit) return null;
  const half = Math.floor(limit / 2);
  const decoder = new TextDecoder();
  const head = decoder.decode(bytes.subarray(0, half)).replace(/\ufffd+$/, ""); // half a character at the cut
  const tail = decoder.decode(bytes.subarray(bytes.length - half)).replace(/^\ufffd+/, "");
  return `${head}\n[... ${
    bytes.length - 2 * half
  } of ${bytes.length} bytes cut: max_tool_result_bytes is ${limit} ...]\n${tail}`;
}

/** Returns the error itself when it fits, else an error with only its shortened message. */
function briefError(error: JsonObject, limit: number): JsonObject {
  if (cut(JSON.stringify(error), limit) === null) return error;
  const message = errorMessage(error);
  return { message: cut(message, limit) ?? message };
}

/** Returns the name of the limit in a `limit_reached` error, or null. */
export function limitOf(error: unknown): string | null {
  if (errorCode(error) !== "limit_reached") return null;
  const { facts } = error as { facts?: unknown }; // it has a code: it is an object
  return isObject(facts) && typeof facts.limit === "string" ? facts.limit : "limit";
}

/** Session of a call. Its step aborts on immediate cancellation and at the run's `max_duration_s`. */
interface DeadlineSession extends Pick<SessionContext, "step"> {
  readonly host: Pick<Host, "clock">;
  readonly limits: Pick<KernelLimits, "tool_timeout_s" | "cleanup_timeout_s">;
}

/**
 * The deadline of one tool call. Its clock is paused while a sub-agent of the call runs, because the
 * sub-agent has limits of its own and may wait for a person.
 */
export class CallDeadline {
  readonly #session: DeadlineSession;
  readonly #tool: string;
  readonly #step: StepAbort;
  readonly #controller = new AbortController();
  readonly #abort = (reason: unknown): void => {
    if (this.#is_aborted) return;
    this.#stopClock();
    this.#is_aborted = true;
    this.#controller.abort(reason);
    this.#end();
  };
  #is_aborted = false;
  /** Rejects the promise of {@link wait}; null while the call does not wait. */
  #abandon: ((reason: unknown) => void) | null = null;
  /** Stops the timer of the deadline, or of the time to end after an abort. */
  #stop_timer: (() => void) | null = null;
  #stopped: PromiseWithResolvers<void> | null = null;
  #left_ms: number;
  #started_at = 0;
  #pauses = 0;

  /** @param tool Name of the tool, for the error of the deadline. */
  constructor(session: DeadlineSession, tool: string) {
    this.#session = session;
    this.#tool = tool;
    this.#step = session.step; // the turn's: a later turn has another
    this.#left_ms = session.limits.tool_timeout_s * 1000;
    this.#step.add(this.#abort);
  }

  /** Resolves when the call has ended. Created on first use. */
  get stopped(): Promise<void> {
    return (this.#stopped ??= Promise.withResolvers()).promise;
  }

  /** Aborts when the call must end. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Settles as the call does, or rejects when the call must end first. */
  wait<T>(call: PromiseLike<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#abandon = reject;
      Promise.resolve(call).then(resolve, reject); // a module may return any thenable
      if (this.#is_aborted) this.#end();
      else this.#startSoon();
    });
  }

  /** Stops the clock until the returned function is called. Pauses may overlap. */
  pause(): () => void {
    this.#pauses++;
    if (!this.#is_aborted) this.#stopClock();
    let paused = true;
    return () => {
      if (!paused) return;
      paused = false;
      this.#pauses--;
      this.#startClock();
    };
  }

  /** Removes the timer after the call has ended; the call is no longer aborted. */
  stop(): void {
    this.#step.remove(this.#abort);
    this.#stop_timer?.();
    this.#abandon = this.#stop_timer = null;
    this.#stopped?.resolve();
  }

  /** Abandons an aborted call that waits, at once or after the time that a sub-agent has to end. */
  #end(): void {
    const { host: { clock }, limits } = this.#session;
    const abandon = () => this.#abandon?.(this.signal.reason);
    if (this.#pauses === 0) abandon();
    else if (this.#abandon !== null) this.#stop_timer = clock.later(limits.cleanup_timeout_s * 1000, abandon);
  }

  /** Starts the clock if the call has not ended after two microtasks: most calls that answer at once have. */
  async #startSoon(): Promise<void> {
    await null;
    await null;
    this.#startClock();
  }

  #startClock(): void {
    const { host: { clock }, limits: { tool_timeout_s } } = this.#session;
    const is_waiting = this.#abandon !== null && !this.#is_aborted;
    if (!is_waiting || tool_timeout_s <= 0 || this.#pauses > 0 || this.#stop_timer !== null) return;
    this.#started_at = clock.monotonic();
    const message = `Tool "${this.#tool}" timed out: no result within ${tool_timeout_s} s (tool_timeout_s)`;
    this.#stop_timer = clock.later(
      this.#left_ms,
      () => this.#abort(new PreampError("tool_timeout", message)),
    );
  }

  #stopClock(): void {
    if (this.#stop_timer === null) return;
    this.#stop_timer();
    this.#stop_timer = null;
    this.#left_ms = Math.max(0, this.#left_ms - (this.#session.host.clock.monotonic() - this.#started_at));
  }
}
