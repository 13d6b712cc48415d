/**
 * Stores approvals and waits for their answers. One compare-and-set decides each question, whichever process
 * answers and however late.
 */
import { onAbort } from "../../sdk/abortable.ts";
import { allows } from "../../sdk/hook_outcomes.ts";
import type { ApprovalDecision, ApprovalRequest } from "../../kernel/host.ts";
import { PreampError } from "../../sdk/errors.ts";
import { millisecondsOf } from "../../sdk/timestamp.ts";
import type { ApprovalOption, JsonObject } from "../../sdk/types.ts";
import { type Change, ConflictError, type VersionedRecord } from "../../store/store.ts";
import type { RunFacts } from "./run_options.ts";
import { isAway } from "./run_store.ts";
import { DAY_MS } from "./run_records.ts";

interface Waiting {
  request: ApprovalRequest;
  resolve(decision: ApprovalDecision): void;
}

export const APPROVAL_KIND = "approval";

/** The approvals of one run. */
export class ApprovalQueue {
  readonly #run: RunFacts;
  readonly #waiting = new Map<string, Waiting>();
  /** Questions that readers know of and that are not stored yet. */
  readonly #expected = new Map<string, PromiseWithResolvers<void>>();
  #is_handed_over = false;
  /** Why questions are denied when the run is cancelled. */
  denial_reason = "cancelled";

  constructor(run: RunFacts) {
    this.#run = run;
  }

  /** Announces a question: answers wait until the question is stored. */
  expect(approval_id: string): void {
    this.#expected.set(approval_id, Promise.withResolvers());
  }

