/**
 * Runs one turn, from the call of the orchestrator to the outcome: a new turn, or one that was interrupted.
 * Whatever the loop does, every tool call gets a result and each end event is emitted once.
 */
import { errorMessage, PreampError } from "../../sdk/errors.ts";
import { toPlain } from "../../sdk/json.ts";
import { assistantMessage } from "../../sdk/loop/assistant_message.ts";
import { textOf } from "../../sdk/messages.ts";
import type { Coordinator, Prompt } from "../../sdk/types.ts";
import type { SessionContext } from "./session_context.ts";
import type { ContextGuard } from "../guards/context.ts";
import { type Outcome, outcomeOf, type Returned } from "./outcome.ts";
import type { SessionParts } from "./session_parts.ts";
import type { InterruptedTurn } from "./interrupted_turn.ts";
import { Turn } from "../turn.ts";

/** Options of {@link Session.execute}. */
export interface TurnOptions {
  /** Continues a turn that was interrupted. */
  resume?: boolean;
  /** Answered iterations of the interrupted turn. */
  iteration?: number;
  /**
   * State of the interrupted turn from its log, when this is the same run; takes precedence over `iteration`.
   */
  recovered?: InterruptedTurn;
}

/** Collaborators of {@link runTurn}. */
export interface TurnDeps extends SessionParts {
  /** Coordinator of the orchestrator. */
  readonly coordinator: Coordinator;
}

/** Creates a new turn, or restores the interrupted turn of the options. */
export function createTurn(
  session: SessionContext,
  prompt: Prompt,
  { recovered, resume, iteration }: TurnOptions,
): Turn {
  if (recovered) return recovered.continued(prompt);
  const turn = new Turn(session.host.newId("turn"), prompt);
  if (resume) {
    turn.started = turn.prompt_submitted = true;
    turn.iteration = turn.answered = iteration ?? 0;
  }
  return turn;
}

/** Runs a turn to its end. Resolves even if the loop throws. */
export async function runTurn(turn: Turn, parts: TurnDeps, options: TurnOptions): Promise<Outcome> {
  const returned = options.recovered
    ? await resumeTurn(turn, parts, options.recovered)
    : await callLoop(turn, parts, options.resume === true);
  return finishTurn(turn, parts, returned);
}

/** Continues an interrupted turn. The loop is not called again if it had ended or is not resumable. */
async function resumeTurn(turn: Turn, parts: TurnDeps, recovered: InterruptedTurn): Promise<Returned> {
  const { prompted, response_is_unstored, cancelled, ended_with } = recovered;
  const { response, provider_error } = turn;
  const { cancellation } = parts.session;
  if (cancelled !== null) {
    parts.tracker.cancel_requested = true;
    if (cancelled === "immediate") cancellation.requestImmediate();
    else cancellation.requestGraceful();
  }
  if (response && response_is_unstored) await contextOf(parts).addMessage(assistantMessage(response));
  if (ended_with !== null) {
    const failed = turn.completed === "error" || turn.ended;
    return failed && provider_error ? { error: provider_error, text: ended_with } : { text: ended_with };
  }
  if (prompted && parts.mounts.orchestrator?.resumable !== true) {
    const fact = "its process ended, and its orchestrator does not declare resumable: true";
    return { error: new PreampError("interrupted", `Cannot continue the run: ${fact}`), text: "" };
  }
  return await callLoop(turn, parts, prompted);
}

async function callLoop(turn: Turn, parts: TurnDeps, resume: boolean): Promise<Returned> {
  const { session, mounts, coordinator } = parts;
  const { prompt } = turn;
  try {
    const pending = mounts.orchestrator!.execute( // a session without one is not initialised
      typeof prompt === "string" ? prompt : toPlain(prompt) as unknown as Prompt,
      contextOf(parts).loop_handle,
      mounts.loop_providers.view,
      mounts.tools.view,
      coordinator.hooks,
      resume ? { coordinator, resume, iteration: turn.answered } : { coordinator },
    );
    // a loop that ignores its abort signal is abandoned; limits and cancellation still apply to its calls
    const grace_ms = session.limits.cleanup_timeout_s * 1000;
    const text: unknown = await session.step.raceWithGrace(pending, grace_ms, session.host.clock);
    return { text: typeof text === "string" ? text : textOf(text) };
  } catch (error) {
    if (turn.limit === null && turn.denied === null && !session.cancellation.is_cancelled) {
      session.host.warn("execution_failed", errorMessage(error), { error, ...session.errorLocation(error) });
    }
    return { error, text: turn.broken_off_text };
  }
}

/** Adds missing tool results, decides the outcome and emits the end events that the loop did not emit. */
async function finishTurn(turn: Turn, parts: TurnDeps, returned: Returned): Promise<Outcome> {
  const { session, contract } = parts;
  const { hooks } = session;
  if (session.step.is_waited_for) await session.endCalls(turn);
  await session.beginTurn();
  await contract.settleAnswer(turn);
  const outcome = outcomeOf(session, turn, returned);
  const response = "error" in returned ? outcome.error?.message ?? "" : returned.text;
  if (outcome.status === "cancelled") {
    await hooks.emit("cancel:completed", {});
  }
  if (!turn.ended) {
    await hooks.emit("execution:end", { response, status: STATUS[outcome.status] ?? "completed" });
  }
  if (turn.completed === null) {
    await hooks.emit("orchestrator:complete", {
      orchestrator: session.plan.session.orchestrator.module,
      turn_count: turn.answered,
      status: STATUS[outcome.status] ?? (outcome.status === "completed" ? "success" : "incomplete"),
    });
  }
  return outcome;
}

function contextOf({ mounts }: TurnDeps): ContextGuard {
  return mounts.turn_context!; // a session without one is not initialised
}

/** Status of an outcome that is neither completed nor incomplete. */
const STATUS: Partial<Record<Outcome["status"], string>> = { cancelled: "cancelled", failed: "error" };
