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
 * - `once`: a turn has it once: `TurnTracker.prepare`, which has a case for each, drops a repeated one. A
 *   repeated `prompt:submit` is a gate, and passes its handlers again
 * - `parallel`: several can be in progress at once, so that their order differs between a recorded run and
 *   its replay
 * - `ends_turn`: one of the two events that end a turn, in either order
 * - `ends_call`: reports the end of a provider call
 * - `ends_deltas`: no delta of the session's current answer follows
 * - `after_cancel`: may follow directly after `cancel:requested` in a turn that stops
 * - `replayed`: only the runtime and the orchestrator emit it, `context:*` also the context manager; these
 *   run in a replay too, and what they emit is compared with the recording. Events of other modules are
 *   played back from it
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
  | "parallel"
  | "ends_turn"
  | "ends_call"
  | "ends_deltas"
  | "after_cancel"
  | "replayed"
  | "attributed"
  | "own_fields";

/** Event → its traits. Events without traits are for modules: their names are reserved. */
const EVENTS: Readonly<Record<string, readonly EventTrait[]>> = {
  "run:start": ["runtime", "log_only", "durable", "own_fields"],
  "run:status": ["runtime", "log_only", "own_fields"],
  "run:end": ["runtime", "log_only", "durable", "replayed", "own_fields"],
  "module:mounted": ["runtime", "replayed", "own_fields"],
  "module:skipped": ["runtime", "own_fields"],
  "module:on_session_ready_failed": ["runtime", "own_fields"],
  "session:start": ["runtime", "replayed"], // it may contain the plan, as the next two
  "session:resume": ["runtime", "replayed"],
  "session:fork": ["runtime", "replayed"],
  "session:state": ["runtime", "log_only", "own_fields"],
  "session:end": ["runtime", "replayed", "ends_deltas", "own_fields"],
  "session:cleanup": ["runtime", "replayed", "own_fields"],
  "execution:start": ["turn", "once", "replayed", "own_fields"],
  "execution:end": ["turn", "once", "replayed", "ends_turn", "ends_deltas", "after_cancel", "own_fields"],
  "prompt:submit": ["gate", "replayed", "own_fields"],
  "prompt:complete": ["once", "replayed", "own_fields"],
  "plan:start": [],
  "plan:end": [],
  "orchestrator:complete": ["turn", "once", "replayed", "ends_turn", "after_cancel", "own_fields"],
  "orchestrator:steering_injected": ["replayed", "own_fields"],
  "orchestrator:rate_limit_delay": ["replayed", "own_fields"],
  "orchestrator:goal_progress": ["own_fields"],
  "cancel:requested": ["once", "replayed", "own_fields"],
  "cancel:completed": ["turn", "once", "replayed", "after_cancel", "own_fields"],
  "provider:request": ["gate", "replayed", "own_fields"],
  "provider:response": ["durable", "replayed", "ends_call", "ends_deltas", "own_fields"],
  "provider:error": ["replayed", "ends_call", "ends_deltas", "own_fields"],
  "provider:retry": ["ends_call", "ends_deltas", "attributed", "own_fields"],
  "provider:throttle": ["own_fields"],
  "provider:resolve": ["replayed", "own_fields"],
  "provider:tool_sequence_repaired": ["own_fields"],
  "provider:concurrency": [],
  "llm:request": [],
  "llm:response": [],
  "llm:stream_aborted": ["ends_deltas", "attributed", "own_fields"],
  "content_block:start": ["replayed", "own_fields"],
  "content_block:delta": ["replayed", "own_fields"],
  "content_block:end": ["replayed", "own_fields"],
  "thinking:delta": ["own_fields"],
  "thinking:final": ["own_fields"],
  "tool:pre": ["gate", "durable", "parallel", "replayed", "own_fields"],
  "tool:post": ["durable", "parallel", "replayed", "own_fields"],
  "tool:error": ["durable", "parallel", "replayed", "own_fields"],
  "tool:selecting": ["parallel", "replayed", "own_fields"],
  "tool:selected": ["parallel", "replayed", "own_fields"],
  "approval:required": ["runtime", "durable", "parallel", "own_fields"],
  "approval:granted": ["runtime", "durable", "parallel", "own_fields"],
  "approval:denied": ["runtime", "durable", "parallel", "after_cancel", "own_fields"],
  "context:message": ["runtime", "log_only", "replayed", "own_fields"], // durable for a user's message
  "context:reset": ["runtime", "log_only", "replayed", "own_fields"],
  "context:compaction": ["replayed", "own_fields"],
  "context:pre_compact": ["replayed", "own_fields"],
  "context:post_compact": ["replayed", "own_fields"],
  "context:compaction-skipped": ["replayed"],
  "context:tool_result_ingress_truncated": ["replayed"],
  "context:token_meter": ["replayed"],
  "context:summary": ["replayed"],
  "context:include": [],
  "user:notification": [],
  "artifact:write": [],
  "artifact:read": [],
  "policy:violation": [],
  "task:agent_spawned": ["runtime", "parallel", "own_fields"],
  "task:agent_resumed": ["runtime", "parallel", "own_fields"],
  "task:agent_completed": ["runtime", "parallel", "own_fields"],
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
export const RESERVED_EVENTS: ReadonlySet<string> = RUNTIME_EVENTS.union(eventsWith("replayed"));

/** Events that context managers emit, also one that a hook mounted. */
export const CONTEXT_EVENTS: ReadonlySet<string> = new Set(
  [...eventsWith("replayed").difference(RUNTIME_EVENTS)].filter((event) => event.startsWith("context:")),
);
