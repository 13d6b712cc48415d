/**
 * The canonical events and their traits: which can be denied, which are durable, which only the runtime
 * emits. One row an event; src/docs/events.md describes when each is emitted,
 * `schemas/event_data.ts` has the schema of its data.
 */

/**
 * A trait of an event:
 * - `gate`: handlers can deny it, and one that fails denies unless it registered with `fail_closed: false`
 * - `durable`: its entry is stored before the next step
 * - `runtime`: only the runtime emits it, and handlers observe. State, history, approvals, the run object and
 *   its recovery are computed from these entries: a module that emitted one could answer its own approval
 * - `log_only`: an entry of the log; no handler is called
 * - `turn`: dropped while no turn runs
 * - `once`: a turn has it once: the kernel emits it, and drops it when a loop emits it
 * - `ends_deltas`: no delta of the session's current answer follows
 * - `reserved`: only the runtime and the orchestrator emit it, `context:*` also the context manager
 * - `attributed`: loops and providers emit it: its entry has the `module_id` of any module but the
 *   orchestrator
 * - `own_fields`: the fields of its data are the runtime's, so that a field is not redacted for its name.
 *   Replay and recovery read these events: a field named `token` in a tool's input must be in all of them or
 *   in none
 */
export type EventTrait =
  | "gate"
  | "durable"
  | "runtime"
  | "log_only"
  | "turn"
  | "once"
  | "ends_deltas"
  | "reserved"
  | "attributed"
  | "own_fields";

/** Event → its traits. Events without traits are for modules: their names are reserved. */
const EVENTS: Readonly<Record<string, readonly EventTrait[]>> = {
  "run:start": ["runtime", "log_only", "durable", "own_fields"],
  "run:status": ["runtime", "log_only", "own_fields"],
  "run:limits": ["runtime", "log_only", "durable", "own_fields"],
  "run:steered": ["runtime", "log_only", "durable", "own_fields"],
  "run:end": ["runtime", "log_only", "durable", "reserved", "own_fields"],
  "module:mounted": ["runtime", "reserved", "own_fields"],
  "module:skipped": ["runtime", "own_fields"],
  "module:load_failed": ["runtime", "own_fields"],
  "module:on_session_ready_failed": ["runtime", "own_fields"],
  "session:start": ["runtime", "reserved"], // it may contain the plan, as the next two
  "session:resume": ["runtime", "reserved"],
  "session:fork": ["runtime", "reserved"],
  "session:state": ["runtime", "log_only", "own_fields"],
  "session:end": ["runtime", "reserved", "ends_deltas", "own_fields"],
  "session:cleanup": ["runtime", "reserved", "own_fields"],
  "execution:start": ["turn", "once", "reserved", "own_fields"],
  "execution:end": ["turn", "once", "reserved", "ends_deltas", "own_fields"],
  "prompt:submit": ["gate", "once", "reserved", "own_fields"],
  "prompt:complete": ["once", "reserved", "own_fields"],
  "plan:start": [],
  "plan:end": [],
  "orchestrator:complete": ["turn", "once", "reserved", "own_fields"],
  "orchestrator:steering_injected": ["reserved", "own_fields"],
  "orchestrator:rate_limit_delay": ["reserved", "own_fields"],
  "orchestrator:goal_progress": ["own_fields"],
  "cancel:requested": ["once", "reserved", "own_fields"],
  "cancel:completed": ["turn", "once", "reserved", "own_fields"],
  "provider:request": ["gate", "reserved", "own_fields"],
  "provider:response": ["durable", "reserved", "ends_deltas", "own_fields"],
  "provider:error": ["reserved", "ends_deltas", "own_fields"],
  "provider:retry": ["ends_deltas", "attributed", "own_fields"],
  "provider:throttle": ["own_fields"],
  "provider:resolve": ["reserved", "own_fields"],
  "provider:tool_sequence_repaired": ["own_fields"],
  "provider:concurrency": [],
  "llm:request": [],
  "llm:response": [],
  "llm:stream_aborted": ["ends_deltas", "attributed", "own_fields"],
  "content_block:start": ["reserved", "own_fields"],
  "content_block:delta": ["reserved", "own_fields"],
  "content_block:end": ["reserved", "own_fields"],
  "content_block:void": ["runtime", "log_only", "own_fields"],
  "thinking:delta": ["own_fields"],
  "thinking:final": ["own_fields"],
  "tool:pre": ["gate", "durable", "reserved", "own_fields"],
  "tool:output": ["turn", "reserved", "own_fields"],
  "tool:post": ["durable", "reserved", "own_fields"],
  "tool:error": ["durable", "reserved", "own_fields"],
  "tool:selecting": ["reserved", "own_fields"],
  "tool:selected": ["reserved", "own_fields"],
  "approval:required": ["runtime", "durable", "own_fields"],
  "approval:granted": ["runtime", "durable", "own_fields"],
  "approval:denied": ["runtime", "durable", "own_fields"],
  "context:message": ["runtime", "log_only", "reserved", "own_fields"], // durable for a user's message
  "context:reset": ["runtime", "log_only", "reserved", "own_fields"],
  "context:compaction": ["reserved", "own_fields"],
  "context:pre_compact": ["reserved", "own_fields"],
  "context:post_compact": ["reserved", "own_fields"],
  "context:compaction-skipped": ["reserved"],
  "context:tool_result_ingress_truncated": ["reserved"],
  "context:token_meter": ["reserved"],
  "context:summary": ["reserved"],
  "context:include": [],
  "user:notification": [],
  "artifact:write": [],
  "artifact:read": [],
  "policy:violation": [],
  "task:agent_spawned": ["runtime", "own_fields"],
  "task:agent_resumed": ["runtime", "own_fields"],
  "task:agent_completed": ["runtime", "own_fields"],
  "delegate:agent_spawned": ["own_fields"],
  "delegate:agent_completed": ["own_fields"],
  "delegate:error": ["own_fields"],
};

/** Names of all canonical events. */
export const CANONICAL_EVENTS: ReadonlySet<string> = new Set(Object.keys(EVENTS));

/** Returns the names of the events that have a trait. Call it once, when a module is loaded. */
export function eventsWith(trait: EventTrait): ReadonlySet<string> {
  return new Set([...CANONICAL_EVENTS].filter((event) => EVENTS[event]!.includes(trait)));
}

/** Events at which a handler that fails denies, unless it registered with `fail_closed: false`. */
export const GATES: ReadonlySet<string> = eventsWith("gate");

/** Events that only the runtime emits, and whose handlers observe. */
export const RUNTIME_EVENTS: ReadonlySet<string> = eventsWith("runtime");

/** Events that providers, tools and hooks cannot emit. */
export const RESERVED_EVENTS: ReadonlySet<string> = RUNTIME_EVENTS.union(eventsWith("reserved"));

/** Events that context managers emit, also one that a hook mounted. */
export const CONTEXT_EVENTS: ReadonlySet<string> = new Set(
  [...eventsWith("reserved").difference(RUNTIME_EVENTS)].filter((event) => event.startsWith("context:")),
);
