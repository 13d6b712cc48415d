/**
 * The kinds of attack, one row each: the plan's grant, the expected outcome,
 * and the effect of the same code without a sandbox. The code is in `tests/fixtures/hostile/`.
 */

/** The permissions that the plan grants to the attacker; the runner adds paths and ports. */
export type Grant = "nothing" | "folder" | "writable" | "open host" | "folder and open host";

/** The expected outcome. The run completes and nothing else is affected, unless a row states otherwise. */
export type Seen =
  /**
   * The call answers; every access was refused except those in `but`, which are documented limits of the
   * sandbox.
   */
  | { readonly doors: "shut"; readonly but?: readonly string[] }
  /** The call answers, and every access succeeded: granted permissions work. */
  | { readonly doors: "open" }
  /** The call fails with one of these codes. */
  | { readonly fails: readonly string[] }
  /** The call answers, and its actions had no effect. */
  | { readonly answers: true }
  /** The call answers or fails. */
  | { readonly ends: true }
  /** The module is skipped; the run continues without it. */
  | { readonly skipped: true }
  /** Every tool call is denied, by a gate that fails closed. */
  | { readonly denied: true }
  /** The run ends with one of these statuses. */
  | { readonly run: readonly string[] }
  /** The plan is refused before there is a run. */
  | { readonly refused: readonly string[] };

/** The effect of the attack without a sandbox, which proves that it is an attack. */
export type Bare = "opens" | "hangs" | "dies" | "grows" | "speaks" | "answers" | "throws";

/** One row. */
export interface EscapeKind {
  readonly name: string;
  /** File of `tests/fixtures/hostile/` without extension. */
  readonly file: string;
  readonly grant: Grant;
  readonly seen: Seen;
  readonly bare: Bare;
  /** Accesses that fail even without a sandbox, in this or another version of Deno. */
  readonly bare_shut?: readonly string[];
  readonly as: "tool" | "hook" | "provider" | "context" | "orchestrator";
  /** Arguments of the calls of `attack`, one call each. Default: one call. */
  readonly inputs?: readonly Readonly<Record<string, unknown>>[];
  /** Whether the plan has a hook that denies the calculator, which must then never run. */
  readonly gate?: true;
  /** Whether another guest is in the run and must be unaffected. */
  readonly bystander?: true;
}

type Row = Partial<Omit<EscapeKind, "name" | "file" | "seen" | "bare">>;

const SHUT: Seen = { doors: "shut" };
const ANSWERS: Seen = { answers: true };
const ENDS: Seen = { ends: true };
const SKIPPED: Seen = { skipped: true };
const TIMEOUT: Seen = { fails: ["tool_timeout"] };
const MEMORY: Seen = { fails: ["tool_memory_exceeded"] };
/** An uncaught error is logged; the call continues or ends with the guest. */
const UNCAUGHT: Seen = { fails: ["tool_crashed", "tool_timeout"] };
const OUTPUT: Seen = { fails: ["tool_output_exceeded"] };
const DENIED: Seen = { fails: ["tool_permission_denied"] };

function kind(file: string, name: string, seen: Seen, bare: Bare, row: Row = {}): EscapeKind {
  return { file, name, seen, bare, grant: "nothing", as: "tool", ...row };
}

/** Returns a function that creates the rows of one file. */
function of(file: string, shared: Row = {}) {
  return (name: string, seen: Seen, bare: Bare, row: Row = {}) =>
    kind(file, name, seen, bare, { ...shared, ...row });
}

const time = of("time");
const memory = of("memory");
const exits = of("exits", { bystander: true });
const escalation = of("escalation");
const files = of("files", { grant: "folder" });
const network = of("network", { grant: "open host" });
const frames = of("frames");
const floods = of("floods");
const results = of("results");
const globals = of("globals");
const lies = of("lies");
const hooks = of("hooks", { as: "hook" });
const providers = of("providers", { as: "provider" });
const contexts = of("contexts", { as: "context" });
const orchestrators = of("orchestrators", { as: "orchestrator" });
const spy = of("spy");

