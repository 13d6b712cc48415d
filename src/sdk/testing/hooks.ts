/**
 * Hooks of modules under test: a complete registry that records what was emitted, and what an emission
 * leads to: injections, messages, approvals.
 */
import type { Clock, ContextManager } from "../contracts.ts";
import { HandlerList, readRegistration } from "../handler_list.ts";
import { noopEmission, runChain } from "../hook_chain.ts";
import {
  type ApprovalQuestion,
  type Disposer,
  type Emission,
  type HookHandler,
  type HookOptions,
  type HookRegistry,
  HookRegistryBase,
  type UserMessage,
} from "../hooks.ts";
import { isObject, type JsonObject, toPlainObject } from "../json.ts";
import { withSnakeCase } from "../snake_case_aliases.ts";
import { FakeClock, withinTime } from "./clocks.ts";
import { errorName } from "../errors.ts";
import {
  admitInjections,
  afterApproval,
  type ApprovalOutcome,
  approvalOutcome,
  injectedMessage,
  type InjectionLimits,
} from "../hook_actions.ts";
import { ApprovalTimeoutError, type FakeApproval } from "./mocks.ts";

/** A recorded failure of a handler. */
export interface HandlerFailure {
  /** The event. */
  event: string;
  /** Name of the handler. */
  handler: string;
  /** The error. */
  error: unknown;
}

/**
 * A hook registry that records `[event, data]` of every event. As in the log, an event is recorded after its
 * handlers ran, with their changes and without the default fields.
 */
export class EventRecorder extends HookRegistryBase implements HookRegistry {
  /** All emitted events, in order. */
  readonly events: [event: string, data: JsonObject][] = [];
  /** Failures and timeouts of handlers. */
  readonly failures: HandlerFailure[] = [];
  readonly #clock: Clock;
  readonly #handlers = new HandlerList();
  #defaults: JsonObject = {};

  /**
   * Creates a registry with this clock. The default clock never advances by itself, so that no handler times
   * out.
   */
  constructor(clock: Clock = new FakeClock()) {
    super();
    this.#clock = clock;
  }

  register(event: string, handler: HookHandler, options?: number | HookOptions, name?: string): Disposer {
    return this.#handlers.add(readRegistration(event, handler, options, name));
  }

  unregister(name: string): void {
    this.#handlers.remove(name);
  }

  /** Runs the handlers, records the event, and resolves to the emission. */
  async emit(event: string, input: JsonObject | null = null): Promise<Emission> {
    const data = input ?? {};
    const handlers = this.#handlers.of(event);
    if (handlers.length === 0) {
      this.record(event, data);
      return noopEmission(data);
    }
    const added = { ...this.#defaults, timestamp: new Date(this.#clock.now()).toISOString() };
    const payload = toPlainObject({ ...added, ...data, timestamp: added.timestamp });
    const emission = await runChain(handlers, event, payload, {
      deadline: (pending, handler) =>
        withinTime(pending, handler.timeout_ms, `no answer within ${handler.timeout_ms} ms`, this.#clock),
      onError: (handler, error) => this.failures.push({ event, handler: handler.name, error }),
    });
    const own = Object.entries(emission.data).filter(([key]) =>
      !Object.hasOwn(added, key) || Object.hasOwn(data, key)
    );
    this.record(event, Object.fromEntries(own));
    return emission;
  }

  async emitAndCollect(event: string, input: JsonObject | null = null, timeout_s = 1): Promise<JsonObject[]> {
    const collected: JsonObject[] = [];
    for (const { name, handler } of this.#handlers.of(event)) {
      try {
        const answer = Promise.resolve(handler(event, toPlainObject(input)));
        const result = await withinTime(
          answer,
          timeout_s * 1000,
          `no answer within ${timeout_s} s`,
          this.#clock,
        );
        if (isObject(result) && isObject(result.data)) collected.push(toPlainObject(result.data));
      } catch (error) {
        this.failures.push({ event, handler: name, error });
      }
    }
    this.record(event, input ?? {});
    return collected;
  }

  setDefaultFields(fields: JsonObject): void {
    this.#defaults = { ...fields };
  }

  listHandlers(event?: string): Record<string, string[]> {
    return this.#handlers.names(event);
  }

  /** Records an event without running a handler. */
  record(event: string, data: JsonObject | null = {}): void {
    this.events.push([event, toPlainObject(data)]);
  }

  /** Returns the recorded events as `[event, data]`; with an argument, only those of that event. */
  getEvents(event?: string): [event: string, data: JsonObject][] {
    return event === undefined ? [...this.events] : this.events.filter(([name]) => name === event);
  }

  /** Removes the recorded events; handlers stay. */
  clear(): void {
    this.events.length = 0;
    this.failures.length = 0;
  }
}

withSnakeCase(EventRecorder);

/** Objects that the actions of an emission change, and the limits of injections. */
interface HookActionTargets extends InjectionLimits {
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
