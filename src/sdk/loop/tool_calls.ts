/**
 * Runs the tool calls of one answer: gate, look-up, schema, approval, execution. Every call gets exactly one
 * result, and results are in call order, whichever call finishes first.
 */
import { errorCode, errorMessage, errorName } from "../errors.ts";
import { isNoop } from "../hook_chain.ts";
import type { Emission, HookRegistry, Injection } from "../hooks.ts";
import { isObject, jsonEqual, type JsonObject, toFrozenObject } from "../json.ts";
import type { Message } from "../messages.ts";
import {
  cancelledCallText,
  serializeOutput,
  type Tool,
  type ToolCall,
  ToolResult,
  toToolResult,
} from "../tools.ts";
import { inputProblems } from "./tool_input_validation.ts";
import type { Selection } from "./tool_selection.ts";

/** Tool calls of one answer that run together, and their dependencies. */
export interface ToolBatch {
  /** Tools by mount name. */
  tools: Record<string, Tool>;
  /** Where `tool:pre`, `tool:post` and `tool:error` are emitted. */
  hooks: HookRegistry;
  /** Maximum of concurrent calls. */
  max_parallel: number;
  /** Group id in the events of all calls of the batch. */
  parallel_group_id: string;
  /** Id of the session. */
  session_id: string;
  /** Aborts on immediate cancellation. */
  signal: AbortSignal;
  /** Selects a call before its gate; absent unless the loop lets hooks do so. */
  select?(call: ToolCall): Promise<Selection>;
  /** Carries out an emission and resolves to it; a question is then answered. */
  process(emission: Emission, event: string): Promise<Emission>;
  /** Receives ephemeral injections for the next request. */
  keep(injections: readonly Injection[]): void;
}

/** Result of a batch. */
export interface BatchResult {
  /** One tool message for each call, in call order. */
  messages: Message[];
  /** Whether a limit refused a call: the turn must end. */
  limited: boolean;
}

/**
 * Runs the calls, at most `max_parallel` at once, and resolves to their results. Never rejects because a tool
 * failed.
 */
export async function runToolCalls(calls: readonly ToolCall[], batch: ToolBatch): Promise<BatchResult> {
  const messages = new Array<Message>(calls.length);
  /**
   * Result of the call that a limit refused; the remaining calls get the same result, because the turn ends.
   */
  let refused: Answer | null = null;
  let next = 0;
  let failed = false;
  const work = async () => {
    while (next < calls.length && !failed) {
      const index = next++;
      const call = calls[index]!;
      const answer: Answer = batch.signal.aborted ? cancelled(call) : refused ?? await answerOf(call, batch);
      if (answer.limited) refused = answer;
      messages[index] = { role: "tool", tool_call_id: call.id, name: call.name, content: answer.content };
    }
  };
  const at_once = Math.min(batch.max_parallel, calls.length);
  if (at_once === 1) { // perf: sequential calls need no workers
    await work();
    return { messages, limited: refused !== null };
  }
  const workers = Array.from({ length: at_once }, async () => {
    try {
      await work();
    } catch (error) {
      failed = true;
      throw error;
    }
  });
  // waits for all workers, even when one fails: no call may continue after its turn
  for (const worker of await Promise.allSettled(workers)) {
    if (worker.status === "rejected") throw worker.reason;
  }
  return { messages, limited: refused !== null };
}

interface Answer {
  content: string;
  limited?: boolean;
}

async function answerOf(requested: ToolCall, batch: ToolBatch): Promise<Answer> {
  const selection = batch.select && await batch.select(requested);
  if (selection && "denied" in selection) return { content: `Denied by hook: ${selection.denied}` };
  const call = selection ? selection.call : requested;
  const { hooks, parallel_group_id } = batch;
  const { id: tool_call_id, name: tool_name } = call;
  const gated = { tool_name, tool_call_id, tool_input: call.arguments, parallel_group_id };
  const pre = await hooks.emit("tool:pre", gated);
  if (pre.action === "deny") {
    await apply(pre, "tool:pre", batch);
    return { content: `Denied by hook: ${pre.reason}` };
  }
  const tool_input = isObject(pre.data.tool_input) ? pre.data.tool_input : call.arguments;
  const tool = findTool(batch.tools, tool_name);
  const checking = refusalOf(call, tool, tool_input, pre.modified);
  const refusal = checking instanceof Promise ? await checking : checking;
  if (tool === undefined || refusal !== null) {
    await apply(withoutQuestion(pre), "tool:pre", batch);
    await hooks.emit("tool:error", { ...gated, tool_input, error: refusal });
    return { content: `Error: ${refusal?.msg}` };
  }
  if (!isNoop(pre)) {
    const settled = await apply(pre, "tool:pre", batch);
    if (settled.action === "deny") return { content: `Denied by hook: ${settled.reason}` };
  }
  return await execute(call, tool, { ...gated, tool_input }, batch);
}

