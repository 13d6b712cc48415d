/**
 * The steps of a turn that emit: its start and its end, the gate of a request to a model, and of a tool call
 * the gate, the decision and the report. Each of these events is emitted here, once, and those of a model
 * call in `model_call.ts`; a loop calls, and need not emit.
 *
 * | a loop that emits itself …                           | effect                                           |
 * |------------------------------------------------------|--------------------------------------------------|
 * | `provider:request`                                   | is the gate of its next model call               |
 * | `provider:response`, `provider:error`, `content_block:*`, `llm:stream_aborted` of a mounted model | nothing: its call is reported where it was made |
 * | the same of a model of its own                       | is emitted as the loop states it; its usage counts |
 * | `tool:pre`                                           | is the gate of that call                         |
 * | `tool:post`, `tool:error` of a call that a tool runs | nothing: it is reported where it ran             |
 * | `tool:post`, `tool:error` of any other call          | is emitted as the loop states it                 |
 * | `orchestrator:complete`                              | is its statement of how it ended                 |
 * | `cancel:completed`                                   | states that it was cancelled                     |
 * | any other of the start and the end of the turn       | nothing: it was emitted, or will be              |
 */
import { errorCode, errorMessage, PreampError } from "../sdk/errors.ts";
import { RESERVED_EVENTS } from "../sdk/event_table.ts";
import { isNoop, noopEmission } from "../sdk/hook_chain.ts";
import { admitInjections, afterApproval, injectedMessage } from "../sdk/hook_outcomes.ts";
import { isObject, type JsonObject, toFrozenObject, toPlain } from "../sdk/json.ts";
import { usageOfFailure } from "../sdk/llm_errors.ts";
import { readToolInput } from "../sdk/loop/tool_input_reading.ts";
import { previewOf } from "../sdk/loop/assistant_message.ts";
import { cancelledCallText, modelContent } from "../sdk/tools.ts";
import { Usage } from "../sdk/messages.ts";
import type { ApprovalQuestion, Emission, Injection, Message, Prompt } from "../sdk/types.ts";
import { type ApprovalSubject, askForApproval } from "./approval.ts";
import type { Emitter, Hooks } from "./hooks.ts";
import type { Mounts } from "./mounts.ts";
import type { Outcome } from "./outcome.ts";
import type { SessionContext } from "./session_context.ts";
import type { Call, CallSteps, Decision, ModelRequest, Turn } from "./turn.ts";

/** Events of the start and the end of a turn. */
const TURN_STEPS = [
  ...["execution:start", "prompt:submit", "prompt:complete", "cancel:requested", "cancel:completed"],
  ...["execution:end", "orchestrator:complete"],
];

/** Events of a model call. */
const MODEL_STEPS = [
  ...["provider:response", "provider:error", "provider:retry", "llm:stream_aborted"],
  ...["content_block:start", "content_block:delta", "content_block:end"],
];

/** Those that end it. */
const MODEL_ENDS: ReadonlySet<string> = new Set(["provider:response", "provider:error"]);

/** Reason of a denial that states none. */
const DENIED = "Denied by hook";

/** Status of an outcome that is neither completed nor incomplete. */
const STATUS: Partial<Record<Outcome["status"], string>> = { cancelled: "cancelled", failed: "error" };

export class Steps implements CallSteps {
  readonly #session: SessionContext;
  readonly #hooks: Hooks;
  readonly #mounts: Mounts;
  /** Tokens that hooks injected in this turn. */
  #injected_tokens = 0;
  /** Copy of a gate's emission that a loop received, and can change → its decision, on demand. */
  readonly #given = new WeakMap<Emission, () => Promise<Decision>>();
  /** Emission of a gate → its outcome, so that settling an emission twice acts once. */
  readonly #settled = new WeakMap<Emission, Promise<Emission>>();

