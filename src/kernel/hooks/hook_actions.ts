/**
 * Executes the actions of an emission: injects texts, emits user messages, asks for approval, and records the
 * gate's decision in the turn. Acts once on each emission, and on the hooks' verdict even if the loop changed
 * the object.
 */
import { admitInjections, afterApproval, injectedMessage } from "../../sdk/hook_outcomes.ts";
import { RESERVED_EVENTS } from "../../sdk/event_table.ts";
import type { Emission, Injection, JsonObject } from "../../sdk/types.ts";
import { type ApprovalSubject, askForApproval } from "./ask_for_approval.ts";
import type { SessionContext } from "../session/session_context.ts";
import type { Mounts } from "../mounting/mounts.ts";
import type { GateSubject, TurnTracker } from "../session/turn_tracker.ts";

/** Executes what the hooks of a session ask for. */
export class HookActions {
  readonly #session: SessionContext;
  readonly #tracker: TurnTracker;
  readonly #mounts: Mounts;
  /** Tokens that hooks injected in this turn. */
  #injected_tokens = 0;
  /** Emission of a gate → its outcome, so that applying an emission twice acts once. */
  #outcomes: WeakMap<Emission, Promise<Emission>> | null = null;

  constructor(session: SessionContext, tracker: TurnTracker, mounts: Mounts) {
    this.#session = session;
    this.#tracker = tracker;
    this.#mounts = mounts;
  }

  /** Sets the counter of injected tokens to zero. */
  resetTurn(): void {
    this.#injected_tokens = 0;
  }

  /** Executes what an emission asks for; resolves to it, with `ask_user` replaced by continue or deny. */
  apply(emission: Emission, event: string, hook_name?: string): Promise<Emission> {
    const tracked = this.#tracker.trackedOf(emission);
    if (tracked === undefined) return this.#process(emission, undefined, event, hook_name);
    const outcomes = this.#outcomes ??= new WeakMap();
    let outcome = outcomes.get(emission);
    if (!outcome) {
      outcome = this.#process(tracked.verdict, tracked.subject, event, hook_name);
      outcomes.set(emission, outcome);
    }
    return outcome;
  }

  async #process(
    result: Emission,
    subject: GateSubject | undefined,
    event: string,
    hook_name: string | undefined,
  ): Promise<Emission> {
    const injections = await this.#inject(result, event, hook_name);
    let settled: Emission = { ...result, injections };
    for (const { message, level, source } of result.user_messages ?? []) {
      await this.#session.hooks.emit("user:notification", { message, level, source });
    }
    if (result.action === "ask_user" && result.approval) {
      const asked = this.#approvalSubject(event, result, subject);
      settled = afterApproval(settled, await askForApproval(this.#session, result.approval, asked));
    }
    if (subject) this.#settleGate(subject, settled);
    return settled;
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
    const { hooks, plan, host } = this.#session;
    const { admitted, tokens, violations, refusal } = admitInjections(
      { action, injections: named },
      this.#injected_tokens,
      plan.session,
    );
    this.#injected_tokens = tokens;
    for (const violation of violations) await hooks.emit("policy:violation", violation);
    if (refusal) throw refusal;
    const now = host.clock.now();
    const context = this.#mounts.turn_context ?? this.#mounts.context;
    for (const injection of admitted) {
      if (!injection.ephemeral) await context?.inject(injectedMessage(injection, event, now));
    }
    return admitted;
  }

  #settleGate(subject: GateSubject, settled: Emission): void {
    if ("call" in subject) {
      const { call, pre } = subject;
      // if its `tool:pre` was emitted again meanwhile, the later emission decides
      if (call.gate !== "pending" || call.pre !== pre) return;
      call.gate = settled.action === "deny" ? "denied" : "allowed";
      call.reason = settled.reason ?? "";
      return;
    }
    subject.gate.processed = true;
    const { turn } = this.#session;
    if (turn === null || settled.action !== "deny") return;
    if (subject.gate.event === "prompt:submit") turn.prompt_denied = settled.reason;
    else turn.request_denied = settled.reason;
  }

  #approvalSubject(event: string, { data }: Emission, subject: GateSubject | undefined): ApprovalSubject {
    if (!subject || !("call" in subject)) {
      const no_call = { tool_name: null, tool_call_id: null, tool_input: null, risk_level: "low" };
      return { event, ...no_call, data, may_be_in_call: !subject && this.#mayBeInCall(event, data) };
    }
    const { call, name, input } = subject;
    const tool = this.#mounts.toolNamed(name);
    const call_fields = { tool_name: name, tool_call_id: call.id, tool_input: input };
    return {
      event,
      ...call_fields,
      risk_level: tool?.risk ?? "low",
      data,
      may_be_in_call: !call.is_requested,
      ...(tool?.preview ? { preview: async () => await tool.preview!(input) } : {}),
    };
  }

  /** Returns whether a tool may have emitted an event, or the kernel for a call that a tool makes. */
  #mayBeInCall(event: string, { tool_call_id }: JsonObject): boolean {
    if (!RESERVED_EVENTS.has(event)) return true;
    const call = this.#session.turn?.calls.find(({ id }) => id === tool_call_id);
    return call !== undefined && !call.is_requested;
  }
}
