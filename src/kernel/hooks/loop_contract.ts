/**
 * Runs the steps that a loop skipped: emits missing gates and acts on their results, reports missing answers
 * and results, and adds missing tool results. Does nothing for a loop that skips no step. See
 * src/docs/architecture.md#guards.
 */
import { errorCode, errorMessage } from "../../sdk/errors.ts";
import { toPlain } from "../../sdk/json.ts";
import { toolErrorType } from "../../sdk/loop/tool_calls.ts";
import { cancelledCallText, serializeOutput } from "../../sdk/tools.ts";
import type { SessionContext } from "../session/session_context.ts";
import type { ContextGuard } from "../guards/context.ts";
import type { Mounts } from "../mounting/mounts.ts";
import type { HookActions } from "./hook_actions.ts";
import type { CallRecord, Turn } from "../session/turn_state.ts";

/** Completes the loop's steps of a session. */
export class LoopContract {
  readonly #session: SessionContext;
  readonly #mounts: Mounts;
  readonly #actions: HookActions;

  constructor(session: SessionContext, mounts: Mounts, actions: HookActions) {
    this.#session = session;
    this.#mounts = mounts;
    this.#actions = actions;
  }

  /**
   * Reports the last answer and its calls if the loop did not, and adds results for the calls that have none.
   */
  settleAnswer(turn: Turn): Promise<void> | void {
    const context = this.#mounts.context as ContextGuard | null;
    if (
      turn.unreported_response === null && !turn.calls.some(isUnreported) && context?.has_open_calls !== true
    ) {
      return;
    }
    return this.#settleAnswer(turn);
  }

  async #settleAnswer(turn: Turn): Promise<void> {
    await this.emitResponse();
    for (const call of turn.calls) if (isUnreported(call)) await this.#emitResult(call);
    await (this.#mounts.context as ContextGuard | null)?.closeCalls();
  }

  /** Emits `provider:response` for the last answer if the loop did not. */
  emitResponse(): Promise<unknown> | void {
    const { turn, hooks } = this.#session;
    if (turn === null || turn.unreported_response === null) return;
    return hooks.emit("provider:response", { response: toPlain(turn.response) });
  }

  async #emitResult({ id, name, input, settled }: CallRecord): Promise<void> {
    const call_fields = { tool_name: name, tool_call_id: id, tool_input: input };
    if (settled === null || ("error" in settled && errorCode(settled.error) === "cancelled")) return;
    if ("result" in settled) {
      await this.#session.hooks.emit("tool:post", { ...call_fields, result: toPlain(settled.result) });
    } else {
      const error = { type: toolErrorType(settled.error), msg: errorMessage(settled.error) };
      await this.#session.hooks.emit("tool:error", { ...call_fields, error });
    }
  }

  /** Emits and processes `tool:pre` of a call if the loop did not. */
  gateCall(call: CallRecord): Promise<void> | void {
    if (call.pre === null || call.gate === "pending") return this.#gate(call);
  }

  async #gate(call: CallRecord): Promise<void> {
    if (call.pre === null) {
      await this.emitResponse();
      const { id, name, requested_input: tool_input } = call;
      await this.#session.hooks.emit("tool:pre", { tool_name: name, tool_call_id: id, tool_input });
    }
    if (call.gate === "pending" && call.pre !== null) await this.#actions.apply(call.pre, "tool:pre");
  }

  /** Runs before a `provider:request`: emits and processes `prompt:submit` if the loop did not. */
  beforeRequest(): Promise<unknown> | void {
    const { turn } = this.#session;
    if (turn === null || (turn.started && turn.prompt_submitted)) return;
    return this.#submitPrompt(turn);
  }

  async #submitPrompt(turn: Turn): Promise<void> {
    await this.#session.beginTurn();
    if (turn.prompt_submitted) return;
    const submitted = await this.#session.hooks.emit("prompt:submit", { prompt: turn.prompt });
    await this.#actions.apply(submitted, "prompt:submit");
  }

  /**
   * Runs before each model call: emits `prompt:submit` and `provider:request` and adds missing tool results
   * if the loop skipped them. Synchronous when nothing is missing, which saves about ten promises a call.
   */
  beforeCall(provider: string): Promise<void> | void {
    const { turn } = this.#session;
    if (turn !== null && !this.#isComplete(turn)) return this.#completeSteps(turn, provider);
  }

  /** Returns whether the loop skipped none of the steps of {@link #completeSteps}. */
  #isComplete(turn: Turn): boolean {
    const { prompt_gate, request_gate, unreported_response: untold_response, calls } = turn;
    if (request_gate === null || turn.requests_by_kernel || !turn.started || !turn.prompt_submitted) {
      return false;
    }
    if (!request_gate.processed || prompt_gate?.processed === false || untold_response !== null) return false;
    const context = this.#mounts.context as ContextGuard | null;
    return context?.has_open_calls !== true && calls.every((call) => !isUnreported(call));
  }

  async #completeSteps(turn: Turn, provider: string): Promise<void> {
    const session = this.#session;
    await this.settleAnswer(turn);
    await this.beforeRequest();
    if (turn.request_gate === null || turn.requests_by_kernel) {
      turn.requests_by_kernel = true;
      const emission = await session.hooks.emit("provider:request", {
        provider,
        iteration: turn.iteration + 1,
      });
      await this.#actions.apply(emission, "provider:request");
    }
    for (const gate of [turn.prompt_gate, turn.request_gate]) {
      if (gate && !gate.processed) await this.#actions.apply(gate.emission, gate.event);
    }
  }

  /** Returns the text of the result for a call that the loop left without a result. */
  resultTextFor(id: string, name: string): string {
    const { turn, cancellation } = this.#session;
    const call = turn?.calls.find((record) => record.id === id);
    const settled = call?.settled;
    if (settled && "error" in settled && errorCode(settled.error) === "cancelled") {
      return cancelledCallText(name);
    }
    if (settled) {
      return "result" in settled
        ? serializeOutput(settled.result)
        : `Error executing tool: ${errorMessage(settled.error)}`;
    }
    if (call?.gate === "denied") return `Denied by hook: ${call.reason}`;
    if (cancellation.is_immediate) return cancelledCallText(name);
    return `Error: Tool '${name}' was not executed`;
  }
}

/** Returns whether a call ran, but neither `tool:post` nor `tool:error` was emitted for it. */
function isUnreported(call: CallRecord): boolean {
  return call.settled !== null && !call.reported && call.gate === "allowed";
}
