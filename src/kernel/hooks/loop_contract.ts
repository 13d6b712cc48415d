/**
 * Runs the steps that a loop skipped: emits missing gates and acts on their results, reports missing answers
 * and results, and adds missing tool results. Does nothing for a loop that skips no step. See
 * src/docs/architecture.md#guards.
 */
import { errorCode, errorMessage } from "../../sdk/errors.ts";
import { toPlain } from "../../sdk/json.ts";
import { changedResult } from "../../sdk/loop/tool_calls.ts";
import { cancelledCallText, modelContent, shownResult, toolErrorType } from "../../sdk/tools.ts";
import type { SessionContext } from "../session/session_context.ts";
import type { Mounts } from "../mounting/mounts.ts";
import type { HookActions } from "./hook_actions.ts";
import type { CallRecord, LoopSteps, Turn } from "../session/turn_state.ts";
import type { TurnTracker } from "../session/turn_tracker.ts";
import type { Emission, JsonObject, Message } from "../../sdk/types.ts";

/** Completes the loop's steps of a session. */
export class LoopContract implements LoopSteps {
  readonly #session: SessionContext;
  readonly #mounts: Mounts;
  readonly #actions: HookActions;
  readonly #tracker: TurnTracker;

  constructor(session: SessionContext, mounts: Mounts, actions: HookActions, tracker: TurnTracker) {
    this.#session = session;
    this.#mounts = mounts;
    this.#actions = actions;
    this.#tracker = tracker;
  }

  /**
   * Emits the events that must precede `event`: the start of the turn, `prompt:submit` before the first
   * request, `cancel:requested` before `cancel:completed`, and that before an end event with status
   * `cancelled`, or before the success of a turn whose cancel was requested.
   */
  before(event: string, data: JsonObject): Promise<unknown> | void {
    const { turn, cancellation, hooks } = this.#session;
    if (turn === null) return;
    switch (event) {
      case "provider:request":
        return this.#beforeRequest(turn);
      case "cancel:completed":
        if (this.#tracker.cancel_requested) {
          if (turn.started) return this.#session.cancel_emission ?? undefined;
          break;
        }
        // a provider that reports its call as aborted cancels the turn
        return cancellation.is_cancelled
          ? this.#session.emitCancelRequested()
          : this.#session.cancel("immediate");
      case "execution:end":
      case "orchestrator:complete":
        if (turn.cancel_completed) break;
        if (data.status !== "cancelled" && !(data.status === "success" && cancellation.is_cancelled)) break;
        return hooks.emit("cancel:completed", {});
    }
    return this.#session.beginTurn(event);
  }

  /** Reports the answers and their calls that the loop did not; adds results for the calls without one. */
  async settleAnswer(turn: Turn): Promise<void> {
    await this.emitResponses();
    const { unreported_parts } = turn;
    const is_stopped = this.#session.cancellation.is_immediate || this.#session.step.is_ended;
    while (!is_stopped && unreported_parts.length > 0) { // each emission removes one
      await this.#session.hooks.emit("provider:error", unreported_parts[0]!); // not empty
    }
    for (const call of turn.calls) if (isUnreported(call)) await this.#emitResult(call);
    await this.#mounts.turn_context?.closeCalls();
  }

  /** Emits `provider:response` for each answer that the loop did not report. */
  emitResponses(): Promise<unknown> | void {
    const { turn } = this.#session;
    if (turn !== null && turn.unreported.length > 0) return this.#emitResponses(turn);
  }

  async #emitResponses({ unreported }: Turn): Promise<void> {
    while (unreported.length > 0) { // each emission removes its answer
      const { usage, response } = unreported[0]!; // not empty
      await this.#session.hooks.emit("provider:response", { usage, response: toPlain(response) });
    }
  }

  async reportResult(call: CallRecord): Promise<void> {
    const emission = isUnreported(call) ? await this.#emitResult(call) : null;
    if (emission === null) return;
    const { settled } = call;
    if (settled === null || !("result" in settled)) {
      await this.#actions.apply(emission, "tool:error");
      return;
    }
    await this.#actions.apply(emission, "tool:post");
    const changed = changedResult(settled.result, emission);
    if (changed) call.settled = { result: changed };
  }

  async #emitResult({ id, name, input, settled }: CallRecord): Promise<Emission | null> {
    const call_fields = { tool_name: name, tool_call_id: id, tool_input: input };
    if (settled === null || ("error" in settled && errorCode(settled.error) === "cancelled")) return null;
    if ("result" in settled) {
      return await this.#session.hooks.emit("tool:post", {
        ...call_fields,
        result: shownResult(settled.result),
      });
    }
    const error = { type: toolErrorType(settled.error), msg: errorMessage(settled.error) };
    return await this.#session.hooks.emit("tool:error", { ...call_fields, error });
  }

  /** Emits and processes `tool:pre` of a call if the loop did not. */
  async gateCall(call: CallRecord): Promise<void> {
    if (call.pre === null) {
      if (call.is_requested) await this.emitResponses();
      const { id, name, requested_input: tool_input } = call;
      call.gated_by_kernel = true;
      await this.#session.hooks.emit("tool:pre", { tool_name: name, tool_call_id: id, tool_input });
    }
    if (call.gate === "pending" && call.pre !== null) await this.#actions.apply(call.pre, "tool:pre");
  }

  /** Emits and processes `prompt:submit` if the loop did not. */
  #beforeRequest(turn: Turn): Promise<void> | void {
    if (!turn.started || !turn.prompt_submitted) return this.#submitPrompt(turn);
  }

  async #submitPrompt(turn: Turn): Promise<void> {
    await this.#session.beginTurn();
    if (turn.prompt_submitted) return;
    const submitted = await this.#session.hooks.emit("prompt:submit", { prompt: turn.prompt });
    await this.#actions.apply(submitted, "prompt:submit");
  }

  /**
   * Runs before each model call: emits `prompt:submit` and `provider:request` and adds missing tool results
   * if the loop skipped them. Returns nothing for a loop that skipped no step.
   */
  beforeCall(turn: Turn, provider: string): Promise<void> | void {
    const is_ready = turn.unreported.length === 0 && turn.unreported_parts.length === 0 &&
      !turn.calls.some(isUnreported) &&
      this.#mounts.turn_context?.has_open_calls !== true &&
      turn.started && turn.prompt_submitted && turn.prompt_gate?.processed !== false &&
      turn.request_gate?.processed === true && !turn.requests_by_kernel;
    if (!is_ready) return this.#completeSteps(turn, provider);
  }

  async #completeSteps(turn: Turn, provider: string): Promise<void> {
    await this.settleAnswer(turn);
    await this.#beforeRequest(turn);
    if (turn.request_gate === null || turn.requests_by_kernel) {
      turn.requests_by_kernel = true;
      const emission = await this.#session.hooks.emit("provider:request", {
        provider,
        iteration: turn.iteration + 1,
      });
      await this.#actions.apply(emission, "provider:request");
    }
    for (const gate of [turn.prompt_gate, turn.request_gate]) {
      if (gate && !gate.processed) await this.#actions.apply(gate.emission, gate.event);
    }
  }

  /** Returns the content of the result for a call that the loop left without a result. */
  resultContentFor(id: string, name: string): Message["content"] {
    const { turn, cancellation } = this.#session;
    const call = turn?.calls.find((record) => record.id === id);
    const settled = call?.settled;
    if (settled && "error" in settled && errorCode(settled.error) === "cancelled") {
      return cancelledCallText(name);
    }
    if (settled) {
      return "result" in settled
        ? modelContent(settled.result)
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
