/**
 * Every limit of `limits` in `preamp.yaml`: meaning, unit, default and range, and which of several limits
 * applies.
 */
import { compareLimit, LIMIT_NAMES } from "../plan/check/field_checks.ts";
import { DOCUMENT_LIMITS, type DocumentLimits } from "../plan/parse/document_limits.ts";
import type { LimitName, RunLimits } from "../sdk/contracts.ts";
import type { ErrorDetail } from "../sdk/errors.ts";
import { bytes, dollars, seconds, type SettingType, whole } from "./setting_types.ts";

/**
 * Value of each limit. Names end in their unit, except `approval_timeout`, which keeps upstream's name and is
 * in seconds.
 */
export interface PolicyLimits extends Pick<RunLimits, LimitName> {
  max_concurrent_runs: number;
  max_runs_per_key: number;
  max_streams: number;
  max_streams_per_key: number;
  store_wait_s: number;
  max_body_bytes: number;
  max_plan_bytes: number;
  max_plan_nodes: number;
  max_plan_depth: number;
  max_plan_aliases: number;
  max_module_bytes: number;
  max_graph_bytes: number;
  max_graph_files: number;
  max_redirects: number;
  fetch_timeout_s: number;
  tool_timeout_s: number;
  hook_timeout_s: number;
  approval_timeout: number;
  cleanup_timeout_s: number;
  max_tool_output_bytes: number;
  max_tool_result_bytes: number;
  max_tool_image_bytes: number;
  max_answer_tool_calls: number;
  max_answer_blocks: number;
  max_answer_bytes: number;
  max_hooks: number;
  max_log_entries: number;
  max_log_bytes: number;
  max_undo_bytes: number;
  max_session_state_bytes: number;
  max_depth: number;
  max_sessions: number;
  page_limit: number;
  max_page_limit: number;
}

/** Default, unit, range and meaning of each limit. */
export const LIMITS: { readonly [Name in keyof PolicyLimits]: SettingType<PolicyLimits[Name]> } = {
  max_iterations: whole(50, "Provider calls of one run"),
  max_tool_calls: whole(200, "Tool calls of one run; 0 = no tool runs", { min: 0 }),
  max_total_tokens: whole(1_000_000, "Input and output tokens of one run"),
  max_cost_usd: dollars(
    "5",
    "What the model calls of one run may cost; calls without a known price do not count",
  ),
  max_duration_s: seconds(600, "Time that one run may take; waiting for approvals does not count"),
  max_concurrent_runs: whole(64, "Runs of one server at the same time", {
    for_keys: "set limits.max_concurrent_runs of the server; max_runs_per_key limits one key",
  }),
  max_runs_per_key: whole(16, "Runs of one key at the same time, on all servers of the store"),
  max_streams: whole(2_000, "Open event streams of one server", {
    for_keys: "set limits.max_streams of the server; max_streams_per_key limits one key",
  }),
  max_streams_per_key: whole(500, "Open event streams of one key on one server"),
  store_wait_s: seconds(
    60,
    "Time that a run waits for a store that is away or full; then another server continues it",
  ),
  max_body_bytes: bytes(1024 * 1024, "Size of a request's body"),
  max_plan_bytes: bytes(DOCUMENT_LIMITS.max_bytes, "Size of a plan's text"),
  max_plan_nodes: whole(
    DOCUMENT_LIMITS.max_nodes,
    "Values in a plan; an alias counts as the values it refers to",
  ),
  max_plan_depth: whole(DOCUMENT_LIMITS.max_depth, "Nesting of lists and objects in a plan", {
    max: 100, // plans are walked by recursion
  }),
  max_plan_aliases: whole(DOCUMENT_LIMITS.max_aliases, "Uses of YAML anchors in a plan", { min: 0 }),
  max_module_bytes: bytes(5 * 1024 * 1024, "Size of one file of a module"),
  max_graph_bytes: bytes(20 * 1024 * 1024, "Size of a module with all its imports"),
  max_graph_files: whole(500, "Files of a module with all its imports"),
  max_redirects: whole(5, "Redirects of the fetch of one file of a module", { min: 0 }),
  fetch_timeout_s: seconds(10, "Time that the fetch of one file of a module may take"),
  tool_timeout_s: seconds(60, "Time that one tool call may take, without its approvals and sub-agents"),
  hook_timeout_s: seconds(30, "Time that one call of a hook's handler may take"),
  approval_timeout: seconds(300, "Time to answer an approval; after it, the approval's default applies"),
  cleanup_timeout_s: seconds(10, "Time that the cleanup of one module may take"),
  max_tool_output_bytes: bytes(
    256 * 1024,
    "Output of a sandboxed tool without its images; beyond it, the call fails",
  ),
  max_tool_result_bytes: bytes(128 * 1024, "Output of a tool that the model receives; the rest is cut off"),
  max_tool_image_bytes: bytes(
    10 * 1024 * 1024,
    "Images of a tool's result, in base64; the model receives a note in place of those beyond it",
    { min: 0 },
  ),
  max_answer_tool_calls: whole(128, "Tool calls in one model response; more are an error"),
  max_answer_blocks: whole(
    2_000,
    "Content blocks in one model response; more are an error",
  ),
  max_answer_bytes: bytes(16 * 1024 * 1024, "Size of one answer of a model, while it is read"),
  max_hooks: whole(256, "Hook handlers in one session"),
  max_log_entries: whole(100_000, "Entries in the log of one run, not counting deltas"),
  max_log_bytes: bytes(64 * 1024 * 1024, "Size of the log of one run, not counting deltas"),
  max_undo_bytes: bytes(
    64 * 1024 * 1024,
    "Size of the files from before their changes that one run keeps for undo; 0 = none",
    { min: 0 },
  ),
  max_session_state_bytes: bytes(64 * 1024, "Size of the session_state of one session"),
  max_depth: whole(3, "Levels of sub-agents", { min: 0 }),
  max_sessions: whole(16, "Sessions of one run, including sub-agents"),
  page_limit: whole(100, "Items on one page of a list by default", { max: 1000 }),
  max_page_limit: whole(1000, "Items that a request may ask for on one page of a list", { max: 1000 }),
};

