/** Approvals as stored resources: one compare-and-set decides each, whoever answers and however late (http.md, Approvals). */
import { allows } from "../kernel/approvals.ts";
import type { ApprovalDecision, ApprovalRequest } from "../kernel/host.ts";
import { PreampError } from "../sdk/errors.ts";
import type { ApprovalOption, JsonObject } from "../sdk/types.ts";
import { ConflictError, type Store } from "../store/store.ts";

/** Where an answer comes from. */
export interface Answer {
  decision: string;
  reason: string | null;
  decided_by: string | null;
}

interface Waiting {
  request: ApprovalRequest;
  resolve(decision: ApprovalDecision): void;
}

const KIND = "approval";

/** The approvals of one run. */
export class ApprovalDesk {
  readonly #store: Store;
  readonly #run_id: string;
  readonly #namespace: string;
  readonly #waiting = new Map<string, Waiting>();

  constructor(store: Store, run_id: string, namespace: string) {
    this.#store = store;
    this.#run_id = run_id;
    this.#namespace = namespace;
  }

  /** Stores a question and waits for its answer; when `signal` aborts, closes it unless an answer came first. */
  async ask(request: ApprovalRequest, signal: AbortSignal, opened: () => void): Promise<ApprovalDecision> {
    await this.#store.commit([{ put: this.#record(request, { status: "pending" }), expect: 0 }]);
    const answered = new Promise<ApprovalDecision>((resolve) =>
      this.#waiting.set(request.approval_id, { request, resolve })
    );
    const close = () => void this.#close(request, signal.reason);
    if (signal.aborted) close();
    else signal.addEventListener("abort", close, { once: true });
    opened();
    try {
      return await answered;
    } finally {
      signal.removeEventListener("abort", close);
      this.#waiting.delete(request.approval_id);
    }
  }

  #record(request: ApprovalRequest, fields: JsonObject) {
    return {
      kind: KIND,
      key: `${this.#run_id}/${request.approval_id}`,
      namespace: this.#namespace,
      value: {
        args_hash: request.args_hash,
        options: request.options,
        expires_at: request.expires_at,
        ...fields,
      },
    };
  }

  async #close(request: ApprovalRequest, reason: unknown): Promise<void> {
    const expired = reason === "timeout";
    const answer: Answer = {
      decision: expired ? "timeout" : "deny",
      reason: expired ? null : String(reason),
      decided_by: null,
    };
    try {
      await this.#settle(request, answer, expired ? "expired" : "denied");
    } catch {
      // an answer came first and is what counts
    }
  }

  async #settle(request: ApprovalRequest, answer: Answer, status: string): Promise<void> {
    await this.#store.commit([{ put: this.#record(request, { status, ...answer }), expect: 1 }]);
    this.#waiting.get(request.approval_id)?.resolve(answer);
  }

  /**
   * Answers a question.
   * @throws {PreampError} `not_found`, `approval_already_resolved`, `approval_expired`, `approval_args_mismatch`, or
   * `request_invalid` for a decision that is not offered.
   */
  async decide(approval_id: string, answer: Answer, args_hash?: string): Promise<void> {
    const record = await this.#store.get(KIND, `${this.#run_id}/${approval_id}`);
    if (!record) throw new PreampError("not_found", "Cannot find this approval");
    const { status, options, expires_at } = record.value as {
      status: string;
      options: ApprovalOption[];
      expires_at: string;
    };
    if (status === "expired") {
      throw new PreampError("approval_expired", `Cannot answer the approval: it expired at ${expires_at}`);
    }
    if (status !== "pending") throw alreadyResolved(status);
    if (args_hash !== undefined && args_hash !== record.value.args_hash) {
      throw new PreampError(
        "approval_args_mismatch",
        `Cannot answer the approval: it is for arguments ${record.value.args_hash}: received ${args_hash}`,
      );
    }
    const decision = offered(answer.decision, options);
    const waiting = this.#waiting.get(approval_id);
    if (!waiting) throw alreadyResolved("closed");
    try {
      const status = allows(decision, options) ? "granted" : "denied";
      await this.#settle(waiting.request, { ...answer, decision }, status);
    } catch (error) {
      if (!(error instanceof ConflictError)) throw error;
      const now = await this.#store.get(KIND, `${this.#run_id}/${approval_id}`);
      if (now?.value.status === "expired") {
        throw new PreampError("approval_expired", `Cannot answer the approval: it expired at ${expires_at}`);
      }
      throw alreadyResolved(String(now?.value.status));
    }
  }

  /** Denies every question that waits. */
  async denyAll(reason: string): Promise<void> {
    for (const { request } of [...this.#waiting.values()]) {
      await this.#settle(request, { decision: "deny", reason, decided_by: null }, "denied").catch(() => {}); // answered meanwhile
    }
  }

  /** Closes a question as if its time were over. */
  async expire(request: ApprovalRequest): Promise<void> {
    await this.#close(request, "timeout");
  }
}

function alreadyResolved(status: string): PreampError {
  return new PreampError(
    "approval_already_resolved",
    `Cannot answer the approval: it was answered already: it is ${status}`,
  );
}

/** Returns the decision as it is offered. @throws {PreampError} `request_invalid` when it is not. */
function offered(decision: string, options: readonly ApprovalOption[]): string {
  if (decision === "allow" || decision === "deny") return decision;
  const labels = options.map((option) => typeof option === "string" ? option : option.label);
  const label = labels.find((one) => one.toLowerCase() === decision.toLowerCase());
  if (label !== undefined) return label;
  throw new PreampError(
    "request_invalid",
    `Cannot answer the approval: decision must be one of allow, deny, ${labels.join(", ")}: received ${
      JSON.stringify(decision.slice(0, 100))
    }`,
  );
}
