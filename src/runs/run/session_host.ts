/**
 * Implements the kernel's `Host` for one session of a run, its own or a sub-agent's: entries go to the run's
 * log, questions to its approvals, warnings to the operator.
 */
import {
  type ApprovalDecision,
  type ApprovalMatch,
  type ApprovalRequest,
  type DraftEntry,
  draftEntry,
  type Host,
  type HostClock,
  type KnownApproval,
  type OpenedModule,
  type QuestionKey,
  type RememberedAnswer,
} from "../../kernel/host.ts";
import { type ConsoleLevel, MAX_CONSOLE_CHARS } from "../../sdk/console.ts";
import { errorMessage } from "../../sdk/errors.ts";
import type { JsonObject } from "../../sdk/json.ts";
import type { SessionStatus } from "../../sdk/session_status.ts";
import { timestamp } from "../../sdk/timestamp.ts";
import type { GrantedPermissions, ModuleSpec, RaisableLimit } from "../../sdk/types.ts";
import type { ModuleReporter, RunnablePlan } from "../ports.ts";
import { AWAITING, type RunStatus } from "../types.ts";
import { statusFrom } from "../storage/session_store.ts";
import type { FileChanges } from "../storage/file_changes.ts";
import { knownApproval } from "./approval_memory.ts";
import type { ApprovalQueue } from "./approval_queue.ts";
import type { RunLog } from "./run_log.ts";
import type { RunFacts } from "./run_options.ts";
import type { RunWaiters } from "./run_waiters.ts";
import { recordContextUsage } from "./run_projection.ts";

/** The run of a session. */
export interface HostedRun extends RunFacts {
  readonly log: RunLog;
  readonly approvalQueue: ApprovalQueue;
  /** What the run keeps of the files that it changes. */
  readonly files: FileChanges;
  /** Returns what a limit becomes when a person allows more; null: the policy's is reached. */
  raised(limit: RaisableLimit): number | string | null;
  /** Notified when the run's status or approvals may have changed. */
  readonly waiters: RunWaiters;
  /** Called when the run's own session is initialised: the run exists. */
  accept(): Promise<void> | void;
}

/** Receives what the session of a sub-agent does. */
export interface ChildEvents {
  /** Called for each entry, before it is recorded. */
  recorded(entry: DraftEntry): void;
  /** Called when the session is initialised. */
  accepted(): void;
}

/** The host of one session. */
export class SessionHost implements Host, ModuleReporter {
  readonly clock: HostClock;
  /** Who starts a run of a plan of its own sees the error, and can mend it. */
  readonly requires_tools: boolean;
  readonly #run: HostedRun;
  readonly #ready: RunnablePlan;
  readonly #session_id: string;
  readonly #child: ChildEvents | null;
  readonly #started_at: string;
  /** Settles when the status of a sandboxed context manager at the last answer is recorded. */
  context_recorded: Promise<void> | void = undefined;

  /** @param child Null: the session is the run's own. */
  constructor(run: HostedRun, ready: RunnablePlan, session_id: string, child: ChildEvents | null = null) {
    const { deps, saved, caller } = run.options;
    this.clock = deps.clock;
    this.requires_tools = caller.origin === "operator";
    this.#run = run;
    this.#ready = ready;
    this.#session_id = session_id;
    this.#child = child;
    this.#started_at = child ? timestamp(deps.clock.now()) : saved?.object.created_at ?? run.created_at;
  }

  newId(prefix: string): string {
    return this.#run.options.deps.newId(prefix);
  }

  open(spec: ModuleSpec): Promise<OpenedModule> {
    return this.#ready.open(spec, this.#run.secrets, this);
  }

  async accept(): Promise<void> {
    await (this.#child ? this.#child.accepted() : this.#run.accept());
  }

  /** Records an entry of the session and updates the run's status. */
  record(entry: DraftEntry): Promise<void> | void {
    const run = this.#run;
    this.#child?.recorded(entry);
    if (entry.event === "approval:required") {
      return run.log.record(entry, run.approvalQueue.opened(entry.data as unknown as ApprovalRequest)); // by the kernel
    }
    const stored = run.log.record(entry);
    switch (entry.event) {
      case "provider:response":
        if (this.#child === null) this.#recordContext();
        return stored;
      case "approval:granted":
      case "approval:denied":
        return this.#resume(stored);
      default:
        return stored;
    }
  }

  #recordContext(): void {
    const { session, projection } = this.#run;
    this.context_recorded = recordContextUsage(session, projection, (error) => {
      this.warn("context_status_failed", errorMessage(error));
    });
  }

  async #resume(stored: Promise<void> | void): Promise<void> {
    const run = this.#run;
    await stored;
    run.waiters.notify();
    const { status } = run.projection;
    if (AWAITING.has(status) && status !== this.#waitsFor()) await this.status({ status: this.#waitsFor() });
  }

  /** Returns the status of the run by its open questions: a limit waits behind any other. */
  #waitsFor(): RunStatus {
    const open = this.#run.projection.approvals.filter(({ status }) => status === "pending");
    if (open.length === 0) return "running";
    return open.every(({ limit }) => limit !== undefined) ? "awaiting_limit" : "awaiting_approval";
  }