/** Executes an allowed call; `facts` are the fields that `tool:post` and `tool:error` repeat. */
async function execute(call: ToolCall, tool: Tool, facts: CallFacts, batch: ToolBatch): Promise<Answer> {
  const { hooks, signal, session_id } = batch;
  let result: ToolResult;
  try {
    const context = { id: call.id, signal, session_id, progress: ignoreProgress };
    result = toToolResult(await tool.execute(facts.tool_input, context));
  } catch (error) {
    if (signal.aborted) return cancelled(call);
    const failure = { type: toolErrorType(error), msg: errorMessage(error) };
    await apply(await hooks.emit("tool:error", { ...facts, error: failure }), "tool:error", batch);
    return {
      content: `Error executing tool: ${failure.msg}`,
      limited: errorCode(error) === "limit_reached",
    };
  }
  const plain = plainResult(result);
  const post = await hooks.emit("tool:post", { ...facts, result: plain });
  if (!isNoop(post)) await apply(post, "tool:post", batch);
  return { content: serializeOutput(changedResult(plain, post) ?? result) };
}

/** Fields of a call in its events. */
interface CallFacts {
  tool_name: string;
  tool_call_id: string;
  tool_input: JsonObject;
  parallel_group_id: string;
}

/** The guard of a tool reports progress to the session. */
function ignoreProgress(): void {}

/** Carries out what hooks asked for; resolves to the emission after a question was answered. */
async function apply(emission: Emission, event: string, { process, keep }: ToolBatch): Promise<Emission> {
  const settled = await process(emission, event);
  keep(settled.injections);
  return settled;
}

/** Returns an emission without its question: a call that cannot run needs no approval. */
function withoutQuestion(pre: Emission): Emission {
  return { ...pre, action: pre.action === "ask_user" ? "inject_context" : pre.action, approval: null };
}

/** Returns the tool with this mount name, else with this `name`. */
export function findTool(tools: Record<string, Tool>, name: string): Tool | undefined {
  return (Object.hasOwn(tools, name) ? tools[name] : undefined) ??
    Object.values(tools).find((tool) => tool.name === name);
}

/** Reason for not running a call; the `error` of `tool:error`. */
interface Refusal {
  type: string;
  msg: string;
}

/** Returns why a call must not run, or null; a promise when the tool itself checks its input. */
function refusalOf(
  call: ToolCall,
  tool: Tool | undefined,
  input: JsonObject,
  modified: boolean,
): Refusal | null | Promise<Refusal | null> {
  const { name, invalid_arguments } = call;
  if (tool === undefined) return { type: "tool_not_found", msg: `Tool '${name}' not found` };
  if (invalid_arguments !== undefined && !modified) {
    const received = invalid_arguments.slice(0, 200);
    return invalidInput(`Arguments of tool '${name}' must be a JSON object: received ${received}`);
  }
  try {
    const problems = inputProblems(tool, input);
    if (!(problems instanceof Promise)) return inputRefusal(name, problems);
    return problems.then((found) => inputRefusal(name, found)).catch((error) =>
      uncheckedRefusal(name, error)
    );
  } catch (error) {
    return uncheckedRefusal(name, error);
  }
}

/** @throws when a tool that checks its own input returned no list. */
function inputRefusal(name: string, problems: readonly string[]): Refusal | null {
  if (problems.length === 0) return null;
  return invalidInput(`Invalid arguments for tool '${name}': ${[...problems].join("; ")}`);
}

/** A sandboxed tool checks itself, and may hang or be gone. */
function uncheckedRefusal(name: string, error: unknown): Refusal {
  return {
    type: toolErrorType(error),
    msg: `Cannot check the arguments of tool '${name}': ${errorMessage(error)}`,
  };
}

function invalidInput(msg: string): Refusal {
  return { type: "tool_input_invalid", msg };
}

/** Returns the `error.type` of `tool:error` for an error that a tool threw. */
export function toolErrorType(error: unknown): string {
  const code = errorCode(error);
  if (
    code !== undefined && (code.startsWith("tool_") || code === "limit_reached" || code === "interrupted")
  ) return code;
  const name = errorName(error);
  return name === "NotCapable" || name === "PermissionDenied" ? "tool_permission_denied" : name;
}

function plainResult({ success, output, error }: ToolResult): JsonObject {
  return toFrozenObject({ success, output, error });
}

/** Returns the result with which a hook replaced the tool's, or null; compared by value. */
function changedResult(result: JsonObject, post: Emission): ToolResult | null {
  const changed = post.data.result;
  if (!post.modified || jsonEqual(changed, result)) return null;
  if (isObject(changed) && ("success" in changed || "output" in changed || "error" in changed)) {
    return ToolResult({
      success: changed.success !== false,
      output: changed.output ?? null,
      error: isObject(changed.error) ? changed.error : null,
    });
  }
  return ToolResult({ success: result.success === true, output: changed });
}

/** Returns the result of a call that was cancelled before it finished. */
function cancelled(call: ToolCall): Answer {
  return {
    content: cancelledCallText(call.name),
  };
}
