/**
 * Implements the kernel's `Host` for every session of a run, its sub-agents included: entries go to the run's
 * log, questions to its approvals, warnings to the operator.
 */
import {
  type ApprovalDecision,
  type ApprovalRequest,
  type DraftEntry,
  draftEntry,
  type Host,
} from "../../kernel/host.ts";
import type { Session } from "../../kernel/session/session.ts";
import { timestamp } from "../../sdk/timestamp.ts";
import { errorMessage } from "../../sdk/errors.ts";
import type { JsonObject } from "../../sdk/json.ts";
import type { ApprovalQueue } from "./approvals.ts";
import { MAX_CONSOLE_CHARS } from "../../sdk/console.ts";
import type { ModuleReporter, RunnablePlan, RunsDeps, SecretSink } from "../ports.ts";
import { recordContextUsage, type RunProjection } from "./run_projection.ts";
import { knownApproval } from "../scheduler/crash_state.ts";
import { statusFrom } from "../session_status.ts";
import type { RunLog } from "./run_log.ts";
import type { SavedSession } from "../storage/session_store.ts";
import type { Caller, CreateOptions } from "../types.ts";

/** The options of a run that its hosts read. */
export interface HostedRun {
  readonly deps: RunsDeps;
  readonly caller: Caller;
  readonly createOptions: CreateOptions;
  readonly run_id: string;
  readonly session_id: string;
  readonly saved: SavedSession | null;
  /** Set when the run is recovered from a crashed process. */
  readonly orphan?: object;
}

/** Collaborators of {@link SessionHosts}. */
export interface SessionHostsDeps {
  readonly options: HostedRun;
  readonly log: RunLog;
  readonly approvalQueue: ApprovalQueue;
  readonly projection: RunProjection;
  readonly secrets: SecretSink;
  /** Returns the run's own session, which may be replaced before it begins. */
  session(): Session;
  /** Called when the run's own session is initialised: the run exists. */
  accept(): Promise<void>;
  /** Called when the run's status or approvals may have changed. */
  notify(): void;
}

/** Makes the hosts of one run's sessions. */
export class SessionHosts {
  readonly #deps: SessionHostsDeps;
  #context_recorded: Promise<void> | void = undefined;
  #closed = false;

  constructor(deps: SessionHostsDeps) {
    this.#deps = deps;
  }

  /** Ignores all further entries. */
  close(): void {
    this.#closed = true;
  }

