/** Carries out emissions in tests: stores injections, records messages, asks for approval. */
import type { Clock, ContextManager } from "../contracts.ts";
import { errorName } from "../errors.ts";
import { noopEmission, runChain } from "../hook_chain.ts";
import type { ApprovalQuestion, Emission, HookRegistry, Injection, UserMessage } from "../hooks.ts";
import type { JsonObject } from "../json.ts";
import { sanitizeText } from "../tools.ts";
import { ApprovalTimeoutError, type FakeApproval } from "./fake_approval.ts";
import { withinTime } from "./wait_for.ts";

/** Code points and tokens above which a plan without limits gets a warning. */
const DOCUMENTED = { size: 10_240, budget: 10_000 };

/** Objects that the actions of an emission change. */
export interface HookActionTargets {
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
  /** Maximum code points of one injection; undefined: a warning above 10,240. */
  readonly size_limit: number | null | undefined;
  /** Maximum tokens of all injections of a turn; undefined: a warning above 10,000. */
  readonly budget: number | null | undefined;
  /** Handling of an injection over the budget. */
  readonly budget_mode: "warn" | "drop" | "error";
}

/** Carries out the emissions of one session; counts the tokens of a turn's injections. */
export class HookActions {
  #tokens = 0;

  /** Resets the token counter of the turn. */
  resetTurn(): void {
    this.#tokens = 0;
  }

  /**
   * Carries out an emission, or a plain hook result, and resolves to it; a question becomes `continue` or
   * `deny`.
   *
   * @throws {RangeError} `Context injection exceeds N characters` (or tokens, with the budget mode `error`);
   * then nothing is injected.
   */
  async process(
    request: Emission | JsonObject,
    event: string,
    hook_name: string,
    on: HookActionTargets,
  ): Promise<Emission> {
    const result = isEmission(request) ? request : await emissionOf(request, event, hook_name);
    const settled: Emission = { ...result, injections: [] };
    if (result.action !== "deny") settled.injections = await this.#admit(result.injections, on);
    on.shown.push(...result.user_messages);
    for (const injection of settled.injections) {
      if (!injection.ephemeral) await on.context?.addMessage(storedInjection(injection, event, on.clock));
    }
    return result.action === "ask_user" && result.approval
      ? await settle(settled, result.approval, event, on)
      : settled;
  }

  async #admit(injections: readonly Injection[], on: HookActionTargets): Promise<Injection[]> {
    const clean = injections.map((injection) => ({ ...injection, text: sanitizeText(injection.text) }))
      .filter((injection) => injection.text !== "");
    for (const injection of clean) await checkSize(injection, on);
    const admitted: Injection[] = [];
    for (const injection of clean) if (await this.#count(injection, on)) admitted.push(injection);
    return admitted;
  }

  async #count(injection: Injection, on: HookActionTargets): Promise<boolean> {
    const tokens = Math.floor([...injection.text].length / 4);
    const actual = this.#tokens + tokens;
    const limit = on.budget === undefined ? DOCUMENTED.budget : on.budget;
    if (limit !== null && actual > limit) {
      await violation("injection_budget", injection, limit, actual, on);
      if (typeof on.budget === "number" && on.budget_mode === "drop") return false;
      if (typeof on.budget === "number" && on.budget_mode === "error") {
        throw new RangeError(`Context injection exceeds ${limit} tokens of this turn`);
      }
    }
    this.#tokens = actual;
    return true;
  }
}

async function checkSize(injection: Injection, on: HookActionTargets): Promise<void> {
  const actual = [...injection.text].length;
  const limit = on.size_limit === undefined ? DOCUMENTED.size : on.size_limit;
  if (limit === null || actual <= limit) return;
  await violation("injection_size", injection, limit, actual, on);
  if (on.size_limit !== undefined) throw new RangeError(`Context injection exceeds ${limit} characters`);
}

async function violation(
  kind: string,
  { hook_name }: Injection,
  limit: number,
  actual: number,
  on: HookActionTargets,
) {
  await on.hooks.emit("policy:violation", { kind, hook_name, limit, actual });
}

function storedInjection({ role, text: content, hook_name }: Injection, event: string, clock: Clock) {
  const timestamp = new Date(clock.now()).toISOString();
  return { role, content, metadata: { source: "hook", hook_name, event, timestamp } };
}

function isEmission(value: Emission | JsonObject): value is Emission {
  return Array.isArray(value.injections) && Array.isArray(value.user_messages);
}

/** Returns the emission of a plain hook result. */
async function emissionOf(result: JsonObject, event: string, hook_name: string): Promise<Emission> {
  if (Object.keys(result).length === 0) return noopEmission({});
  const handler = {
    name: hook_name,
    handler: () => result,
    observes: false,
    fail_closed: true,
    timeout_ms: 0,
  };
  return await runChain([handler], event, {});
}

async function settle(
  emission: Emission,
  question: ApprovalQuestion,
  event: string,
  on: HookActionTargets,
): Promise<Emission> {
  const facts = { ...callOf(emission.data), event, prompt: question.prompt, hook_name: question.hook_name };
  await on.hooks.emit("approval:required", {
    ...facts,
    options: question.options,
    default: question.default,
  });
  const { allowed, reason } = await decide(question, on);
  await on.hooks.emit(allowed ? "approval:granted" : "approval:denied", { ...facts, reason });
  const settled = { ...emission, approval: null, approval_prompt: null };
  return allowed ? { ...settled, action: "continue" } : { ...settled, action: "deny", reason };
}

function callOf({ tool_name, tool_call_id, tool_input }: JsonObject): JsonObject {
  return tool_name === undefined ? {} : { tool_name, tool_call_id, tool_input };
}

async function decide(
  question: ApprovalQuestion,
  { approval, clock }: HookActionTargets,
): Promise<{ allowed: boolean; reason: string | null }> {
  if (!approval) return { allowed: false, reason: "No approval system available" };
  const prompt = [...question.prompt].length > 200
    ? `${[...question.prompt].slice(0, 200).join("")}...`
    : question.prompt;
  const LATE = "no answer in time";
  const wait_ms = (question.timeout ?? 300) * 1000; // the server's default timeout
  try {
    const answer = await withinTime(approval.requestApproval(question), wait_ms, LATE, clock);
    if (allows(answer, question)) return { allowed: true, reason: null };
    return { allowed: false, reason: `User denied: ${prompt}` };
  } catch (error) {
    const late = errorName(error) === ApprovalTimeoutError.name ||
      (error instanceof Error && error.message === LATE);
    if (!late) return { allowed: false, reason: `Approval failed - denied: ${prompt}` };
    if (question.default === "allow") return { allowed: true, reason: null };
    return { allowed: false, reason: `Approval timeout - denied by default: ${prompt}` };
  }
}

const ALLOWING: ReadonlySet<string> = new Set(["allow", "allow once", "allow always"]);

/** Returns whether an answer allows: by its option's `effect`, or by one of three allowing labels. */
function allows(answer: string, { options }: ApprovalQuestion): boolean {
  for (const option of options) {
    if (typeof option === "object" && option.label === answer) return option.effect === "allow";
  }
  return ALLOWING.has(answer.toLowerCase());
}
