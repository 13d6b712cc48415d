/**
 * The kinds of attack, one row each: whose threat it is (threats.md), what the plan grants, what must be seen in the tiers that
 * claim to stop it, and what the same code does with nothing around it. The code is in `tests/fixtures/hostile/`.
 */

/** A tier that an attack is run in. */
export type EscapeTier = "process" | "worker";

/** What a plan grants to the attacker; the runner knows the paths and ports. */
export type Grant = "nothing" | "folder" | "writable" | "open host" | "folder and open host";

/** What must be seen when the attack is over. The run completes, and nothing else is disturbed, unless a row says so. */
export type Seen =
  /** The call answers; every door it tried was shut but those named, which are the limits that the documents tell. */
  | { readonly doors: "shut"; readonly but?: readonly string[] }
  /** The call answers, and every door opened: what was granted works. */
  | { readonly doors: "open" }
  /** The call fails with one of these codes. */
  | { readonly fails: readonly string[] }
  /** The call answers: whatever it did was harmless. */
  | { readonly answers: true }
  /** The call answers or fails: how is the tool's own affair. */
  | { readonly ends: true }
  /** The module is skipped; the run goes on without it. */
  | { readonly skipped: true }
  /** Every tool call is denied, by a gate that fails closed. */
  | { readonly denied: true }
  /** The run ends otherwise. */
  | { readonly run: readonly string[] }
  /** The plan is refused before there is a run. */
  | { readonly refused: readonly string[] };

/** What the attack does with nothing around it: the proof that it is one. */
export type Bare = "opens" | "hangs" | "dies" | "grows" | "speaks" | "answers" | "throws";

/** One row. */
export interface EscapeKind {
  readonly name: string;
  /** File of `tests/fixtures/hostile/` without extension. */
  readonly file: string;
  /** Ids of threats.md, or the page that promises it. */
  readonly threat: string;
  readonly grant: Grant;
  readonly seen: Seen;
  readonly bare: Bare;
  /** Doors that do not open even with nothing around them, here or in another version of Deno. */
  readonly bare_shut?: readonly string[];
  /** Tiers that claim to stop it. */
  readonly tiers: readonly EscapeTier[];
  readonly as: "tool" | "hook" | "provider" | "context" | "orchestrator";
  /** Arguments of the calls of `attack`, one call each. Default: one call. */
  readonly inputs?: readonly Readonly<Record<string, unknown>>[];
  /** Whether the plan has a hook that denies the calculator, which must then never run. */
  readonly gate?: true;
  /** Whether another guest is in the run, and must be as well as before. */
  readonly bystander?: true;
}

type Row = Partial<Omit<EscapeKind, "name" | "file" | "threat" | "seen" | "bare">>;

const BOTH: readonly EscapeTier[] = ["process", "worker"];
const SHUT: Seen = { doors: "shut" };
const ANSWERS: Seen = { answers: true };
const ENDS: Seen = { ends: true };
const SKIPPED: Seen = { skipped: true };
const TIMEOUT: Seen = { fails: ["tool_timeout"] };
const MEMORY: Seen = { fails: ["tool_memory_exceeded"] };
/** What nobody catches is told to the log, and the call goes on or ends with the guest. */
const UNCAUGHT: Seen = { fails: ["tool_crashed", "tool_timeout"] };
const OUTPUT: Seen = { fails: ["tool_output_exceeded"] };
const DENIED: Seen = { fails: ["tool_permission_denied"] };

function kind(file: string, name: string, threat: string, seen: Seen, bare: Bare, row: Row = {}): EscapeKind {
  return { file, name, threat, seen, bare, grant: "nothing", tiers: ["process"], as: "tool", ...row };
}

/** Rows of one file. */
function of(file: string, shared: Row = {}) {
  return (name: string, threat: string, seen: Seen, bare: Bare, row: Row = {}) =>
    kind(file, name, threat, seen, bare, { ...shared, ...row });
}