  /** Returns the host of a session: the run's own, or a sub-agent's. */
  hostOf(ready: RunnablePlan, session_id: string): Host {
    const { options, secrets, accept } = this.#deps;
    const { deps } = options;
    const started_at = session_id === options.session_id
      ? options.saved?.object.created_at ?? timestamp(deps.clock.now())
      : timestamp(deps.clock.now());
    return {
      clock: deps.clock,
      newId: deps.newId,
      open: (spec) => ready.open(spec, secrets, this.reporterOf(session_id)),
      record: (entry) => this.record(entry),
      ask: (request, signal) => this.#ask(request, signal),
      ...(options.orphan
        ? {
          knownApproval: (question, session_id) =>
            knownApproval(this.#deps.projection.approvals, question, session_id),
        }
        : {}),
      rememberedApproval: (question, session_id) => this.#deps.projection.answerTo(question, session_id),
      sessionStatus: (id) => {
        const { projection } = this.#deps;
        const session = { id, created_at: started_at };
        const last_activity = timestamp(deps.clock.now());
        return statusFrom(session, projection.countersOf(id), projection.historyOf(id).length, {
          last_activity,
        });
      },
      accept,
      redactEvent: (event, data) => secrets.redactEvent(event, data),
      warn: (code, message, facts) => this.warn(code, message, { session_id, ...facts }),
    };
  }

  /** Returns the receiver of warnings and console lines of a session's modules. */
  reporterOf(session_id: string): ModuleReporter {
    return {
      warn: (code, message) => this.warn(code, message, { session_id }),
      console: (level, text, module) => {
        const { options: { deps, run_id }, secrets } = this.#deps;
        // a truncated line can end in the middle of a secret
        const whole = text.length < MAX_CONSOLE_CHARS
          ? text
          : text.slice(0, text.length - secrets.held(text));
        const line = secrets.redactValues({ module, text: whole });
        deps.log(level, "module_console", { run_id, session_id, ...line });
      },
    };
  }

  /** Records an entry of a session and updates the run's status. */
  record(entry: DraftEntry): Promise<void> | void {
    const { approvalQueue, log, options } = this.#deps;
    if (this.#closed) return; // for example from a module's timer that fires after the end
    if (entry.event === "approval:required") approvalQueue.expect(String(entry.data.approval_id));
    const stored = log.record(entry);
    switch (entry.event) {
      case "provider:response":
        if (entry.session_id === options.session_id) this.#recordContext();
        return stored;
      case "approval:granted":
      case "approval:denied":
        return this.#resume(stored);
      default:
        return stored;
    }
  }

  #recordContext(): void {
    const { projection } = this.#deps;
    this.#context_recorded = recordContextUsage(this.#deps.session(), projection, (error) => {
      this.warn("context_status_failed", errorMessage(error));
    });
  }

  /** Settles when the status of a sandboxed context manager is recorded. */
  get contextRecorded(): Promise<void> | void {
    return this.#context_recorded;
  }

  async #resume(stored: Promise<void> | void): Promise<void> {
    await stored;
    this.#deps.notify();
    const waits = this.#deps.projection.approvals.some((approval) => approval.status === "pending");
    if (!waits && this.#deps.projection.status === "awaiting_approval") {
      await this.status({ status: "running" });
    }
  }

  /** Records `run:status`. */
  async status(data: JsonObject): Promise<void> {
    const { log, options, session, notify } = this.#deps;
    await log.record(draftEntry("run:status", options.session_id, data, session().turn_fields));
    notify();
  }

  async #ask(request: ApprovalRequest, signal: AbortSignal): Promise<ApprovalDecision> {
    return await this.#deps.approvalQueue.ask(request, signal, () => {
      const waiting = this.#deps.projection.status === "awaiting_approval"
        ? Promise.resolve()
        : this.status({ status: "awaiting_approval" });
      waiting.then(() => this.#askCallback(request, signal)).catch((error) =>
        this.warn("ask_failed", errorMessage(error))
      );
    });
  }

  /** Asks through `createOptions.ask`, such as the terminal. Over HTTP the answer comes by `decide`. */
  async #askCallback(request: ApprovalRequest, signal: AbortSignal): Promise<void> {
    const { ask } = this.#deps.options.createOptions;
    if (!ask) return;
    const approval = this.#deps.projection.approvals.find((known) => known.id === request.approval_id);
    if (!approval) return;
    const answer = await ask(approval, signal);
    // no answer possible: the default applies at once
    if (answer === null) return await this.#deps.approvalQueue.expire(request);
    try {
      await this.#deps.approvalQueue.decide(request.approval_id, {
        decision: answer.decision,
        reason: answer.reason ?? null,
        decided_by: this.#deps.options.caller.name,
      });
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  /** Logs a warning for the operator, and adds it to the run object when the client can act on it. */
  warn(code: string, message: string, facts: JsonObject = {}): void {
    const { projection, options, secrets } = this.#deps;
    const redacted = secrets.redactValues({ message, ...facts });
    if (RUN_WARNINGS.has(code)) projection.warn({ code, message: String(redacted.message) });
    options.deps.log("warning", code, {
      run_id: options.run_id,
      session_id: options.session_id,
      ...redacted,
    });
  }
}

/** Warnings of the kernel that are added to the run object; others are only logged. */
const RUN_WARNINGS: ReadonlySet<string> = new Set([
  "module_overwritten",
  "tool_name_mismatch",
  "module_provides_missing",
  "hook_answer_ignored",
  "event_unknown",
  "tool_name_refused",
  "unknown_key",
  "mount_return_unknown",
  "price_unknown",
]);