/** Returns the limits of a plan's text and data, for `compilePlan`. */
export function documentLimits({ limits }: { limits: PolicyLimits }): DocumentLimits {
  return {
    max_bytes: limits.max_plan_bytes,
    max_nodes: limits.max_plan_nodes,
    max_depth: limits.max_plan_depth,
    max_aliases: limits.max_plan_aliases,
  };
}

/** Limits that plan and request ask for. */
export interface AskedLimits {
  plan?: Partial<RunLimits>;
  request?: Partial<RunLimits>;
}

/** The effective limits, and reasons for those above the policy's. */
export interface CombinedLimits {
  limits: RunLimits;
  /**
   * Source of the dollar limit. An unpriced call ends the run under `asked`, and does not count under
   * `policy`.
   */
  cost_limit: "asked" | "policy";
  reasons: ErrorDetail[];
}

/** Returns the smallest of each limit. Values above the policy's are reasons to refuse. */
export function combineLimits(
  policy: Pick<RunLimits, LimitName>,
  { plan = {}, request = {} }: AskedLimits,
): CombinedLimits {
  const { max_iterations, max_tool_calls, max_total_tokens, max_cost_usd, max_duration_s } = policy;
  const limits: RunLimits = {
    max_iterations,
    max_tool_calls,
    max_total_tokens,
    max_cost_usd,
    max_duration_s,
  };
  const reasons: ErrorDetail[] = [];
  for (const [path, asked] of [["limits", plan], ["request.limits", request]] as const) {
    for (const name of LIMIT_NAMES) {
      const value = asked[name];
      if (value === undefined || compareLimit(value, policy[name]) <= 0) continue;
      const most = JSON.stringify(policy[name]);
      reasons.push({
        path: `${path}.${name}`,
        message: `Cannot raise ${name}: the policy's limit is ${most}: received ${JSON.stringify(value)}`,
        hint: `write at most ${most}, or leave it out`,
      });
    }
    lowerLimits<LimitName>(limits, asked);
  }
  if ((request.on_limit ?? plan.on_limit) === "pause") limits.on_limit = "pause";
  const asks_cost = plan.max_cost_usd !== undefined || request.max_cost_usd !== undefined;
  return { limits, cost_limit: asks_cost ? "asked" : "policy", reasons };
}

/** Sets each of the limits to that of `over` if it is lower. */
export function lowerLimits<Name extends keyof PolicyLimits>(
  limits: Pick<PolicyLimits, Name>,
  over: Partial<Pick<PolicyLimits, Name>>,
): void {
  for (const name of Object.keys(limits) as Name[]) { // `over` may have what is no number, such as on_limit
    const value = over[name];
    if (value !== undefined && compareLimit(value, limits[name]) < 0) limits[name] = value;
  }
}
