/**
 * The host of every session of a run: entries into its log, questions to its desk, warnings to the operator. Told the same
 * of a sub-agent's session as of the run's own.
 */
import { setImmediate } from "node:timers";
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
import type { Awaitable } from "../../store/store.ts";
import type { ApprovalQueue } from "./approvals.ts";
import { noteContext } from "./context_status.ts";
import { MAX_CONSOLE_CHARS } from "../../sdk/console.ts";
import type { ModuleTold, RunnablePlan, SecretSink } from "../ports.ts";
import type { RunProjection } from "./run_projection.ts";
import { knownApproval } from "../scheduler/crash_state.ts";
import { statusFrom } from "../session_status.ts";
import type { RunLog } from "./run_log.ts";
import type { RunnerOptions } from "./run.ts";

/** What the host is made of. */
export interface RunHostParts {
  readonly options: RunnerOptions;
  readonly log: RunLog;
  readonly desk: ApprovalQueue;
  readonly fold: RunProjection;
  readonly secrets: SecretSink;
  /** The run's own session, as it is when asked. */
  session(): Session;
  /** The run's own session is initialised: the run exists. */
  accept(): Awaitable<void>;
  /** Somebody may wait for what has become of the run. */
  notify(): void;
}

/** Makes the hosts of one run's sessions. */
export class RunHost {
  readonly #parts: RunHostParts;
  #yielded_ms = 0;
  #noted: Promise<void> | undefined;
  #closed = false;

  constructor(parts: RunHostParts) {
    this.#parts = parts;
  }

  /** Begins to measure how long the run keeps the thread. */
  start(): void {
    this.#yielded_ms = this.#parts.options.deps.clock.monotonic();
  }

  /** Says that no entry of any session follows. */
  close(): void {
    this.#closed = true;
  }

  /** All that a session of this run is given: its own, or a sub-agent's. */
  of(ready: RunnablePlan, session_id: string): Host {
    const { options, secrets, accept } = this.#parts;
    const { deps } = options;
    const started_at = session_id === options.session_id
      ? options.saved?.object.created_at ?? timestamp(deps.clock.now())
      : timestamp(deps.clock.now());
    return {
      clock: deps.clock,
      newId: deps.newId,
      open: (spec) => ready.open(spec, secrets, this.told(session_id)),
      record: (entry) => this.record(entry),
      ask: (request, signal) => this.#ask(request, signal),
      ...(options.inherited
        ? {
          knownApproval: (asked, session_id) => knownApproval(this.#parts.fold.approvals, asked, session_id),
        }
        : {}),
      rememberedApproval: (asked, session_id) => this.#parts.fold.answerTo(asked, session_id),
      sessionStatus: (id) => {
        const { fold } = this.#parts;
        const session = { id, created_at: started_at };
        const last_activity = timestamp(deps.clock.now());
        return statusFrom(session, fold.countersOf(id), fold.historyOf(id).length, { last_activity });
      },
      accept,
      redactEvent: (event, data) => secrets.redactEvent(event, data),
      warn: (code, message, facts) => this.warn(code, message, { session_id, ...facts }),
    };
  }

  /** Returns what takes warnings and console lines of a session's modules. */
  told(session_id: string): ModuleTold {
    return {
      warn: (code, message) => this.warn(code, message, { session_id }),
      console: (level, text, module) => {
        const { options: { deps, run_id }, secrets } = this.#parts;
        // a line that was cut may end in the middle of a secret
        const whole = text.length < MAX_CONSOLE_CHARS
          ? text
          : text.slice(0, text.length - secrets.held(text));
        const line = secrets.redactValues({ module, text: whole });
        deps.log(level, "module_console", { run_id, session_id, ...line });
      },
    };
  }

  /** Writes an entry of a session, and sees to what it means for the run. */
  record(entry: DraftEntry): Promise<void> | void {
    const { desk, log, options } = this.#parts;
    if (this.#closed) return; // a module's timer that fires after the end changes nothing
    if (entry.event === "approval:required") desk.expect(String(entry.data.approval_id));
    const stored = log.record(entry) ?? this.#yieldNowAndThen(entry);
    switch (entry.event) {
      case "provider:response":
        if (entry.session_id === options.session_id) this.#noteContext();
        return stored;
      case "approval:granted":
      case "approval:denied":
        return this.#resume(stored);
      default:
        return stored;
    }
  }

  /** A run that never waits for anything outside lets others have the thread now and then. */
  #yieldNowAndThen(entry: DraftEntry): Promise<void> | void {
    if (entry.event !== "provider:response") return;
    const now = this.#parts.options.deps.clock.monotonic();
    if (now - this.#yielded_ms < YIELD_AFTER_MS) return;
    return new Promise((resolve) =>
      setImmediate(() => {
        this.#yielded_ms = this.#parts.options.deps.clock.monotonic();
        resolve();
      })
    );
  }

  #noteContext(): void {
    const { fold } = this.#parts;
    const noted = noteContext(this.#parts.session(), fold, (error) => {
      this.warn("context_status_failed", errorMessage(error));
    });
    if (noted) this.#noted = noted;
  }

  /** Resolves when what the context manager says of itself is noted: one that runs elsewhere takes its time. */
  get context_noted(): Promise<void> | undefined {
    return this.#noted;
  }

  async #resume(stored: Promise<void> | void): Promise<void> {
    await stored;
    this.#parts.notify();
    const waits = this.#parts.fold.approvals.some((approval) => approval.status === "pending");
    if (!waits && this.#parts.fold.status === "awaiting_approval") await this.status({ status: "running" });
  }

  /** Tells `run:status`. */
  async status(data: JsonObject): Promise<void> {
    const { log, options, session, notify } = this.#parts;
    await log.record(draftEntry("run:status", options.session_id, data, session().turn_fields));
    notify();
  }

  async #ask(request: ApprovalRequest, signal: AbortSignal): Promise<ApprovalDecision> {
    return await this.#parts.desk.ask(request, signal, () => {
      const waiting = this.#parts.fold.status === "awaiting_approval"
        ? Promise.resolve()
        : this.status({ status: "awaiting_approval" });
      waiting.then(() => this.#askHere(request, signal)).catch((error) =>
        this.warn("ask_failed", errorMessage(error))
      );
    });
  }

  /** Asks at the terminal, or whoever `create.ask` is; over HTTP the person answers by themselves. */
  async #askHere(request: ApprovalRequest, signal: AbortSignal): Promise<void> {
    const { ask } = this.#parts.options.create;
    if (!ask) return;
    const approval = this.#parts.fold.approvals.find((one) => one.id === request.approval_id);
    if (!approval) return;
    const answer = await ask(approval, signal);
    if (answer === null) return await this.#parts.desk.expire(request); // nobody there: the default applies at once
    try {
      await this.#parts.desk.decide(request.approval_id, {
        decision: answer.decision,
        reason: answer.reason ?? null,
        decided_by: this.#parts.options.caller.name,
      });
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  /** Tells the operator, and the run object where it concerns whoever reads that. */
  warn(code: string, message: string, facts: JsonObject = {}): void {
    const { fold, options, secrets } = this.#parts;
    const told = secrets.redactValues({ message, ...facts });
    if (RUN_WARNINGS.has(code)) fold.warn({ code, message: String(told.message) });
    options.deps.log("warning", code, { run_id: options.run_id, session_id: options.session_id, ...told });
  }
}

/** Milliseconds a run may keep the thread: half of what a health check may be late. */
const YIELD_AFTER_MS = 10;

/** Warnings of the kernel that belong on the run object; the others are for the operator's log. */
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