/** Calls a second time, after timers of the first call have fired. */
const TWICE = [{}, { again: true }];

/** Every kind. */
export const ESCAPE_KINDS: readonly EscapeKind[] = [
  time("loop_sync", TIMEOUT, "hangs", { bystander: true }),
  time("loop_microtask", TIMEOUT, "hangs"),
  time("loop_regex", TIMEOUT, "hangs"),
  time("loop_bigint", { fails: ["tool_timeout", "tool_memory_exceeded", "tool_crashed"] }, "hangs"),
  time("loop_native", TIMEOUT, "hangs"),
  time("loop_wasm", TIMEOUT, "hangs"),
  time("loop_webcrypto", TIMEOUT, "hangs"),
  time("loop_wait", ENDS, "hangs"),
  time("never_settles", TIMEOUT, "hangs"),
  time("ignores_abort", TIMEOUT, "hangs"),
  time("thenable_never", TIMEOUT, "hangs"),

  memory("heap_bomb", MEMORY, "grows", { bystander: true }),
  memory("heap_bomb_polite", { fails: ["tool_memory_exceeded", "tool_timeout"] }, "grows"),
  memory("buffer_bomb", MEMORY, "grows"),
  memory("buffer_burst", { fails: ["tool_memory_exceeded", "tool_crashed", "RangeError"] }, "grows"),
  memory("array_burst", MEMORY, "grows"),
  memory("string_bomb", MEMORY, "grows"),
  // the system's limit may be there first: the engine says that it cannot grow
  memory("wasm_bomb", { fails: ["tool_memory_exceeded", "RangeError"] }, "grows"),
  memory("blob_bomb", MEMORY, "grows"),
  memory("timer_bomb", { fails: ["tool_memory_exceeded", "tool_timeout"] }, "grows"),
  // the limit of the system may be reached before the watchdog checks: the next message then fails in the
  // module
  memory("message_bomb", { fails: ["tool_memory_exceeded", "DataCloneError"] }, "grows"),

  exits("exit_deno", ENDS, "dies"),
  exits("exit_process", ENDS, "dies"),
  exits("exit_abort", ENDS, "dies"),
  exits("kill_self", ENDS, "dies"),
  exits("debug_self", ENDS, "dies"),
  exits("kill_others", SHUT, "opens"),
  exits("self_close", DENIED, "dies"),
  exits("throw_in_timer", UNCAUGHT, "dies"),
  exits("unhandled_rejection", UNCAUGHT, "dies"),
  exits("report_error", UNCAUGHT, "dies"),
  exits("throw_after_answer", ENDS, "dies", { inputs: TWICE }),
  exits("stack_overflow", { fails: ["RangeError"] }, "throws"),
  exits("stack_overflow_native", ENDS, "answers"),

  escalation("nested_worker", SHUT, "opens"),
  escalation("computed_import", SHUT, "opens", { bare_shut: ["http"] }),
  escalation("import_from_string", SHUT, "opens"),
  escalation("code_from_string", SHUT, "opens"),
  escalation("node_doors", SHUT, "opens"),
  escalation("internals", SHUT, "opens", { bare_shut: ["op_read", "op_env"] }),
  escalation("call_sites", SHUT, "answers"),
  escalation("spawn", SHUT, "opens"),
  escalation("ffi", SHUT, "opens"),
  escalation("storage", SHUT, "opens"),
  escalation("channels", SHUT, "opens"),
  escalation("inspector", SHUT, "opens"),
  escalation("permission_prompt", SHUT, "opens"),
  escalation("environment", SHUT, "opens"),
  escalation("machine", SHUT, "opens"),
  escalation("denied_read", DENIED, "answers"),
  escalation("denied_write", DENIED, "answers"),
  escalation("denied_net", DENIED, "answers"),
  escalation("denied_env", DENIED, "answers"),
  escalation("denied_sys", DENIED, "answers"),

  files("read_granted", { doors: "open" }, "opens"),
  files("read_outside", SHUT, "opens", { bare_shut: ["up_and_down"] }),
  // Deno follows symbolic links in a granted folder: a grant of the folder includes the targets of its links
  files("read_links", { doors: "shut", but: ["to_file", "to_folder", "handle", "chain"] }, "opens"),
  files("read_proc", SHUT, "opens", {
    bare_shut: ["self_mem", "self_fd/0", "device"],
  }),
  files("write_anywhere", SHUT, "opens", {
    bare_shut: ["rename", "shared_memory", "link", "symlink", "temporary"],
  }),
  files("write_temporary", ENDS, "answers", { grant: "writable" }),
  files("write_link_out", SHUT, "opens", { grant: "writable" }),

  network("reach_granted", { doors: "open" }, "opens"),
  network("reach_others", SHUT, "opens", {
    bare_shut: ["socket", "[::1]", "[::ffff:127.0.0.1]"],
  }),
  network("unix_socket", SHUT, "opens"),
  network("names", SHUT, "opens", { bare_shut: ["resolve", "resolve_other"] }),
  network("listen", SHUT, "opens"),
  network("redirect", SHUT, "opens", { bare_shut: ["to_file"] }),
  network("proxy", SHUT, "opens"),
  network("unix_listen", SHUT, "opens", { grant: "folder and open host" }),

  frames("forge_messages", ENDS, "answers", { bystander: true }),
  frames("overhear", ENDS, "answers", { bystander: true }),
  frames("raw_output", SHUT, "opens", { bare_shut: ["device", "proc"] }),
  frames("console_forgery", ANSWERS, "speaks"),
  frames("raw_input", SHUT, "answers"),
  frames("emit_from_timer", ENDS, "speaks", { inputs: TWICE, bystander: true }),
  frames("act_from_timer", ENDS, "speaks", { inputs: TWICE, bystander: true }),
  frames("foreign_capability", SHUT, "answers"),
  frames("progress_after", ENDS, "speaks", { inputs: TWICE }),
  frames("raw_no_frame", ENDS, "answers", { bystander: true }),
  frames("raw_other_call", ENDS, "answers", { bystander: true }),
  frames("raw_second_start", ENDS, "answers"),
  frames("raw_unknown_effect", ENDS, "answers"),
  frames("raw_prototype", ENDS, "answers"),
  frames("raw_long_line", ENDS, "speaks"),
  frames("raw_flood_cheap", ENDS, "speaks"),
  frames("raw_flood_questions", ENDS, "speaks"),
  frames("raw_flood_effects", ENDS, "speaks"),
  frames("gate_removed", ENDS, "answers", { gate: true }),
  frames("gate_misled", ENDS, "answers", { gate: true }),
  frames("gate_forged", ENDS, "speaks", { gate: true }),
  frames("forged_code", { fails: ["PreampError", "tool_crashed", "Error"] }, "throws", {}),

  floods("progress_flood", ENDS, "speaks"),
  floods("progress_flood_polite", ENDS, "speaks"),
  floods("progress_huge", ENDS, "speaks"),
  floods("console_flood", ENDS, "speaks"),
  floods("console_huge", ENDS, "speaks"),
  floods("emit_flood", ENDS, "speaks"),
  floods("emit_huge", ENDS, "speaks"),
  floods("output_bomb", OUTPUT, "speaks", { bystander: true }),
  // its copies may be more than its memory before the first byte of it is out
  floods(
    "output_huge",
    { fails: ["tool_output_exceeded", "tool_memory_exceeded", "tool_crashed"] },
    "speaks",
  ),
  floods("output_many_keys", OUTPUT, "speaks"),
  floods("output_deep", ENDS, "answers"),
  floods("output_error_huge", ENDS, "throws"),
  floods("output_binary", OUTPUT, "speaks"),
  floods("state_overflow", ENDS, "answers"),
  floods("state_overflow_slowly", ENDS, "answers"),
  floods("contribution_flood", ENDS, "speaks"),
  floods("call_flood", { run: ["incomplete"] }, "speaks"),

  results("result_cyclic", ENDS, "answers"),
  results("result_getters", ENDS, "answers"),
  results("result_proxy", ENDS, "answers"),
  results("result_to_json", ENDS, "speaks"),
  results("result_to_json_throws", ENDS, "answers"),
  results("result_exotic", ENDS, "answers"),
  results("result_function", ENDS, "answers"),
  results("result_symbol", ENDS, "answers"),
  results("result_bigint", ENDS, "answers"),
  results("result_binary", ENDS, "answers"),
  results("result_prototype", ENDS, "answers"),
  results("result_prototype_deep", ENDS, "answers"),
  results("result_lookalike", ANSWERS, "answers"),
  results("result_claims", ENDS, "answers"),
  results("result_shared", ENDS, "speaks"),
  results("error_huge", ENDS, "throws"),
  results("error_cycle", { fails: ["Error"] }, "throws"),
  results("error_aggregate", ENDS, "throws"),
  results("error_getters", ENDS, "throws"),
  results("error_nothing", ENDS, "throws"),
  results("error_proxy", ENDS, "throws"),
  results("error_lookalike", ENDS, "throws"),

  globals("pollute", ENDS, "answers", { bystander: true }),
  globals("patch_primitives", ENDS, "answers", { bystander: true }),
  globals("setters_on_prototype", ENDS, "answers", { bystander: true }),
  globals("break_everything", ENDS, "throws", { bystander: true }),
  globals("then_on_prototype", ENDS, "hangs", { bystander: true }),
  globals("look", ANSWERS, "answers"),

  lies("schema_huge", SKIPPED, "answers"),
  lies("schema_regex", TIMEOUT, "answers", { inputs: [{ text: `${"a".repeat(64)}!` }] }),
  lies("schema_getter", ENDS, "answers"),
  lies("schema_cyclic", ENDS, "answers"),
  lies("schema_deep", ENDS, "answers"),
  lies("schema_reference", ENDS, "answers"),
  lies("schema_nonsense", ENDS, "answers"),
  lies("name_control", ENDS, "answers"),
  lies("name_collision", ENDS, "answers"),
  lies("name_prototype", ENDS, "answers"),
  lies("name_huge", ENDS, "answers"),
  lies("name_changing", ENDS, "answers"),
  lies("description_huge", ENDS, "answers"),
  lies("description_lookalike", ANSWERS, "answers"),
  lies("many_tools", ENDS, "speaks"),
  lies("many_hooks", ENDS, "speaks"),
  lies("many_events", ENDS, "speaks"),
  lies("other_points", ENDS, "speaks"),
  lies("unmounts_others", ENDS, "speaks"),
  lies("mount_throws", SKIPPED, "throws"),
  lies("mount_never", SKIPPED, "hangs"),
  lies("mount_loop", SKIPPED, "hangs", { bystander: true }),
  lies("mount_nothing", SKIPPED, "answers"),
  lies("mount_number", SKIPPED, "answers"),
  lies("mount_proxy", SKIPPED, "answers"),
  lies("mount_self", SKIPPED, "answers"),
  lies("mount_exit", SKIPPED, "dies"),
  lies("mount_flood", SKIPPED, "answers"),
  lies("ready_throws", ANSWERS, "throws"),
  lies("ready_never", ENDS, "hangs"),
  lies("ready_loop", ENDS, "hangs"),
  lies("cleanup_throws", ANSWERS, "throws"),
  lies("cleanup_never", ANSWERS, "hangs"),
  lies("cleanup_loop", ANSWERS, "hangs"),

  kind("top_loop", "top_loop", SKIPPED, "hangs"),
  kind("top_never", "top_never", SKIPPED, "hangs"),
  kind("top_throw", "top_throw", SKIPPED, "throws"),
  kind("top_memory", "top_memory", SKIPPED, "grows"),
  kind("top_flood", "top_flood", SKIPPED, "speaks"),
  kind("top_patch", "top_patch", ENDS, "throws", { bystander: true }),
  kind("no_mount", "no_mount", { refused: ["module_invalid"] }, "throws"),
  kind("static_node_import", "static_node_import", { refused: ["module_invalid"] }, "answers"),

  hooks("hook_deny", { denied: true }, "speaks"),
  hooks("hook_deny_prompt", { run: ["denied"] }, "speaks"),
  hooks("hook_silent", { denied: true }, "hangs"),
  hooks("hook_silent_for_ever", { denied: true }, "hangs"),
  hooks("hook_loop", { denied: true }, "hangs"),
  hooks("hook_loop_observer", ENDS, "hangs"),
  hooks("hook_throw", { denied: true }, "throws"),
  hooks("hook_crash", { denied: true }, "dies"),
  hooks("hook_nonsense", { denied: true }, "speaks"),
  hooks("hook_huge", { denied: true }, "speaks"),
  hooks("hook_inject", ENDS, "speaks"),
  hooks("hook_inject_often", { run: ["completed", "failed"] }, "speaks"),
  hooks("hook_modify_prototype", ENDS, "speaks"),
  hooks("hook_modify_cyclic", ENDS, "speaks"),
  hooks("hook_recursion", ENDS, "throws"),
  hooks("hook_ask_huge", { denied: true }, "speaks"),
  hooks("hook_priority", ENDS, "speaks"),

  providers("provider_loop", { run: ["failed", "incomplete"] }, "hangs"),
  providers("provider_never", { run: ["failed", "incomplete"] }, "hangs"),
  providers("provider_crash", { run: ["failed", "incomplete"] }, "dies"),
  providers("provider_memory", { run: ["failed"] }, "grows"),
  providers("provider_huge", { run: ["failed"] }, "speaks"),
  providers("provider_deltas", { run: ["failed", "completed", "incomplete"] }, "speaks"),
  providers("provider_nonsense", { run: ["failed"] }, "answers"),
  providers("provider_calls", { run: ["incomplete", "failed"] }, "speaks"),
  providers("provider_usage", { run: ["completed", "failed"] }, "answers"),
  providers("provider_lookalike", { run: ["completed"] }, "answers"),

  contexts("context_loop", { run: ["failed", "incomplete"] }, "hangs"),
  contexts("context_never", { run: ["failed", "incomplete"] }, "hangs"),
  contexts("context_crash", { run: ["failed", "incomplete"] }, "dies"),
  contexts("context_memory", { run: ["failed"] }, "grows"),
  contexts("context_nonsense", { run: ["failed"] }, "answers"),
  contexts("context_huge", { run: ["failed"] }, "speaks"),

  orchestrators("orchestrator_loop", { run: ["failed", "incomplete"] }, "hangs"),
  orchestrators("orchestrator_never", { run: ["failed", "incomplete"] }, "hangs", {}),
  orchestrators("orchestrator_crash", { run: ["failed", "incomplete"] }, "dies"),
  orchestrators("orchestrator_spend", { run: ["incomplete", "failed"] }, "hangs"),
  orchestrators("orchestrator_ungated", { run: ["completed"] }, "speaks", {
    gate: true,
  }),
  orchestrators("orchestrator_huge", { run: ["failed"] }, "speaks"),
  orchestrators("orchestrator_events", { run: ["completed", "failed"] }, "speaks"),

  spy("spy_coordinator", ENDS, "answers", { bystander: true }),
  spy("spy_globals", ENDS, "answers", { bystander: true }),
  // WebAssembly memory can be shared, but a guest has no second thread to share it with (documented)
  spy("shared_memory", { doors: "shut", but: ["of_wasm"] }, "opens"),
];