  #resolveExpected(approval_id: string): void {
    this.#expected.get(approval_id)?.resolve();
    this.#expected.delete(approval_id);
  }

  /** Leaves the open questions as they are stored: another process waits for their answers. */
  handOver(): void {
    this.#is_handed_over = true;
  }

  /** Releases every caller that waits for a question: the run has ended. */
  close(): void {
    for (const approval_id of [...this.#expected.keys()]) this.#resolveExpected(approval_id);
  }

  /**
   * Stores a question and waits for its answer. When `signal` aborts, closes the question unless it was
   * answered first.
   */
  async ask(request: ApprovalRequest, signal: AbortSignal, opened: () => void): Promise<ApprovalDecision> {
    const known = await this.#run.store.wait(() => this.#stored(request.approval_id));
    if (known && known.value.status !== "pending") {
      this.#resolveExpected(request.approval_id);
      return answerOf(known.value); // answered, and the process ended before the answer was recorded
    }
    if (!known) await this.#put(request, { status: "pending" }, 0);
    const answered = new Promise<ApprovalDecision>((resolve) =>
      this.#waiting.set(request.approval_id, { request, resolve })
    );
    const stop = onAbort(signal, () => void this.closeQuestion(request, signal.reason));
    this.#resolveExpected(request.approval_id);
    opened();
    try {
      return await answered;
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
    const stored = await this.#run.store.wait(() => this.#storedAnswer(request));
    const answer = stored ?? { decision, reason, decided_by: null };
    const status = decision === "allow" ? "granted" : "denied";
    if (!stored) await this.#put(request, { status, ...answer });
    this.#resolveExpected(request.approval_id);
    return answer;
  }

  /**
   * Stores a question over a version, unless another process has continued the run. `waits`: whether it waits
   * for the store, as a run does and a request does not.
   */
  async #put(request: ApprovalRequest, fields: JsonObject, expect?: number, waits = true): Promise<void> {
    const put = {
      kind: APPROVAL_KIND,
      key: `${this.#run.id}/${request.approval_id}`,
      namespace: this.#run.options.caller.namespace,
      value: this.#run.secrets.redactValues({
        args_hash: request.args_hash,
        options: request.options,
        expires_at: request.expires_at,
        ...fields,
      }),
      index: { run_id: this.#run.id },
      // a run that is continued after that asks again
      expires_ms: millisecondsOf(request.expires_at) + this.#run.limits.retention_days * DAY_MS,
    };
    const changes: Change[] = [expect === undefined ? { put } : { put, expect }];
    await (waits ? this.#run.store.commit(changes) : this.#run.store.tryCommit(changes));
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
    if (this.#is_handed_over) return this.#waiting.get(request.approval_id)?.resolve(answer);
    try {
      await this.#settle(request, answer, expired ? "expired" : "denied");
    } catch (error) {
      // the stored answer came first and counts
      const is_decided = error instanceof ConflictError;
      const stored = is_decided ? await this.#storedAnswer(request).catch(() => null) : null;
      // fail closed
      const lost = { decision: "deny", reason: "The answer could not be stored", decided_by: null };
      this.#waiting.get(request.approval_id)?.resolve(stored ?? lost);
    }
  }

  async #stored(approval_id: string): Promise<VersionedRecord | null> {
    return await this.#run.options.deps.store.get(APPROVAL_KIND, `${this.#run.id}/${approval_id}`);
  }

  /** Resolves to the stored answer, maybe of another process; to null while the question is open. */
  async #storedAnswer({ approval_id }: ApprovalRequest): Promise<ApprovalDecision | null> {
    const record = await this.#stored(approval_id);
    return record && record.value.status !== "pending" ? answerOf(record.value) : null;
  }

  async #settle(
    request: ApprovalRequest,
    answer: ApprovalDecision,
    status: string,
    waits = true,
  ): Promise<void> {
    await this.#put(request, { status, ...answer }, 1, waits);
    this.#waiting.get(request.approval_id)?.resolve(answer);
  }

  /** Looks for an answer that may be stored although its commit failed, once the store is back. */
  #lookLater({ request, resolve }: Waiting): void {
    const look = async () => await this.#run.store.wait(() => this.#storedAnswer(request));
    look().then((stored) => stored && resolve(stored), () => {}); // the run was left
  }

  /**
   * Answers a question. `granted` is called before an answer that allows is stored.
   * @throws {PreampError} `not_found`, `approval_already_resolved`, `approval_expired`,
   * `approval_args_mismatch`, or
   * `request_invalid` for a decision that is not offered.
   */
  async decide(
    approval_id: string,
    answer: ApprovalDecision,
    args_hash?: string,
    granted: (request: ApprovalRequest) => Promise<void> = () => Promise.resolve(),
  ): Promise<void> {
    await this.#expected.get(approval_id)?.promise;
    const record = await this.#stored(approval_id);
    if (!record) throw new PreampError("not_found", "Cannot find this approval");
    const { status, options, expires_at } = record.value as {
      status: string;
      options: ApprovalOption[];
      expires_at: string;
    };
    const waiting = this.#waiting.get(approval_id);
    if (status !== "pending") {
      waiting?.resolve(answerOf(record.value)); // by a commit whose success was not reported
      throw closedApprovalError({ status, expires_at });
    }
    if (args_hash !== undefined && args_hash !== record.value.args_hash) {
      throw new PreampError(
        "approval_args_mismatch",
        `Cannot answer the approval: it is for arguments ${record.value.args_hash}: received ${args_hash}`,
      );
    }
    const decision = offeredDecision(answer.decision, options);
    if (!waiting) throw closedApprovalError({ status: "closed", expires_at });
    try {
      const status = allows(decision, options) ? "granted" : "denied";
      if (status === "granted") await granted(waiting.request);
      await this.#settle(waiting.request, { ...answer, decision }, status, false);
    } catch (error) {
      if (isAway(error)) this.#lookLater(waiting);
      if (!(error instanceof ConflictError)) throw error;
      const now = await this.#stored(approval_id);
      if (now?.value.status !== "pending") {
        throw closedApprovalError({ status: String(now?.value.status), expires_at });
      }
      throw new PreampError(
        "overloaded",
        "Cannot answer the approval: another server continues the run; try again in a few seconds",
      );
    }
  }
}

function answerOf({ decision, reason, decided_by }: JsonObject): ApprovalDecision {
  const text = (value: unknown) => typeof value === "string" ? value : null;
  return { decision: text(decision) ?? "deny", reason: text(reason), decided_by: text(decided_by) };
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
