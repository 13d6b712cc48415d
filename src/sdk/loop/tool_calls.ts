/**
 * Runs the tool calls of one answer: gate, look-up, schema, approval, execution. Every call gets exactly one
 * result, and results are in call order, whichever call finishes first.
 */
import { errorCode, errorMessage, errorName } from "../errors.ts";
import type { Emission, HookRegistry, Injection } from "../hooks.ts";
import { isObject, jsonEqual, type JsonObject, toPlain } from "../json.ts";
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

function answerOf(call: ToolCall, batch: ToolBatch): Promise<Answer> {
  return batch.select ? selectedAnswerOf(batch.select(call), batch) : gatedAnswerOf(call, batch);
}

async function selectedAnswerOf(selecting: Promise<Selection>, batch: ToolBatch): Promise<Answer> {
  const selection = await selecting;
  if ("denied" in selection) return { content: `Denied by hook: ${selection.denied}` };
  return await gatedAnswerOf(selection.call, batch);
}

async function gatedAnswerOf(call: ToolCall, batch: ToolBatch): Promise<Answer> {
  const { hooks, parallel_group_id } = batch;
  const named = { tool_name: call.name, tool_call_id: call.id };
  const pre = await hooks.emit("tool:pre", { ...named, tool_input: call.arguments, parallel_group_id });
  const input = isObject(pre.data.tool_input) ? pre.data.tool_input : call.arguments;
  const facts = { ...named, tool_input: input, parallel_group_id };
  if (pre.action === "deny") {
    batch.keep((await batch.process(pre, "tool:pre")).injections);
    return { content: `Denied by hook: ${pre.reason}` };
  }
  const tool = findTool(batch.tools, call.name);
  const refusal = tool
    ? await refusalOf(call, tool, input, pre.modified)
    : { type: "tool_not_found", msg: `Tool '${call.name}' not found` };
  if (!tool || refusal) {
    const unapproved: Emission = {
      ...pre,
      action: pre.action === "ask_user" ? "inject_context" : pre.action,
      approval: null,
    };
    batch.keep((await batch.process(unapproved, "tool:pre")).injections);
    await hooks.emit("tool:error", { ...facts, error: refusal });
    return { content: `Error: ${refusal!.msg}` };
  }
  const settled = await batch.process(pre, "tool:pre");
  batch.keep(settled.injections);
  if (settled.action === "deny") return { content: `Denied by hook: ${settled.reason}` };
  return await run(call, tool, input, facts, batch);
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

/** Resolves to why a call must not run, or to null. */
async function refusalOf(
  call: ToolCall,
  tool: Tool,
  input: JsonObject,
  modified: boolean,
): Promise<Refusal | null> {
  if (call.invalid_arguments !== undefined && !modified) {
    return {
      type: "tool_input_invalid",
      msg: `Arguments of tool '${call.name}' must be a JSON object: received ${
        call.invalid_arguments.slice(0, 200)
      }`,
    };
  }
  try {
    const problems = [...await inputProblems(tool, input)]; // throws when the result is not a list
    return problems.length === 0 ? null : {
      type: "tool_input_invalid",
      msg: `Invalid arguments for tool '${call.name}': ${problems.join("; ")}`,
    };
  } catch (error) { // a sandboxed tool checks itself, and may hang or be gone
    return {
      type: toolErrorType(error),
      msg: `Cannot check the arguments of tool '${call.name}': ${errorMessage(error)}`,
    };
  }
}

async function run(
  call: ToolCall,
  tool: Tool,
  input: JsonObject,
  facts: JsonObject,
  batch: ToolBatch,
): Promise<Answer> {
  let result: ToolResult;
  try {
    result = toToolResult(
      await tool.execute(input, {
        id: call.id,
        signal: batch.signal,
        session_id: batch.session_id,
        progress: () => {},
      }),
    );
  } catch (error) {
    if (batch.signal.aborted) return cancelled(call);
    const post = await batch.hooks.emit("tool:error", {
      ...facts,
      error: { type: toolErrorType(error), msg: errorMessage(error) },
    });
    batch.keep((await batch.process(post, "tool:error")).injections);
    return {
      content: `Error executing tool: ${errorMessage(error)}`,
      limited: errorCode(error) === "limit_reached",
    };
  }
  const post = await batch.hooks.emit("tool:post", { ...facts, result: plainResult(result) });
  batch.keep((await batch.process(post, "tool:post")).injections);
  return { content: serializeOutput(changedResult(result, post) ?? result) };
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

function plainResult(result: ToolResult): JsonObject {
  return { success: result.success, output: toPlain(result.output), error: toPlain(result.error) };
}

/** Returns the result with which a hook replaced the tool's, or null; compared by value. */
function changedResult(result: ToolResult, post: Emission): ToolResult | null {
  if (!post.modified || jsonEqual(post.data.result, plainResult(result))) return null;
  const changed = post.data.result;
  if (isObject(changed) && ("success" in changed || "output" in changed || "error" in changed)) {
    return ToolResult({
      success: changed.success !== false,
      output: changed.output ?? null,
      error: isObject(changed.error) ? changed.error : null,
    });
  }
  return ToolResult({ success: result.success, output: changed });
}

/** Returns the result of a call that was cancelled before it finished. */
function cancelled(call: ToolCall): Answer {
  return {
    content: cancelledCallText(call.name),
  };
}