  constructor(session: SessionContext, hooks: Hooks, mounts: Mounts) {
    this.#session = session;
    this.#hooks = hooks;
    this.#mounts = mounts;
    hooks.take(["tool:pre", "tool:post", "tool:error"], this.#callEvent.bind(this));
    hooks.take(TURN_STEPS, this.#turnEvent.bind(this));
    hooks.take(["provider:request"], this.#requestEvent.bind(this));
    hooks.take(MODEL_STEPS, this.#modelEvent.bind(this));
  }

  /** Sets the counter of injected tokens to zero. */
  resetTurn(): void {
    this.#injected_tokens = 0;
  }

  viewFor(turn: Turn, provider: string, max_reached: boolean): Promise<unknown> {
    return this.#decideRequest(turn, turn.requestOf(max_reached ? { provider, max_reached } : { provider }));
  }

  async callOf(turn: Turn, provider: string): Promise<ModelRequest> {
    const request = turn.requestOf({ provider });
    request.called = true; // at once: another call at the same time is another request
    const context = this.#mounts.turn_context;
    if (context?.has_open_calls) await context.closeCalls();
    await this.#decideRequest(turn, request);
    if (turn.denied !== null) throw new PreampError("denied", turn.denied);
    return request;
  }

  #requestGate(turn: Turn, request: ModelRequest): Promise<Emission> {
    return request.gate ??= this.#hooks.emitGate("provider:request", request.data, ({ action, reason }) => {
      if (action === "deny") turn.request_denied = reason ?? DENIED;
    });
  }

  /** @param keeps Whether its ephemeral injections are for the next view; else the loop has them. */
  #decideRequest(turn: Turn, request: ModelRequest, keeps = true): Promise<Decision> {
    return request.decision ??= this.#requestGate(turn, request).then((gate) =>
      isNoop(gate) ? { allowed: true, reason: "", emission: gate } : this.#decideAsked(turn, gate, keeps)
    );
  }

  async #decideAsked(turn: Turn, gate: Emission, keeps: boolean): Promise<Decision> {
    const decision = await this.#decide(gate, "provider:request", keeps);
    if (!decision.allowed) turn.request_denied = decision.reason;
    return decision;
  }

  pre(call: Call): Promise<Emission> {
    return call.gate ??= this.#pre(call);
  }

  async #pre(call: Call): Promise<Emission> {
    const tool = this.#mounts.toolNamed(call.name);
    const { risk = "low", requires_approval = false } = tool ?? {};
    // before the gate, so that hooks, approvals and the log have the input with which the tool is called
    const tool_input = readToolInput(tool?.input_schema, call.requested);
    const data = { ...fieldsOf(call), tool_input, risk, requires_approval };
    return await this.#hooks.emitGate("tool:pre", data, (emission) => {
      let input = isObject(emission.data.tool_input) ? emission.data.tool_input : call.requested;
      if (emission.modified) {
        input = readToolInput(tool?.input_schema, input);
        emission.data = { ...emission.data, tool_input: input };
      }
      call.input = toFrozenObject(input); // so that no module changes it after the gate
      if (emission.action === "deny") call.ended ??= { denied: emission.reason ?? DENIED };
    });
  }

  /** @param keeps Whether its ephemeral injections are for the next request; else the loop has them. */
  decide(call: Call, keeps = true): Promise<Decision> {
    return call.decision ??= this.pre(call).then((pre) => this.#decide(pre, "tool:pre", keeps, call));
  }

  async refuse(call: Call): Promise<void> {
    const pre = await this.pre(call);
    const action = pre.action === "ask_user" ? "inject_context" : pre.action;
    await (call.decision ??= this.#decide({ ...pre, action, approval: null }, "tool:pre", true, call));
  }

  async #decide(gate: Emission, event: string, keeps: boolean, call?: Call): Promise<Decision> {
    const emission = isNoop(gate) ? gate : await this.#carryOut(gate, event, { call });
    if (keeps) this.#keep(emission.injections);
    const allowed = emission.action !== "deny";
    const reason = allowed ? "" : emission.reason ?? DENIED;
    if (!allowed && call) call.ended ??= { denied: reason };
    return { allowed, reason, emission };
  }

  async report(call: Call, event: "tool:post" | "tool:error", facts: JsonObject): Promise<Emission> {
    const data = { ...fieldsOf(call), tool_input: call.input, ...facts };
    const emission = await this.#hooks.emit(event, data);
    if (!isNoop(emission)) this.#keep((await this.#carryOut(emission, event)).injections);
    return emission;
  }

  /** Keeps ephemeral injections for the next request. */
  #keep(injections: readonly Injection[]): void {
    const { turn } = this.#session;
    for (const injection of injections) if (injection.ephemeral) turn?.pending.push(injection);
  }

  /** Starts the turn; resolves to the prompt for the loop, or to null when it is denied. */
  async begin(turn: Turn): Promise<Prompt | null> {
    const { prompt } = turn;
    if (!turn.seen.has("execution:start")) await this.#hooks.emit("execution:start", { prompt });
    const emitted = await this.#hooks.emit("prompt:submit", { prompt });
    const { action, reason, injections } = isNoop(emitted)
      ? emitted
      : await this.#carryOut(emitted, "prompt:submit");
    this.#keep(injections);
    if (action === "deny") turn.prompt_denied = reason ?? DENIED;
    else if (emitted.modified) turn.prompt = emitted.data.prompt as Prompt; // a hook may change the prompt
    return action === "deny" ? null : turn.prompt;
  }

  /** Emits how the turn ended, except for what was emitted before an interruption. */
  async end(turn: Turn, { status }: Outcome, response: string): Promise<void> {
    const { seen, stated } = turn;
    const emit = async (event: string, data: JsonObject) => {
      if (!seen.has(event)) await this.#hooks.emit(event, data);
    };
    const is_answer = status === "completed" || status === "incomplete" && turn.limit === null;
    if (is_answer && response !== "") await emit("prompt:complete", previewOf(response));
    if (status === "cancelled" && !seen.has("cancel:completed")) await this.#endCancelled();
    await emit("execution:end", { response, status: STATUS[status] ?? "completed" });
    await emit("orchestrator:complete", {
      orchestrator: stated.orchestrator ?? this.#session.plan.session.orchestrator.module,
      turn_count: stated.turn_count ?? turn.answered,
      status: STATUS[status] ?? stated.status ?? (status === "completed" ? "success" : "incomplete"),
    });
    turn.is_over = true;
  }

  /** Also of a turn whose provider reported its call as aborted: that cancels the turn. */
  async #endCancelled(): Promise<void> {
    const session = this.#session;
    if (!session.cancellation.is_cancelled) await session.cancel("immediate");
    await (session.cancel_emission ?? session.emitCancelRequested());
    await this.#hooks.emit("cancel:completed", { was_immediate: session.cancellation.is_immediate });
  }

  /** Takes an event of the start or the end of the turn that a loop emits: it is emitted by the kernel. */
  #turnEvent(event: string, data: JsonObject, emitter: Emitter): Promise<Emission> {
    const { turn } = this.#session;
    if (turn === null) return this.#hooks.emitStated(event, data, emitter);
    if (event === "orchestrator:complete") turn.stated = { ...data };
    if (event === "cancel:completed") turn.stated = { ...turn.stated, status: "cancelled" };
    return Promise.resolve(noopEmission(data));
  }

  /** Takes the request that a loop emits: its next model call is for it. */
  async #requestEvent(event: string, data: JsonObject, emitter: Emitter): Promise<Emission> {
    const { turn } = this.#session;
    if (turn === null) return await this.#hooks.emitStated(event, data, emitter);
    const request = turn.requestOf(data);
    const gate = await this.#requestGate(turn, request);
    return this.#give(gate, () => this.#decideRequest(turn, request, false));
  }

  /** Takes an event of a model call that a module emits. */
  async #modelEvent(event: string, data: JsonObject, emitter: Emitter): Promise<Emission> {
    const { turn, run_limits } = this.#session;
    const is_of_loop = !emitter.reserved.has("provider:request"); // others may emit two of these events
    if (turn !== null && is_of_loop && event !== "provider:retry") {
      if (this.#isReported(turn, data)) return noopEmission(data);
      if (turn.request && MODEL_ENDS.has(event)) turn.request.called = true;
    }
    if (turn === null || (data.usage ?? null) === null) {
      return await this.#hooks.emitStated(event, data, emitter);
    }
    const usage = usageOfFailure(data) ?? Usage({});
    run_limits.countPart(usage);
    return await this.#hooks.emitStated(event, { ...data, usage: toPlain(usage) }, emitter);
  }

  /** Returns whether an event is of a mounted model, whose call the kernel reports. */
  #isReported({ request }: Turn, { provider }: JsonObject): boolean {
    return typeof provider === "string"
      ? this.#mounts.providers.get(provider) !== undefined
      : request?.called === true;
  }

  /** Returns a copy of a gate's emission for a loop, which may settle it. */
  #give(emission: Emission, decide: () => Promise<Decision>): Emission {
    const given = copyOf(emission);
    this.#given.set(given, decide);
    return given;
  }

  /** Takes an event of a tool call that a loop emits. */
  async #callEvent(event: string, data: JsonObject, emitter: Emitter): Promise<Emission> {
    const { turn, host } = this.#session;
    const id = typeof data.tool_call_id === "string" ? data.tool_call_id : undefined;
    const name = typeof data.tool_name === "string" ? data.tool_name : "";
    if (turn === null || event !== "tool:pre") {
      return turn?.ranCall(id, name)
        ? noopEmission(data)
        : await this.#hooks.emitStated(event, data, emitter);
    }
    const { tool_input, parallel_group_id } = data;
    const call = turn.asked(id, name, isObject(tool_input) ? tool_input : null, () => host.newId("call"));
    if (typeof turn.recovered?.get(call.id) === "object") return noopEmission(data); // it is in the log
    if (typeof parallel_group_id === "string" && call.gate === null) call.facts = { parallel_group_id };
    return this.#give(await this.pre(call), () => this.decide(call, false));
  }

  settle(emission: Emission, event: string, hook_name?: string): Promise<Emission> {
    const known = this.#settled.get(emission);
    if (known) return known;
    const decide = this.#given.get(emission);
    if (!decide) return this.#carryOut(emission, event, { hook_name });
    const settled = decide().then(({ emission: decided }) => ({ ...decided }));
    this.#settled.set(emission, settled);
    return settled;
  }

  async #carryOut(
    result: Emission,
    event: string,
    { call, hook_name }: { call?: Call | undefined; hook_name?: string | undefined } = {},
  ): Promise<Emission> {
    const injections = await this.#inject(result, event, hook_name);
    const settled: Emission = { ...result, injections };
    for (const { message, level, source } of result.user_messages ?? []) {
      await this.#hooks.emit("user:notification", { message, level, source });
    }
    if (result.action !== "ask_user" || !result.approval) return settled;
    const subject = call ? this.#callSubject(event, result, call) : this.#subject(event, result);
    return afterApproval(settled, await askForApproval(this.#session, result.approval, subject));
  }

  /**
   * Stores injections that are not ephemeral; resolves to the admitted injections with sanitised texts.
   * @throws {PreampError} `denied` when one is longer than `injection_size_limit`, or over a budget with mode
   * `error`.
   */
  async #inject(
    { action, injections }: Emission,
    event: string,
    hook_name: string | undefined,
  ): Promise<Injection[]> {
    if (injections.length === 0) return [];
    const named = hook_name ? injections.map((injection) => ({ ...injection, hook_name })) : injections;
    const { plan, host } = this.#session;
    const { admitted, tokens, violations, refusal } = admitInjections(
      { action, injections: named },
      this.#injected_tokens,
      plan.session,
    );
    this.#injected_tokens = tokens;
    for (const violation of violations) await this.#hooks.emit("policy:violation", violation);
    if (refusal) throw refusal;
    const now = host.clock.now();
    const context = this.#mounts.turn_context ?? this.#mounts.context;
    for (const injection of admitted) {
      if (!injection.ephemeral) await context?.inject(injectedMessage(injection, event, now));
    }
    return admitted;
  }

  #callSubject(event: string, { data }: Emission, call: Call): ApprovalSubject {
    const tool = this.#mounts.toolNamed(call.name);
    const { id: tool_call_id, name: tool_name, input: tool_input } = call;
    return {
      event,
      tool_name,
      tool_call_id,
      tool_input,
      risk_level: tool?.risk ?? "low",
      data,
      may_be_in_call: !call.is_requested,
      ...(tool?.preview ? { preview: async () => await tool.preview!(tool_input) } : {}),
    };
  }

  /** A tool may have emitted the event, or the kernel for a call that a tool makes: unless it is reserved. */
  #subject(event: string, { data }: Emission): ApprovalSubject {
    const id = data.tool_call_id;
    const may_be_in_call = !RESERVED_EVENTS.has(event) ||
      this.#session.turn?.calls.find((call) => call.id === id)?.is_requested === false;
    return {
      event,
      tool_name: null,
      tool_call_id: null,
      tool_input: null,
      risk_level: "low",
      data,
      may_be_in_call,
    };
  }

  resultContentFor(id: string, name: string): Message["content"] {
    const { turn, cancellation } = this.#session;
    const ended = turn?.calls.find((call) => call.id === id)?.ended ?? null;
    if (ended === null) {
      return cancellation.is_immediate ? cancelledCallText(name) : `Error: Tool '${name}' was not executed`;
    }
    if ("denied" in ended) return `Denied by hook: ${ended.denied}`;
    if ("result" in ended) return modelContent(ended.result);
    if (errorCode(ended.error) === "cancelled") return cancelledCallText(name);
    return `${ended.refused ? "Error" : "Error executing tool"}: ${errorMessage(ended.error)}`;
  }
}

/** Returns a copy of an emission, so that a loop cannot change what is decided. */
function copyOf(emission: Emission): Emission {
  const { approval, injections, user_messages } = emission;
  return {
    ...emission,
    approval: approval && toPlain(approval) as unknown as ApprovalQuestion, // a copy
    injections: injections.map((injection) => ({ ...injection })),
    user_messages: user_messages.map((message) => ({ ...message })),
  };
}

function fieldsOf({ name: tool_name, id: tool_call_id, requested: tool_input, facts }: Call): JsonObject {
  return { tool_name, tool_call_id, tool_input, ...facts };
}