  /** Records `run:status`, and stores it before clients are notified: lists answer from the store. */
  async status(data: JsonObject): Promise<void> {
    const run = this.#run;
    await run.log.record(draftEntry("run:status", run.session_id, data, run.session.turn_fields));
    await run.log.flush()?.catch(() => {}); // the next barrier meets the same store and rejects
    run.waiters.notify();
  }

  async ask(request: ApprovalRequest, signal: AbortSignal): Promise<ApprovalDecision> {
    const { approvalQueue, projection } = this.#run;
    return await approvalQueue.ask(request, signal, () => {
      const status = this.#waitsFor();
      const waiting = projection.status === status ? Promise.resolve() : this.status({ status });
      waiting.then(() => this.#askCallback(request, signal)).catch((error) =>
        this.warn("ask_failed", errorMessage(error))
      );
    });
  }

  /** Asks through `createOptions.ask`, such as the terminal. Over HTTP the answer comes by `decide`. */
  async #askCallback(request: ApprovalRequest, signal: AbortSignal): Promise<void> {
    const { projection, approvalQueue, options: { caller, createOptions: { ask } } } = this.#run;
    if (!ask) return;
    const approval = projection.approvals.find((known) => known.id === request.approval_id);
    if (!approval) return;
    const answer = await ask(approval, signal);
    if (answer === null) {
      if (signal.aborted) return; // closed already
      if (approval.limit) return await approvalQueue.closeQuestion(request, "unanswered"); // the run ends there
      const subject = request.tool_name === null ? request.action : `a call of ${request.tool_name}`;
      this.warn(UNANSWERED, `Denied ${subject}: no one could be asked`);
      return await approvalQueue.closeQuestion(request, "unanswered");
    }
    try {
      await approvalQueue.decide(request.approval_id, {
        decision: answer.decision,
        reason: answer.reason ?? null,
        decided_by: caller.name,
      });
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  mayRaise(limit: RaisableLimit): boolean {
    return this.#run.raised(limit) !== null;
  }

  knownApproval(question: QuestionKey, session_id: string): KnownApproval | null {
    return knownApproval(this.#run.projection.approvals, question, session_id);
  }

  rememberedApproval(question: ApprovalMatch, session_id: string): RememberedAnswer | null {
    return this.#run.projection.answerTo(question, session_id);
  }

  sessionStatus(id: string): SessionStatus {
    const { counters, history } = this.#run.projection.of(id);
    const session = { id, created_at: this.#started_at };
    const last_activity = timestamp(this.clock.now());
    return statusFrom(session, counters, history.length, { last_activity });
  }

  redactEvent(event: string, data: JsonObject): JsonObject {
    return this.#run.secrets.redactEvent(event, data);
  }

  keepBefore(change: JsonObject, write: GrantedPermissions["write"]): Promise<string | null> {
    return this.#run.files.keep(change, write);
  }

  /** Logs a warning for the operator, and adds it to the run object when the client can act on it. */
  warn(code: string, message: string, facts: JsonObject = {}): void {
    const { id, projection, secrets, options: { deps } } = this.#run;
    const redacted = secrets.redactValues({ message, session_id: this.#session_id, ...facts });
    if (RUN_WARNINGS.has(code)) projection.warn({ code, message: String(redacted.message) });
    deps.log("warning", code, { run_id: id, ...redacted });
  }

  console(level: ConsoleLevel, text: string, module: string): void {
    const { id: run_id, secrets, options: { deps } } = this.#run;
    // a truncated line can end in the middle of a secret
    const whole = text.length < MAX_CONSOLE_CHARS
      ? text
      : text.slice(0, text.length - secrets.partialSecretLength(text));
    const line = secrets.redactValues({ module, text: whole });
    deps.log(level, "module_console", { run_id, session_id: this.#session_id, ...line });
  }

  /** Executes `body`. Meanwhile logs the console output of the plan's modules in this process. */
  withConsole<T>(body: () => Promise<T>): Promise<T> {
    const { withConsole } = this.#ready;
    return withConsole ? withConsole((...line) => this.console(...line), body) : body();
  }
}

/** Warning about an approval that was denied because no one could be asked. */
const UNANSWERED = "approval_unanswered";

/** Warnings that are added to the run object; others are only logged. */
const RUN_WARNINGS: ReadonlySet<string> = new Set([
  UNANSWERED,
  "module_ended",
  "module_overwritten",
  "tool_name_mismatch",
  "module_provides_missing",
  "hook_answer_ignored",
  "event_reserved",
  "event_unknown",
  "tool_name_refused",
  "unknown_key",
  "mount_return_unknown",
  "price_unknown",
  "command_refused",
]);
