/**
 * Stores approvals and waits for their answers. One compare-and-set decides each question, whichever server
 * makes it, however late, and whether or not a server executes the run.
 */
import { onAbort } from "../../sdk/abortable.ts";
import { allows } from "../../sdk/hook_outcomes.ts";
import type { ApprovalDecision, ApprovalRequest, HostClock, LimitQuestion } from "../../kernel/host.ts";
import { PreampError } from "../../sdk/errors.ts";
import { millisecondsOf, timestamp } from "../../sdk/timestamp.ts";
import type { ApprovalOption, JsonObject } from "../../sdk/types.ts";
import {
  type Change,
  ConflictError,
  type Store,
  type StoredRecord,
  type VersionedRecord,
} from "../../store/store.ts";
import type { SecretSink } from "../ports.ts";
import { type Approval, AWAITING, type Run } from "../types.ts";
import type { RunFacts } from "./run_options.ts";
import { DAY_MS } from "./run_records.ts";

interface Waiting {
  request: ApprovalRequest;
  resolve(decision: ApprovalDecision): void;
}

export const APPROVAL_KIND = "approval";

/** The approvals of one run. */
export class ApprovalQueue {
  readonly #run: RunFacts;
  /** Raises a limit as a person has allowed, unless it was raised since the question. */
  readonly #raise: (limit: LimitQuestion, raised_by: string | null) => Promise<void>;
  readonly #waiting = new Map<string, Waiting>();
  #is_handed_over = false;
  /** Why questions are denied when the run is cancelled. */
  denial_reason = "cancelled";

  constructor(run: RunFacts, raise: (limit: LimitQuestion, raised_by: string | null) => Promise<void>) {
    this.#run = run;
    this.#raise = raise;
  }

  /** Leaves the open questions as they are stored: another process waits for their answers. */
  handOver(): void {
    this.#is_handed_over = true;
  }