const time = of("time");
const memory = of("memory");
const exits = of("exits", { bystander: true });
const escalation = of("escalation", { tiers: BOTH });
const files = of("files", { tiers: BOTH, grant: "folder" });
const network = of("network", { tiers: BOTH, grant: "open host" });
const frames = of("frames");
const floods = of("floods");
const results = of("results", { tiers: BOTH });
const globals = of("globals", { tiers: BOTH });
const lies = of("lies");
const hooks = of("hooks", { as: "hook" });
const providers = of("providers", { as: "provider" });
const contexts = of("contexts", { as: "context" });
const orchestrators = of("orchestrators", { as: "orchestrator" });
const spy = of("spy", { tiers: BOTH });

/** Calls again, once what the first call left behind has had its time. */
const TWICE = [{}, { again: true }];

/** Every kind. */
export const ESCAPE_KINDS: readonly EscapeKind[] = [
  time("loop_sync", "T13", TIMEOUT, "hangs", { bystander: true }),
  time("loop_microtask", "T13", TIMEOUT, "hangs"),
  time("loop_regex", "T13 T39", TIMEOUT, "hangs"),
  time("loop_bigint", "T13", { fails: ["tool_timeout", "tool_memory_exceeded", "tool_crashed"] }, "hangs"),
  time("loop_native", "T13", TIMEOUT, "hangs"),
  time("loop_wasm", "T13", TIMEOUT, "hangs"),
  time("loop_webcrypto", "T13", TIMEOUT, "hangs"),
  time("loop_wait", "T13 T43", ENDS, "hangs"),
  time("never_settles", "T13", TIMEOUT, "hangs", { tiers: BOTH }),
  time("ignores_abort", "T13", TIMEOUT, "hangs", { tiers: BOTH }),
  time("thenable_never", "T13", TIMEOUT, "hangs", { tiers: BOTH }),

  memory("heap_bomb", "T14", MEMORY, "grows", { bystander: true }),
  memory("heap_bomb_polite", "T14", { fails: ["tool_memory_exceeded", "tool_timeout"] }, "grows"),
  memory("buffer_bomb", "T14", MEMORY, "grows"),
  memory("buffer_burst", "T14", { fails: ["tool_memory_exceeded", "tool_crashed", "RangeError"] }, "grows"),
  memory("array_burst", "T14", MEMORY, "grows"),
  memory("string_bomb", "T14", MEMORY, "grows"),
  // the system's limit may be there first: the engine says that it cannot grow
  memory("wasm_bomb", "T14", { fails: ["tool_memory_exceeded", "RangeError"] }, "grows"),
  memory("blob_bomb", "T14", MEMORY, "grows"),
  memory("timer_bomb", "T14", { fails: ["tool_memory_exceeded", "tool_timeout"] }, "grows"),
  // the system's limit may come before the watch: then there is no room for the next message, and the module is told so
  memory("message_bomb", "T14", { fails: ["tool_memory_exceeded", "DataCloneError"] }, "grows"),

  exits("exit_deno", "T15", ENDS, "dies", { tiers: BOTH }),
  exits("exit_process", "T15", ENDS, "dies", { tiers: BOTH }),
  exits("exit_abort", "T15", ENDS, "dies", { tiers: BOTH }),
  exits("kill_self", "T15", ENDS, "dies", { tiers: BOTH }),
  exits("debug_self", "T15 T16", ENDS, "dies", { tiers: BOTH }),
  exits("kill_others", "T15", SHUT, "opens", { tiers: BOTH }),
  exits("self_close", "T15", DENIED, "dies", { tiers: BOTH }),
  exits("throw_in_timer", "T15 T40", UNCAUGHT, "dies", { tiers: BOTH }),
  exits("unhandled_rejection", "T15 T40", UNCAUGHT, "dies", { tiers: BOTH }),
  exits("report_error", "T15 T40", UNCAUGHT, "dies", { tiers: BOTH }),
  exits("throw_after_answer", "T15", ENDS, "dies", { inputs: TWICE, tiers: BOTH }),
  exits("stack_overflow", "T15", { fails: ["RangeError"] }, "throws", { tiers: BOTH }),
  exits("stack_overflow_native", "T15", ENDS, "answers", { tiers: BOTH }),

  escalation("nested_worker", "T16", SHUT, "opens"),
  escalation("computed_import", "T16 T45", SHUT, "opens", { bare_shut: ["http"] }),
  escalation("import_from_string", "T16 T45", SHUT, "opens"),
  escalation("code_from_string", "T45", SHUT, "opens", { tiers: ["process"] }),
  escalation("node_doors", "T16", SHUT, "opens"),
  escalation("internals", "T16", SHUT, "opens", { bare_shut: ["op_read", "op_env"] }),
  escalation("call_sites", "T16", SHUT, "answers"),
  escalation("spawn", "T16 T38", SHUT, "opens"),
  escalation("ffi", "T16", SHUT, "opens"),
  escalation("storage", "T16", SHUT, "opens"),
  escalation("channels", "T16 T43", SHUT, "opens"),
  escalation("inspector", "T16", SHUT, "opens"),
  escalation("permission_prompt", "T16 T44", SHUT, "opens"),
  escalation("environment", "T6 T21", SHUT, "opens"),
  escalation("machine", "T16", SHUT, "opens"),
  escalation("denied_read", "T16", DENIED, "answers"),
  escalation("denied_write", "T16", DENIED, "answers"),
  escalation("denied_net", "T16", DENIED, "answers"),
  escalation("denied_env", "T16", DENIED, "answers"),
  escalation("denied_sys", "T16", DENIED, "answers"),

  files("read_granted", "trust.md", { doors: "open" }, "opens"),
  files("read_outside", "T37", SHUT, "opens", { bare_shut: ["up_and_down"] }),
  // Deno follows a link that lies in a granted folder already: whoever grants the folder grants what its links show (T37)
  files("read_links", "T37", { doors: "shut", but: ["to_file", "to_folder", "handle", "chain"] }, "opens"),
  files("read_proc", "T37 T21", SHUT, "opens", {
    bare_shut: ["self_mem", "self_fd/0", "device"],
  }),
  files("write_anywhere", "T37 T45", SHUT, "opens", {
    bare_shut: ["rename", "shared_memory", "link", "symlink", "temporary"],
  }),
  files("write_temporary", "T45", ENDS, "answers", { grant: "writable" }),
  files("write_link_out", "T37", SHUT, "opens", { grant: "writable" }),

  network("reach_granted", "trust.md", { doors: "open" }, "opens"),
  network("reach_others", "T1 T16", SHUT, "opens", {
    bare_shut: ["socket", "[::1]", "[::ffff:127.0.0.1]"],
  }),
  network("unix_socket", "T16", SHUT, "opens"),
  network("names", "T16", SHUT, "opens", { bare_shut: ["resolve", "resolve_other"] }),
  network("listen", "T16", SHUT, "opens"),
  network("redirect", "T2", SHUT, "opens", { bare_shut: ["to_file"] }),
  network("proxy", "T3", SHUT, "opens"),
  network("unix_listen", "T16", SHUT, "opens", { grant: "folder and open host" }),

  frames("forge_messages", "T19", ENDS, "answers", { bystander: true, tiers: BOTH }),
  frames("overhear", "T19", ENDS, "answers", { bystander: true, tiers: BOTH }),
  frames("raw_output", "T19", SHUT, "opens", { bare_shut: ["device", "proc"] }),
  frames("console_forgery", "T18 T19 T40", ANSWERS, "speaks", { tiers: BOTH }),
  frames("raw_input", "T19", SHUT, "answers"),
  frames("emit_from_timer", "T19", ENDS, "speaks", { inputs: TWICE, bystander: true, tiers: BOTH }),
  frames("act_from_timer", "T19", ENDS, "speaks", { inputs: TWICE, bystander: true, tiers: BOTH }),
  frames("foreign_capability", "T19", SHUT, "answers", { tiers: BOTH }),
  frames("progress_after", "T19", ENDS, "speaks", { inputs: TWICE, tiers: BOTH }),
  frames("raw_no_frame", "T19", ENDS, "answers", { bystander: true, tiers: BOTH }),
  frames("raw_other_call", "T19", ENDS, "answers", { bystander: true, tiers: BOTH }),
  frames("raw_second_start", "T19", ENDS, "answers", { tiers: BOTH }),
  frames("raw_unknown_effect", "T19", ENDS, "answers", { tiers: BOTH }),
  frames("raw_prototype", "T9 T19", ENDS, "answers", { tiers: BOTH }),
  frames("raw_long_line", "T17 T19", ENDS, "speaks"),
  frames("raw_flood_cheap", "T17 T19", ENDS, "speaks"),
  frames("raw_flood_questions", "T17 T19", ENDS, "speaks"),
  frames("raw_flood_effects", "T17 T19", ENDS, "speaks"),
  frames("gate_removed", "T19 T20", ENDS, "answers", { gate: true, tiers: BOTH }),
  frames("gate_misled", "T19 T20", ENDS, "answers", { gate: true, tiers: BOTH }),
  frames("gate_forged", "T19 T20", ENDS, "speaks", { gate: true, tiers: BOTH }),
  frames("forged_code", "T19", { fails: ["PreampError", "tool_crashed", "Error"] }, "throws", {
    tiers: BOTH,
  }),

  floods("progress_flood", "T17", ENDS, "speaks"),
  floods("progress_flood_polite", "T17", ENDS, "speaks"),
  floods("progress_huge", "T17", ENDS, "speaks"),
  floods("console_flood", "T17", ENDS, "speaks"),
  floods("console_huge", "T17", ENDS, "speaks"),
  floods("emit_flood", "T17 T42", ENDS, "speaks"),
  floods("emit_huge", "T17 T42", ENDS, "speaks"),
  floods("output_bomb", "T17", OUTPUT, "speaks", { bystander: true }),
  // its copies may be more than its memory before the first byte of it is out
  floods(
    "output_huge",
    "T17",
    { fails: ["tool_output_exceeded", "tool_memory_exceeded", "tool_crashed"] },
    "speaks",
  ),
  floods("output_many_keys", "T17", OUTPUT, "speaks"),
  floods("output_deep", "T8", ENDS, "answers"),
  floods("output_error_huge", "T17", ENDS, "throws"),
  floods("output_binary", "T17", OUTPUT, "speaks"),
  floods("state_overflow", "trust.md, Limits", ENDS, "answers"),
  floods("state_overflow_slowly", "trust.md, Limits", ENDS, "answers"),
  floods("contribution_flood", "T17", ENDS, "speaks"),
  floods("call_flood", "T12", { run: ["incomplete"] }, "speaks"),

  results("result_cyclic", "T9", ENDS, "answers"),
  results("result_getters", "T9", ENDS, "answers"),
  results("result_proxy", "T9", ENDS, "answers"),
  results("result_to_json", "T9 T17", ENDS, "speaks"),
  results("result_to_json_throws", "T9", ENDS, "answers"),
  results("result_exotic", "T9", ENDS, "answers"),
  results("result_function", "T9", ENDS, "answers"),
  results("result_symbol", "T9", ENDS, "answers"),
  results("result_bigint", "T9", ENDS, "answers"),
  results("result_binary", "T18", ENDS, "answers"),
  results("result_prototype", "T9", ENDS, "answers"),
  results("result_prototype_deep", "T9", ENDS, "answers"),
  results("result_lookalike", "T18 T40", ANSWERS, "answers"),
  results("result_claims", "T18", ENDS, "answers"),
  results("result_shared", "T43", ENDS, "speaks"),
  results("error_huge", "T17", ENDS, "throws"),
  results("error_cycle", "T9", { fails: ["Error"] }, "throws"),
  results("error_aggregate", "T9", ENDS, "throws"),
  results("error_getters", "T9", ENDS, "throws", { tiers: ["process"] }),
  results("error_nothing", "T9", ENDS, "throws"),
  results("error_proxy", "T9", ENDS, "throws"),
  results("error_lookalike", "T18 T40", ENDS, "throws"),

  globals("pollute", "T9 T16", ENDS, "answers", { bystander: true }),
  globals("patch_primitives", "T16", ENDS, "answers", { bystander: true }),
  globals("setters_on_prototype", "T9 T16", ENDS, "answers", { bystander: true }),
  globals("break_everything", "T16", ENDS, "throws", { bystander: true }),
  globals("then_on_prototype", "T16", ENDS, "hangs", { bystander: true }),
  globals("look", "T9", ANSWERS, "answers"),

  lies("schema_huge", "trust.md", SKIPPED, "answers"),
  lies("schema_regex", "T39", TIMEOUT, "answers", { inputs: [{ text: `${"a".repeat(64)}!` }] }),
  lies("schema_getter", "trust.md", ENDS, "answers", { tiers: BOTH }),
  lies("schema_cyclic", "trust.md", ENDS, "answers", { tiers: BOTH }),
  lies("schema_deep", "T8", ENDS, "answers"),
  lies("schema_reference", "trust.md", ENDS, "answers", { tiers: BOTH }),
  lies("schema_nonsense", "trust.md", ENDS, "answers", { tiers: BOTH }),
  lies("name_control", "T40", ENDS, "answers", { tiers: BOTH }),
  lies("name_collision", "trust.md", ENDS, "answers", { tiers: BOTH }),
  lies("name_prototype", "T9", ENDS, "answers", { tiers: BOTH }),
  lies("name_huge", "trust.md", ENDS, "answers"),
  lies("name_changing", "trust.md", ENDS, "answers", { tiers: BOTH }),
  lies("description_huge", "trust.md", ENDS, "answers"),
  lies("description_lookalike", "T18", ANSWERS, "answers", { tiers: BOTH }),
  lies("many_tools", "trust.md", ENDS, "speaks"),
  lies("many_hooks", "T20", ENDS, "speaks"),
  lies("many_events", "T20", ENDS, "speaks"),
  lies("other_points", "trust.md", ENDS, "speaks", { tiers: BOTH }),
  lies("unmounts_others", "trust.md", ENDS, "speaks", { tiers: BOTH }),
  lies("mount_throws", "trust.md", SKIPPED, "throws", { tiers: BOTH }),
  lies("mount_never", "trust.md", SKIPPED, "hangs", { tiers: BOTH }),
  lies("mount_loop", "T13", SKIPPED, "hangs", { bystander: true }),
  lies("mount_nothing", "trust.md", SKIPPED, "answers", { tiers: BOTH }),
  lies("mount_number", "trust.md", SKIPPED, "answers", { tiers: BOTH }),
  lies("mount_proxy", "trust.md", SKIPPED, "answers", { tiers: BOTH }),
  lies("mount_self", "trust.md", SKIPPED, "answers", { tiers: BOTH }),
  lies("mount_exit", "T15", SKIPPED, "dies", { tiers: BOTH }),
  lies("mount_flood", "T17", SKIPPED, "answers"),
  lies("ready_throws", "trust.md", ANSWERS, "throws", { tiers: BOTH }),
  lies("ready_never", "trust.md", ENDS, "hangs", { tiers: BOTH }),
  lies("ready_loop", "T13", ENDS, "hangs"),
  lies("cleanup_throws", "trust.md", ANSWERS, "throws", { tiers: BOTH }),
  lies("cleanup_never", "trust.md", ANSWERS, "hangs", { tiers: BOTH }),
  lies("cleanup_loop", "T13", ANSWERS, "hangs"),

  kind("top_loop", "top_loop", "T13", SKIPPED, "hangs"),
  kind("top_never", "top_never", "trust.md", SKIPPED, "hangs", { tiers: BOTH }),
  kind("top_throw", "top_throw", "trust.md", SKIPPED, "throws", { tiers: BOTH }),
  kind("top_memory", "top_memory", "T14", SKIPPED, "grows"),
  kind("top_flood", "top_flood", "T17", SKIPPED, "speaks"),
  kind("top_patch", "top_patch", "T16", ENDS, "throws", { bystander: true, tiers: BOTH }),
  kind("no_mount", "no_mount", "trust.md", { refused: ["module_invalid"] }, "throws"),
  kind("static_node_import", "static_node_import", "T16", { refused: ["module_invalid"] }, "answers"),

  hooks("hook_deny", "T20", { denied: true }, "speaks", { tiers: BOTH }),
  hooks("hook_deny_prompt", "T20", { run: ["denied"] }, "speaks", { tiers: BOTH }),
  hooks("hook_silent", "T20", { denied: true }, "hangs", { tiers: BOTH }),
  hooks("hook_silent_for_ever", "T20", { denied: true }, "hangs"),
  hooks("hook_loop", "T13 T20", { denied: true }, "hangs"),
  hooks("hook_loop_observer", "T13 T20", ENDS, "hangs"),
  hooks("hook_throw", "T20", { denied: true }, "throws", { tiers: BOTH }),
  hooks("hook_crash", "T15 T20", { denied: true }, "dies", { tiers: BOTH }),
  hooks("hook_nonsense", "T20", { denied: true }, "speaks", { tiers: BOTH }),
  hooks("hook_huge", "T17 T20", { denied: true }, "speaks"),
  hooks("hook_inject", "T20", ENDS, "speaks", { tiers: BOTH }),
  hooks("hook_inject_often", "T20", { run: ["completed", "failed"] }, "speaks"),
  hooks("hook_modify_prototype", "T9", ENDS, "speaks", { tiers: BOTH }),
  hooks("hook_modify_cyclic", "T9", ENDS, "speaks", { tiers: BOTH }),
  hooks("hook_recursion", "T20", ENDS, "throws"),
  hooks("hook_ask_huge", "T20", { denied: true }, "speaks"),
  hooks("hook_priority", "T20 T40", ENDS, "speaks", { tiers: BOTH }),

  providers("provider_loop", "T13 T28", { run: ["failed", "incomplete"] }, "hangs"),
  providers("provider_never", "T28", { run: ["failed", "incomplete"] }, "hangs", { tiers: BOTH }),
  providers("provider_crash", "T15 T28", { run: ["failed", "incomplete"] }, "dies", { tiers: BOTH }),
  providers("provider_memory", "T14 T28", { run: ["failed"] }, "grows"),
  providers("provider_huge", "T17 T28", { run: ["failed"] }, "speaks"),
  providers("provider_deltas", "T17 T28", { run: ["failed", "completed", "incomplete"] }, "speaks"),
  providers("provider_nonsense", "T28", { run: ["failed"] }, "answers", { tiers: BOTH }),
  providers("provider_calls", "T12 T28", { run: ["incomplete", "failed"] }, "speaks"),
  providers("provider_usage", "T12 T28", { run: ["completed", "failed"] }, "answers", { tiers: BOTH }),
  providers("provider_lookalike", "T18 T28", { run: ["completed"] }, "answers", { tiers: BOTH }),

  contexts("context_loop", "T13", { run: ["failed", "incomplete"] }, "hangs"),
  contexts("context_never", "trust.md", { run: ["failed", "incomplete"] }, "hangs", { tiers: BOTH }),
  contexts("context_crash", "T15", { run: ["failed", "incomplete"] }, "dies", { tiers: BOTH }),
  contexts("context_memory", "T14", { run: ["failed"] }, "grows"),
  contexts("context_nonsense", "trust.md", { run: ["failed"] }, "answers", { tiers: BOTH }),
  contexts("context_huge", "T17", { run: ["failed"] }, "speaks"),

  orchestrators("orchestrator_loop", "T13", { run: ["failed", "incomplete"] }, "hangs"),
  orchestrators("orchestrator_never", "trust.md", { run: ["failed", "incomplete"] }, "hangs", {
    tiers: BOTH,
  }),
  orchestrators("orchestrator_crash", "T15", { run: ["failed", "incomplete"] }, "dies", { tiers: BOTH }),
  orchestrators("orchestrator_spend", "T12", { run: ["incomplete", "failed"] }, "hangs", { tiers: BOTH }),
  orchestrators("orchestrator_ungated", "architecture.md, Guards", { run: ["completed"] }, "speaks", {
    tiers: BOTH,
    gate: true,
  }),
  orchestrators("orchestrator_huge", "T17", { run: ["failed"] }, "speaks"),
  orchestrators("orchestrator_events", "T19", { run: ["completed", "failed"] }, "speaks", { tiers: BOTH }),

  spy("spy_coordinator", "T6 T21 T43", ENDS, "answers", { bystander: true }),
  spy("spy_globals", "T6 T21", ENDS, "answers", { bystander: true }),
  // of WebAssembly it can be had: there is no second thread that a guest could share it with (T43, documented)
  spy("shared_memory", "T43", { doors: "shut", but: ["of_wasm"] }, "opens"),
];
