/**
 * What the kernel does where a loop does not (architecture.md, Guards): gates that were never emitted or never acted on,
 * answers and results that were never told, calls that were never answered. For a loop that does its duty nothing is left.
 */
import { errorCode, errorMessage } from "../../sdk/errors.ts";
import { toPlain } from "../../sdk/json.ts";
import { toolErrorType } from "../../sdk/loop/tool_calls.ts";
import { cancelledCallText, serializeOutput } from "../../sdk/tools.ts";
import type { SessionContext } from "../session/session_context.ts";
import type { ContextHandle } from "../guards/context.ts";
import type { Mounts } from "../mounting/mounts.ts";
import type { HookActions } from "./hook_actions.ts";
import type { CallRecord, Turn } from "../session/turn_state.ts";

/** The backstop of a session. */
export class LoopContract {
  readonly #core: SessionContext;
  readonly #mounts: Mounts;
  readonly #processing: HookActions;

  constructor(core: SessionContext, mounts: Mounts, processing: HookActions) {
    this.#core = core;
    this.#mounts = mounts;
    this.#processing = processing;
  }

  /** Tells the last answer and its calls where the loop did not, and answers the calls that it left open. */
  settleAnswer(turn: Turn): Promise<void> | void {
    const context = this.#mounts.context as ContextHandle | null;
    if (turn.untold_response === null && !turn.calls.some(isUntold) && context?.has_open_calls !== true) {
      return;
    }
    return this.#settleAnswer(turn);
  }

  async #settleAnswer(turn: Turn): Promise<void> {
    await this.tellResponse();
    for (const call of turn.calls) if (isUntold(call)) await this.#tellCall(call);
    await (this.#mounts.context as ContextHandle | null)?.closeCalls();
  }

  /** Tells the last answer when the loop went on without a word. */
  tellResponse(): Promise<unknown> | void {
    const { turn, hooks } = this.#core;
    if (turn === null || turn.untold_response === null) return;
    return hooks.emit("provider:response", { response: toPlain(turn.response) });
  }

  async #tellCall({ id, name, input, settled }: CallRecord): Promise<void> {
    const told = { tool_name: name, tool_call_id: id, tool_input: input };
    if (settled === null || ("error" in settled && errorCode(settled.error) === "cancelled")) return;
    if ("result" in settled) {
      await this.#core.hooks.emit("tool:post", { ...told, result: toPlain(settled.result) });
    } else {
      const error = { type: toolErrorType(settled.error), msg: errorMessage(settled.error) };
      await this.#core.hooks.emit("tool:error", { ...told, error });
    }
  }

  /** The gate of a tool call: emitted and processed here when the loop did not (architecture.md, Guards). */
  gateCall(call: CallRecord): Promise<void> | void {
    if (call.pre === null || call.gate === "pending") return this.#gate(call);
  }

  async #gate(call: CallRecord): Promise<void> {
    if (call.pre === null) {
      await this.tellResponse();
      const { id, name, asked } = call;
      await this.#core.hooks.emit("tool:pre", { tool_name: name, tool_call_id: id, tool_input: asked });
    }
    if (call.gate === "pending" && call.pre !== null) await this.#processing.apply(call.pre, "tool:pre");
  }

  /** Before a `provider:request`: the prompt must have passed its gate, also when the loop does not ask. */
  beforeRequest(): Promise<unknown> | void {
    const { turn } = this.#core;
    if (turn === null || (turn.started && turn.prompt_told)) return;
    return this.#submitPrompt(turn);
  }

  async #submitPrompt(turn: Turn): Promise<void> {
    await this.#core.beginTurn();
    if (turn.prompt_told) return;
    const submitted = await this.#core.hooks.emit("prompt:submit", { prompt: turn.prompt });
    await this.#processing.apply(submitted, "prompt:submit");
  }

  /**
   * Before a model call of the loop: what it left undone is done, and both gates are decided. A loop that does its duty left
   * nothing, and waits for nothing: some ten promises less for each call.
   */
  beforeCall(provider: string): Promise<void> | void {
    const { turn } = this.#core;
    if (turn !== null && !this.#isDone(turn)) return this.#catchUp(turn, provider);
  }

  /** Whether the loop has told, answered and asked all that {@link #catchUp} looks after. */
  #isDone(turn: Turn): boolean {
    const { prompt_gate, request_gate, untold_response, calls } = turn;
    if (request_gate === null || turn.requests_by_kernel || !turn.started || !turn.prompt_told) return false;
    if (!request_gate.processed || prompt_gate?.processed === false || untold_response !== null) return false;
    const context = this.#mounts.context as ContextHandle | null;
    return context?.has_open_calls !== true && calls.every((call) => !isUntold(call));
  }

  async #catchUp(turn: Turn, provider: string): Promise<void> {
    const core = this.#core;
    await this.settleAnswer(turn);
    await this.beforeRequest();
    if (turn.request_gate === null || turn.requests_by_kernel) {
      turn.requests_by_kernel = true;
      const asked = await core.hooks.emit("provider:request", { provider, iteration: turn.iteration + 1 });
      await this.#processing.apply(asked, "provider:request");
    }
    for (const gate of [turn.prompt_gate, turn.request_gate]) {
      if (gate && !gate.processed) await this.#processing.apply(gate.emission, gate.event);
    }
  }

  /** Returns what a call is answered with that the loop left without a result. */
  closingText(id: string, name: string): string {
    const { turn, cancellation } = this.#core;
    const call = turn?.calls.find((one) => one.id === id);
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

/** Whether a call ran and nobody was told what came of it. */
function isUntold(call: CallRecord): boolean {
  return call.settled !== null && !call.told && call.gate === "allowed";
}