  /** Returns the change that stores a question with its entry: who can read of it can answer it. */
  opened(question: Pick<ApprovalRequest, "approval_id" | "args_hash" | "options" | "expires_at">): Change {
    return { put: this.#recordOf(question, { status: "pending" }) };
  }

  /**
   * Waits for the answer to a stored question. When `signal` aborts, closes the question unless it was
   * answered first. A limit that the answer allows to raise is raised when this resolves.
   */
  async ask(request: ApprovalRequest, signal: AbortSignal, opened: () => void): Promise<ApprovalDecision> {
    const { promise: answered, resolve } = Promise.withResolvers<ApprovalDecision>();
    // before the question is read: an answer is either read here, or taken from then on
    this.#waiting.set(request.approval_id, { request, resolve });
    let stop = () => {};
    try {
      const known = await this.#run.store.wait(() => this.#stored(request.approval_id));
      if (known && known.value.status !== "pending") {
        resolve(answerOf(known.value)); // answered, and the process ended before the answer was recorded
      } else {
        if (!known) await this.#put(request, { status: "pending" }, 0); // an older version had stored the entry only
        stop = onAbort(signal, () => void this.closeQuestion(request, signal.reason));
        opened();
      }
      const answer = await answered;
      await this.#keepNoSecret(request, answer);
      if (request.limit && allows(answer.decision, request.options)) {
        await this.#raise(request.limit, answer.decided_by);
      }
      return answer;
    } finally {
      stop();
      this.#waiting.delete(request.approval_id);
    }
  }

  /** Closes a question of an interrupted session. Resolves to its stored answer, otherwise to `decision`. */
  async drop(
    request: ApprovalRequest,
    reason: string,
    decision: "allow" | "deny" = "deny",
  ): Promise<ApprovalDecision> {
    const answer = { decision, reason, decided_by: null };
    const status = decision === "allow" ? "granted" : "denied";
    for (;;) {
      const stored = await this.#run.store.wait(() => this.#stored(request.approval_id));
      if (stored && stored.value.status !== "pending") return answerOf(stored.value);
      try {
        await this.#put(request, { status, ...answer }, stored?.version ?? 0);
        return answer;
      } catch (error) {
        // answered meanwhile; or another process has the run: then it refuses this for ever
        if (!(error instanceof ConflictError) || !await this.#storedAnswer(request)) throw error;
      }
    }
  }

  /** Returns the record of a question, without the run's secrets. */
  #recordOf(
    { approval_id, args_hash, options, expires_at }: Pick<
      ApprovalRequest,
      "approval_id" | "args_hash" | "options" | "expires_at"
    >,
    fields: JsonObject,
  ) {
    return {
      kind: APPROVAL_KIND,
      key: approvalKey(this.#run.id, approval_id),
      namespace: this.#run.options.caller.namespace,
      value: this.#run.secrets.redactValues({ args_hash, options, expires_at, ...fields }),
      index: { run_id: this.#run.id },
      // a run that is continued after that asks again
      expires_ms: millisecondsOf(expires_at) + this.#run.limits.retention_days * DAY_MS,
    };
  }

  /** Stores a question over a version, unless another process has continued the run. */
  async #put(request: ApprovalRequest, fields: JsonObject, expect: number): Promise<void> {
    await this.#run.store.commit([{ put: this.#recordOf(request, fields), expect }]);
  }

  /** Stores an answer again without secrets of the run, which the server that stored it does not know. */
  async #keepNoSecret(request: ApprovalRequest, answer: ApprovalDecision): Promise<void> {
    if (this.#run.secrets.redactValues(answer) === answer) return;
    const stored = await this.#run.store.wait(() => this.#stored(request.approval_id));
    if (stored) await this.#put(request, stored.value, stored.version);
  }

  /**
   * Closes a question without a person's answer: its time is over, its session was cancelled, or no one can
   * be asked.
   */
  async closeQuestion(
    request: ApprovalRequest,
    cause: "timeout" | "cancelled" | "unanswered",
  ): Promise<void> {
    const expired = cause === "timeout";
    const answer: ApprovalDecision = {
      decision: cause === "cancelled" ? "deny" : cause,
      reason: cause === "cancelled" ? this.denial_reason : null,
      decided_by: null,
    };
    const resolve = (answer: ApprovalDecision) => this.#waiting.get(request.approval_id)?.resolve(answer);
    if (this.#is_handed_over) return resolve(answer);
    try {
      await this.#put(request, { status: expired ? "expired" : "denied", ...answer }, 1);
      resolve(answer);
    } catch (error) {
      // the stored answer came first and counts
      const is_decided = error instanceof ConflictError;
      const stored = is_decided ? await this.#storedAnswer(request).catch(() => null) : null;
      // fail closed
      resolve(stored ?? { decision: "deny", reason: "The answer could not be stored", decided_by: null });
    }
  }

  async #stored(approval_id: string): Promise<VersionedRecord | null> {
    return await this.#run.options.deps.store.get(APPROVAL_KIND, approvalKey(this.#run.id, approval_id));
  }

  /** Resolves to the stored answer, maybe of another process; to null while the question is open. */
  async #storedAnswer({ approval_id }: ApprovalRequest): Promise<ApprovalDecision | null> {
    const record = await this.#stored(approval_id);
    return record && record.value.status !== "pending" ? answerOf(record.value) : null;
  }

  /** Gives the stored answer to a question, such as one of another server, to the step that waits for it. */
  async take(approval_id: string): Promise<void> {
    const waiting = this.#waiting.get(approval_id);
    const answer = waiting && await this.#run.store.wait(() => this.#storedAnswer(waiting.request));
    if (answer) waiting!.resolve(answer);
  }

  /** Answers a question, unless another process has the run. @throws {PreampError} see {@link decisionOf}. */
  async decide(approval_id: string, answer: ApprovalDecision, args_hash?: string): Promise<void> {
    const { id, options: { deps: { store, clock } }, secrets } = this.#run;
    const decide = () =>
      decisionOf({ store, clock, secrets }, approvalKey(id, approval_id), answer, args_hash);
    try {
      const decision = await decide();
      await this.#run.store.tryCommit([decision]);
      this.#waiting.get(approval_id)?.resolve(answerOf(decision.put.value));
    } catch (error) {
      // maybe stored without a report of success: taken when the store is back, unless the run was left
      void this.take(approval_id).catch(() => {});
      if (error instanceof ConflictError) await decide(); // throws if the question is answered
      throw error;
    }
  }
}

function answerOf({ decision, reason, decided_by }: JsonObject): ApprovalDecision {
  const text = (value: unknown) => typeof value === "string" ? value : null;
  return { decision: text(decision) ?? "deny", reason: text(reason), decided_by: text(decided_by) };
}

/** Returns the key of a question's record. */
export function approvalKey(run_id: string, approval_id: string): string {
  return `${run_id}/${approval_id}`;
}

/**
 * Resolves to the change that answers a stored question, given by its key.
 * @throws {PreampError} `not_found`, `approval_already_resolved`, `approval_expired`,
 * `approval_args_mismatch`, or `request_invalid` for a decision that is not offered.
 */
export async function decisionOf(
  { store, clock, secrets }: { store: Store; clock: HostClock; secrets: Pick<SecretSink, "redactValues"> },
  key: string,
  answer: ApprovalDecision,
  args_hash?: string,
): Promise<{ put: StoredRecord; expect: number }> {
  const record = await store.get(APPROVAL_KIND, key);
  if (!record) throw new PreampError("not_found", "Cannot find this approval");
  const { version, value, ...stored } = record;
  const { status, options, expires_at } = value as unknown as StoredQuestion;
  if (status !== "pending") throw closedApprovalError({ status, expires_at });
  if (args_hash !== undefined && args_hash !== value.args_hash) {
    throw new PreampError(
      "approval_args_mismatch",
      `Cannot answer the approval: it is for arguments ${value.args_hash}: received ${args_hash}`,
    );
  }
  const decision = offeredDecision(answer.decision, options);
  const decided = {
    ...secrets.redactValues({ ...answer, decision }),
    status: allows(decision, options) ? "granted" : "denied",
    decided_at: timestamp(clock.now()),
  };
  return { put: { ...stored, value: { ...value, ...decided } }, expect: version };
}

/** What decides about answers to a question. */
type StoredQuestion = Pick<Approval, "options" | "expires_at"> & { readonly status: string };

/** Resolves to approvals with the answers that are stored, of which the log may not have all yet. */
export async function storedAnswers(store: Store, approvals: readonly Approval[]): Promise<Approval[]> {
  return await Promise.all(approvals.map(async (approval) => {
    const { id, run_id, status } = approval;
    const stored = status === "pending" ? await store.get(APPROVAL_KIND, approvalKey(run_id, id)) : null;
    if (!stored || stored.value.status === "pending") return { ...approval };
    const { args_hash: _, options: __, expires_at: ___, ...answer } = stored.value;
    return { ...approval, ...answer as Partial<Approval> };
  }));
}

/** Resolves to a run that no longer asks what is answered, although its log may not have the answer yet. */
export async function withStoredAnswers(store: Store, run: Run): Promise<Run> {
  if (!run.approvals.some(({ status }) => status === "pending")) return run;
  const approvals = (await storedAnswers(store, run.approvals)).filter(({ status }, index) =>
    status === "pending" || run.approvals[index]?.status !== "pending"
  );
  const asks = approvals.some(({ status }) => status === "pending");
  return { ...run, approvals, status: AWAITING.has(run.status) && !asks ? "running" : run.status };
}

/** Returns the change that deletes a question, given by the key of its record. */
export function approvalDeletion(key: string): Change {
  return { delete: { kind: APPROVAL_KIND, key } };
}

/** Returns the error of an answer to a closed question; `pending`: its run ended without an answer. */
export function closedApprovalError(approval: { status: string; expires_at: string }): PreampError {
  const { status, expires_at } = approval;
  if (status === "expired") {
    return new PreampError("approval_expired", `Cannot answer the approval: it expired at ${expires_at}`);
  }
  const fact = status === "pending" ? "its run has ended" : `it is already ${status}`;
  return new PreampError("approval_already_resolved", `Cannot answer the approval: ${fact}`);
}

/**
 * Returns the decision as one of the options. @throws {PreampError} `request_invalid` when it is no option.
 */
function offeredDecision(decision: string, options: readonly ApprovalOption[]): string {
  if (decision === "allow" || decision === "deny") return decision;
  const labels = options.map((option) => typeof option === "string" ? option : option.label);
  const found = labels.find((label) => label.toLowerCase() === decision.toLowerCase());
  if (found !== undefined) return found;
  throw new PreampError(
    "request_invalid",
    `Cannot answer the approval: decision must be one of: allow, deny, ${labels.join(", ")}: received ${
      JSON.stringify(decision.slice(0, 100))
    }`,
  );
}
