/** The guard around a tool: nothing runs that was not allowed for this very input, counted, and given a deadline. */
import { PreampError } from "../../sdk/errors.ts";
import { deepFreeze, isObject, jsonEqual, toPlain, toPlainObject } from "../../sdk/json.ts";
import { inputSchemaOf } from "../../sdk/spelling.ts";
import { serializeOutput, toolFailure, ToolResult, toToolResult } from "../../sdk/tools.ts";
import type { JsonObject, JsonSchema, RiskLevel, Tool, ToolCallContext } from "../../sdk/types.ts";
import type { Core } from "../core.ts";
import { STOPPED, withAbort } from "../deadline.ts";
import type { CallRecord } from "../turn.ts";

/** Emits and processes the `tool:pre` of a call whose loop did not; resolves once the gate is settled. */
export type GateCall = (call: CallRecord) => Promise<void>;

/** The guarded handle of a tool. Loops, modules and guests get this and nothing else. */
export class ToolHandle implements Tool {
  readonly name: string;
  readonly description: string;
  readonly input_schema: JsonSchema;
  readonly risk: RiskLevel;
  readonly requires_approval: boolean;
  readonly idempotent: boolean;
  readonly #core: Core;
  readonly #tool: Tool;
  readonly #key: string;
  readonly #gate: GateCall;

  /** Wraps `tool`, mounted under `key`; `name` is the one that models are told (C42). */
  constructor(core: Core, tool: Tool, key: string, name: string, gate: GateCall) {
    this.#core = core;
    this.#tool = tool;
    this.#key = key;
    this.#gate = gate;
    this.name = name;
    this.description = typeof tool.description === "string" ? tool.description : "";
    this.input_schema = deepFreeze(toPlainObject(inputSchemaOf(tool)));
    this.risk = tool.risk ?? "low";
    this.requires_approval = tool.requires_approval === true;
    this.idempotent = tool.idempotent === true;
  }

  async execute(input: JsonObject, context?: ToolCallContext): Promise<ToolResult> {
    const { turn } = this.#core;
    if (turn === null) {
      throw new PreampError("internal", `Cannot execute tool "${this.name}": no turn is running`);
    }
    const call = this.#callFor(input, context?.id);
    await this.#gate(call);
    if (call.gate !== "allowed") return toolFailure(`Denied by hook: ${call.reason}`, { type: "denied" });
    try {
      this.#core.ceilings.countToolCall();
    } catch (error) {
      turn.limit ??= limitOf(error);
      throw error;
    }
    call.started = true;
    const result = await this.#run(call, context);
    if (call.gated_here && !call.told) {
      await this.#core.hooks.emit("tool:post", {
        tool_name: call.name,
        tool_call_id: call.id,
        tool_input: call.input,
        result: toPlain(result),
      });
    }
    return result;
  }

  /** Finds the model's call that this execution answers; an input that no gate has seen is a new call. */
  #callFor(input: JsonObject, id: string | undefined): CallRecord {
    const turn = this.#core.turn!;
    const given = toPlainObject(input);
    const open = (record: CallRecord) =>
      !record.started && (record.name === this.name || record.name === this.#key);
    const call = id === undefined ? turn.find(undefined, undefined, open) : turn.find(id, undefined, open);
    if (call && (jsonEqual(given, call.input) || jsonEqual(given, call.asked))) return call;
    return turn.add(call || id === undefined ? this.#core.host.newId("call") : id, this.name, given);
  }

  async #run(call: CallRecord, context: ToolCallContext | undefined): Promise<ToolResult> {
    const core = this.#core;
    const deadline = new AbortController();
    const step = core.step_signal;
    const stop = () => deadline.abort(step.reason);
    if (step.aborted) stop();
    else step.addEventListener("abort", stop, { once: true });
    const timer = new AbortController();
    const { tool_timeout_s } = core.limits;
    core.cancellation.registerToolStart(call.id, call.name);
    try {
      const returned = this.#tool.execute(toPlainObject(call.input), {
        id: call.id,
        signal: deadline.signal,
        session_id: core.session_id,
        progress: (text) => this.#progress(call, text, context),
      });
      if (!isThenable(returned)) return this.#bounded(toToolResult(returned));
      if (tool_timeout_s > 0) {
        core.host.clock.after(tool_timeout_s * 1000, timer.signal).then(
          () =>
            deadline.abort(
              new PreampError(
                "tool_timeout",
                `Cannot wait for tool "${call.name}": no result within ${tool_timeout_s} s`,
              ),
            ),
          () => {}, // finished in time
        );
      }
      return this.#bounded(toToolResult(await withAbort(returned, deadline.signal)));
    } catch (error) {
      core.turn && (core.turn.limit ??= limitOf(error));
      throw error;
    } finally {
      timer.abort(STOPPED);
      step.removeEventListener("abort", stop);
      core.cancellation.registerToolComplete(call.id);
    }
  }

  #progress(call: CallRecord, text: string, context: ToolCallContext | undefined): void {
    context?.progress(text);
    this.#core.hooks.emit("user:notification", {
      message: String(text),
      level: "info",
      source: `tool:${call.name}`,
      tool_call_id: call.id,
    }).catch((error) => this.#core.host.warn("progress_lost", String(error)));
  }

  /** Keeps at most `max_tool_result_bytes` of the output: head and tail, and a marker that says how much is missing. */
  #bounded(result: ToolResult): ToolResult {
    const limit = this.#core.limits.max_tool_result_bytes;
    if (typeof result.output === "string" && result.output.length * 3 <= limit) return result;
    if (result.output === null) return result;
    const text = serializeOutput(result);
    const bytes = new TextEncoder().encode(text);
    if (bytes.length <= limit) return result;
    const half = Math.floor(limit / 2);
    const decoder = new TextDecoder();
    const head = trimBroken(decoder.decode(bytes.subarray(0, half)), "end");
    const tail = trimBroken(decoder.decode(bytes.subarray(bytes.length - half)), "start");
    const output = `${head}\n[... ${
      bytes.length - 2 * half
    } of ${bytes.length} bytes cut: max_tool_result_bytes is ${limit} ...]\n${tail}`;
    return ToolResult({ success: result.success, output, error: result.error });
  }
}

function trimBroken(text: string, side: "start" | "end"): string {
  return side === "end" ? text.replace(/\ufffd+$/, "") : text.replace(/^\ufffd+/, "");
}

function isThenable(value: unknown): value is Promise<unknown> {
  return isObject(value) && typeof value.then === "function";
}

/** Returns the name of the ceiling in a `limit_reached` error, or null. */
export function limitOf(error: unknown): string | null {
  if (!isObject(error) || error.code !== "limit_reached") return null;
  const { facts } = error;
  return isObject(facts) && typeof facts.limit === "string" ? facts.limit : "limit";
}
