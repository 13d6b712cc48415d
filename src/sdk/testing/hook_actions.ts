/** Executes emissions in tests: stores injections, records messages, asks for approval. */
import type { Clock, ContextManager } from "../contracts.ts";
import { errorName } from "../errors.ts";
import {
  admitInjections,
  afterApproval,
  type ApprovalOutcome,
  approvalOutcome,
  injectedMessage,
  type InjectionLimits,
} from "../hook_actions.ts";
import { runChain } from "../hook_chain.ts";
import type { ApprovalQuestion, Emission, HookRegistry, UserMessage } from "../hooks.ts";
import type { JsonObject } from "../json.ts";
import { ApprovalTimeoutError, type FakeApproval } from "./mocks.ts";
import { withinTime } from "./clocks.ts";

/** Objects that the actions of an emission change, and the limits of injections. */
export interface HookActionTargets extends InjectionLimits {
  /** Emits the events of the actions. */
  readonly hooks: HookRegistry;
  /** Stores the injections. */
  readonly context: ContextManager | null;
  /** Answers approvals; null: no approval system. */
  readonly approval: FakeApproval | null;
  /** Receives messages to the user. */
  readonly shown: UserMessage[];
  /** Clock of stored messages and of approval timeouts. */
  readonly clock: Clock;
}

/** Executes the emissions of one session; counts the tokens of a turn's injections. */
export class HookActions {
  #tokens = 0;

  /** Resets the token counter of the turn. */
  resetTurn(): void {
    this.#tokens = 0;
  }

  /**
   * Executes an emission, or a plain hook result, and resolves to it; a question becomes `continue` or
   * `deny`.
   *
   * @throws {PreampError} `denied` for an injection over a limit; then nothing is injected.
   */
  async process(
    request: Emission | JsonObject,
    event: string,
    hook_name: string,
    on: HookActionTargets,
  ): Promise<Emission> {
    const result = isEmission(request) ? request : await emissionOf(request, event, hook_name);
    const { admitted, tokens, violations, refusal } = admitInjections(result, this.#tokens, on);
    this.#tokens = tokens;
    for (const violation of violations) await on.hooks.emit("policy:violation", violation);
    if (refusal) throw refusal;
    for (const injection of admitted) {
      if (!injection.ephemeral) {
        await on.context?.addMessage(injectedMessage(injection, event, on.clock.now()));
      }
    }
    on.shown.push(...result.user_messages);
    const settled: Emission = { ...result, injections: admitted };
    return result.action === "ask_user" && result.approval
      ? afterApproval(settled, await ask(result.approval, settled, event, on))
      : settled;
  }
}

function isEmission(value: Emission | JsonObject): value is Emission {
  return Array.isArray(value.injections) && Array.isArray(value.user_messages);
}

/** Returns the emission of a plain hook result. */
async function emissionOf(result: JsonObject, event: string, hook_name: string): Promise<Emission> {
  const handler = () => Object.keys(result).length === 0 ? null : result;
  return await runChain(
    [{ name: hook_name, handler, observes: false, fail_closed: true, timeout_ms: 0 }],
    event,
    {},
  );
}

async function ask(
  question: ApprovalQuestion,
  { data }: Emission,
  event: string,
  on: HookActionTargets,
): Promise<ApprovalOutcome> {
  const { tool_name, tool_call_id, tool_input } = data;
  const call = tool_name === undefined ? {} : { tool_name, tool_call_id, tool_input };
  const { prompt, hook_name, options } = question;
  const facts = { ...call, event, prompt, hook_name };
  await on.hooks.emit("approval:required", { ...facts, options, default: question.default });
  const { allowed, reason } = approvalOutcome(await decide(question, on), question);
  await on.hooks.emit(allowed ? "approval:granted" : "approval:denied", { ...facts, reason });
  return { allowed, reason };
}

/** Resolves to the answer; `timeout` if it is late, `deny` if the approval system fails, null without one. */
async function decide(question: ApprovalQuestion, on: HookActionTargets): Promise<string | null> {
  if (!on.approval) return null;
  const LATE = "no answer in time";
  const wait_ms = (question.timeout ?? 300) * 1000; // the server's default timeout
  try {
    return await withinTime(on.approval.requestApproval(question), wait_ms, LATE, on.clock);
  } catch (error) {
    const late = errorName(error) === ApprovalTimeoutError.name ||
      (error instanceof Error && error.message === LATE);
    return late ? "timeout" : "deny";
  }
}
