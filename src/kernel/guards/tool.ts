/** The guard around a tool: a call is counted, has a deadline, and runs only with the allowed input. */
import { errorCode, PreampError } from "../../sdk/errors.ts";
import {
  deepFreeze,
  isObject,
  isThenable,
  jsonEqual,
  toFrozenObject,
  toPlainObject,
} from "../../sdk/json.ts";
import { inputSchemaOf } from "../../sdk/snake_case_aliases.ts";
import { wellFormed } from "../../sdk/well_formed.ts";
import { refusalOfInput } from "../../sdk/loop/tool_input_validation.ts";
import { isResult, toolFailure, toToolResult } from "../../sdk/tools.ts";
import type {
  JsonObject,
  JsonSchema,
  RiskLevel,
  Tool,
  ToolCallContext,
  ToolResult,
} from "../../sdk/types.ts";
import type { SessionContext } from "../session/session_context.ts";
import { recoveredResult } from "../session/interrupted_turn.ts";
import type { CallRecord, Turn } from "../session/turn_state.ts";
import { withinLimits } from "./limit_pause.ts";
import { CallDeadline } from "./call_deadline.ts";
import { boundedError, boundedResult } from "./tool_result_limit.ts";

/** Most characters of one call that people are shown while it runs. */
const MAX_OUTPUT_CHARS = 256 * 1024;

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
  declare readonly preview?: (input: JsonObject) => Promise<string>;
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
    // vendors refuse every request with half of a character, such as at the end of a text that was cut
    this.description = typeof tool.description === "string" ? tool.description.toWellFormed() : "";
    this.input_schema = deepFreeze(wellFormed(toPlainObject(inputSchemaOf(tool))));
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
    const { preview } = tool;
    if (typeof preview === "function") {
      this.preview = async (input) => String(await preview.call(tool, toPlainObject(input)));
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
    const refusal = await refusalOfInput(this, call.input); // also of a loop that does not check
    if (refusal) {
      call.settled = { result: toolFailure(refusal.msg, { type: refusal.type }) };
      return await this.#reported(call);
    }
    const deadline = call.deadline = new CallDeadline(session, call.name);
    session.cancellation.registerToolStart(call.id, call.name);
    try {
      let result = recoveredResult(turn.recovered?.get(call.id), this.name, this.idempotent);
      if (result === undefined) {
        const counted = withinLimits(session, () => session.run_limits.countToolCall(), {
          tool_call_id: call.id,
        });
        if (counted) await counted;
        const returned = this.#tool.execute(toPlainObject(call.input), {
          id: call.id,
          session_id: session.session_id,
          signal: deadline.signal,
          progress: (text) => this.#progress(call, text, context),
          output: (text, stream) => this.#output(call, text, stream),
        });
        const answer = isThenable(returned) ? await deadline.wait(returned) : returned;
        result = boundedResult(toToolResult(answer), session.limits);
        if (isResult(answer)) session.noteReturned("tool result", answer, this.#module_id);
      }
      call.settled = { result };
    } catch (error) {
      turn.limit ??= limitOf(error);
      const at = session.error_locators?.get(this.#module_id)?.(error);
      if (at !== undefined) call.error_location = at;
      call.settled = { error: boundedError(error, session.limits.max_tool_result_bytes) };
    } finally {
      deadline.stop();
      call.deadline = null;
      session.cancellation.registerToolComplete(call.id);
    }
    return await this.#reported(call);
  }

  /** Reports how a call ended, unless the loop does; resolves to its result. */
  async #reported(call: CallRecord): Promise<ToolResult> {
    if (call.gated_by_kernel) await this.#session.loop_steps.reportResult(call);
    const settled = call.settled!; // the call has ended
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

  #output(call: CallRecord, text: string, stream: unknown): void {
    const { output_chars = 0 } = call;
    const shown = String(text).slice(0, MAX_OUTPUT_CHARS - output_chars);
    if (shown === "" || call.settled) return;
    call.output_chars = output_chars + shown.length;
    const data = { tool_call_id: call.id, text: shown, stream: stream === "stderr" ? "stderr" : "stdout" };
    this.#session.hooks.emit("tool:output", data).catch((error) =>
      this.#session.host.warn("output_lost", String(error))
    );
  }
}

/** Returns the name of the limit in a `limit_reached` error, or null. */
export function limitOf(error: unknown): string | null {
  if (errorCode(error) !== "limit_reached") return null;
  const { facts } = error as { facts?: unknown }; // it has a code: it is an object
  return isObject(facts) && typeof facts.limit === "string" ? facts.limit : "limit";
}
