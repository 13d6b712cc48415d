/**
 * One turn, from the call of the orchestrator to its outcome: begun, or gone on with where a log ended; whatever the loop does,
 * its history is closed and its end is told once (trace.md, section 4, C). What is mounted and told around it is `session/session.ts`.
 */
import { errorMessage, PreampError } from "../../sdk/errors.ts";
import { toPlain } from "../../sdk/json.ts";
import { assistantMessage } from "../../sdk/loop/assistant_message.ts";
import { textOf } from "../../sdk/messages.ts";
import type { Coordinator, Prompt } from "../../sdk/types.ts";
import type { LoopContract } from "../hooks/loop_contract.ts";
import type { SessionContext } from "./session_context.ts";
import { withGrace } from "../timeouts.ts";
import type { ContextGuard } from "../guards/context.ts";
import type { Mounts } from "../mounting/mounts.ts";
import { type Outcome, outcomeOf, type Returned } from "./outcome.ts";
import { type RecoveredTurn, restoreTurn } from "./turn_recovery.ts";
import { Turn } from "./turn_state.ts";
import type { TurnTracker } from "./turn_tracker.ts";

/** Options of {@link Session.execute}. */
export interface TurnOptions {
  /** Goes on with a turn that a crash interrupted. */
  resume?: boolean;
  /** Iterations of the interrupted turn that were answered. */
  iteration?: number;
  /** Where that turn stands by its log, when this is the same run; wins over `iteration`. */
  recovered?: RecoveredTurn;
}

/** What a turn is run with. */
export interface TurnDeps {
  readonly session: SessionContext;
  readonly tracker: TurnTracker;
  readonly contract: LoopContract;
  readonly mounts: Mounts;
  /** The orchestrator's own. */
  readonly coordinator: Coordinator;
}

/** Makes the turn that options ask for. */
export function createTurn(
  session: SessionContext,
  prompt: Prompt,
  { recovered, resume, iteration }: TurnOptions,
): Turn {
  if (recovered) return restoreTurn(recovered, prompt);
  const turn = new Turn(session.host.newId("turn"), prompt);
  if (resume) {
    turn.started = turn.prompt_submitted = true;
    turn.iteration = turn.answered = iteration ?? 0;
  }
  return turn;
}

/** Runs a turn to its end; resolves whatever the loop does. */
export async function runTurn(turn: Turn, parts: TurnDeps, options: TurnOptions): Promise<Outcome> {
  const returned = options.recovered
    ? await resumeTurn(turn, parts, options.recovered)
    : await callLoop(turn, parts, options.resume === true);
  return finishTurn(turn, parts, returned);
}

/** Goes on with a turn that was interrupted; one whose loop was done, or cannot go on, is only brought to its end. */
async function resumeTurn(turn: Turn, parts: TurnDeps, recovered: RecoveredTurn): Promise<Returned> {
  const { prompted, response, response_is_unstored: is_untold, cancelled, ended_with, provider_error } =
    recovered;
  const { cancellation } = parts.session;
  if (cancelled !== null) {
    parts.tracker.noteCancelled();
    if (cancelled === "immediate") cancellation.requestImmediate();
    else cancellation.requestGraceful();
  }
  if (response && is_untold) await contextOf(parts).addMessage(assistantMessage(response));
  if (ended_with !== null) {
    const failed = recovered.completed === "error" || recovered.emitted.has("execution:end");
    return failed && provider_error ? { error: provider_error } : { text: ended_with };
  }
  if (prompted && parts.mounts.orchestrator?.resumable !== true) {
    const fact = "its process ended, and its orchestrator does not say resumable: true";
    return { error: new PreampError("interrupted", `Cannot go on with the run: ${fact}`) };
  }
  return await callLoop(turn, parts, prompted);
}

async function callLoop(turn: Turn, parts: TurnDeps, resume: boolean): Promise<Returned> {
  const { session, mounts, coordinator } = parts;
  const { prompt } = turn;
  try {
    const pending = mounts.orchestrator!.execute( // the plan's own: without it nothing was initialised
      typeof prompt === "string" ? prompt : toPlain(prompt) as unknown as Prompt,
      contextOf(parts).forLoop(),
      mounts.loop_providers.view,
      mounts.tools.view,
      coordinator.hooks,
      resume ? { coordinator, resume, iteration: turn.answered } : { coordinator },
    );
    // a loop that neither ends nor listens is left behind: ceilings and cancellation hold for it too
    const grace_ms = session.limits.cleanup_timeout_s * 1000;
    const text: unknown = await withGrace(pending, session.step_signal, grace_ms, session.host.clock);
    return { text: typeof text === "string" ? text : textOf(text) };
  } catch (error) {
    if (turn.limit === null && turn.denied === null && !session.cancellation.is_cancelled) {
      session.host.warn("execution_failed", errorMessage(error), { error, ...session.errorLocation(error) });
    }
    return { error };
  }
}

/** After the loop, whichever it was: the history closed, the events that it owes told, the outcome. */
async function finishTurn(turn: Turn, parts: TurnDeps, returned: Returned): Promise<Outcome> {
  const { session, contract: contract } = parts;
  const { hooks } = session;
  const begun = session.beginTurn();
  if (begun) await begun;
  const settled = contract.settleAnswer(turn);
  if (settled) await settled;
  const outcome = outcomeOf(session, turn, returned);
  const response = "text" in returned ? returned.text : outcome.error?.message ?? "";
  if (outcome.status === "cancelled") {
    await hooks.emit("cancel:completed", {});
  }
  // told already by a loop that does its duty
  if (!turn.ended) await hooks.emit("execution:end", { response, status: executionStatus(outcome) });
  if (turn.completed === null) {
    await hooks.emit("orchestrator:complete", {
      orchestrator: session.plan.session.orchestrator.module,
      turn_count: turn.answered,
      status: orchestratorStatus(outcome),
    });
  }
  return outcome;
}

function contextOf({ mounts }: TurnDeps): ContextGuard {
  return mounts.context as ContextGuard; // a session without one is not initialised
}

function executionStatus(outcome: Outcome): string {
  return outcome.status === "cancelled" ? "cancelled" : outcome.status === "failed" ? "error" : "completed";
}

function orchestratorStatus(outcome: Outcome): string {
  if (outcome.status === "completed") return "success";
  if (outcome.status === "failed") return "error";
  return outcome.status === "cancelled" ? "cancelled" : "incomplete";
}
