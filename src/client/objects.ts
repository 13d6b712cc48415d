/** Objects of the HTTP API: see src/docs/http.md. */

/** An object of the API with fields that this file does not name. */
export type Data = Readonly<Record<string, unknown>>;

/** A question to a person before something happens. */
export interface Approval extends Data {
  readonly id: string;
  readonly run_id: string;
  readonly session_id: string;
  readonly tool_name: string | null;
  readonly tool_call_id: string | null;
  readonly tool_input: Data | null;
  /** What the call would do, such as a diff. */
  readonly preview?: string;
  readonly args_hash: string;
  readonly prompt: string;
  readonly options: readonly unknown[];
  readonly status: "pending" | "granted" | "denied" | "expired";
  readonly expires_at: string;
}

/** The run object: src/docs/http.md#the-run-object. */
export interface Run extends Data {
  readonly id: string;
  readonly session_id: string;
  /** The first 200 characters of its prompt, on one line; absent for a run of an older version. */
  readonly title?: string;
  readonly status: string;
  readonly stop_reason: string | null;
  readonly output_text: string;
  readonly usage: { readonly total_tokens: number; readonly cost_usd: string | null };
  readonly approvals: readonly Approval[];
  readonly forked_from: { readonly run_id: string; readonly seq: number } | null;
  readonly warnings: readonly { readonly code: string; readonly message: string }[];
  readonly error: { readonly code: string; readonly message: string } | null;
}

/** One entry of a run's event log: src/docs/events.md#an-entry. */
export interface Entry extends Data {
  readonly seq: number;
  readonly event: string;
  readonly ts: string;
  readonly run_id: string;
  readonly session_id: string;
  readonly data: Data;
}
