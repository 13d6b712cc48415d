/**
 * Runs the tool calls of one answer: gate, look-up, schema, approval, execution. Every call gets exactly one
 * result, and results are in call order, whichever call finishes first.
 */
import { errorCode, errorMessage } from "../errors.ts";
import { isNoop } from "../hook_chain.ts";
import type { Emission, HookRegistry, Injection } from "../hooks.ts";
import { isObject, jsonEqual, type JsonObject } from "../json.ts";
import type { Message } from "../messages.ts";
import { changedContent, imagesOf } from "../result_content.ts";
import {
  cancelledCallText,
  modelContent,
  serializeOutput,
  shownResult,
  type Tool,
  type ToolCall,
  toolErrorType,
  ToolResult,
  toToolResult,
} from "../tools.ts";
import { nearestNames } from "../findings.ts";
import { type Refusal, refusalOfInput } from "./tool_input_validation.ts";

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
  /** Id of the call whose arguments the limit of output tokens cut; absent without one. */
  cut_call?: string | undefined;
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

/** Runs the calls, at most `max_parallel` at once. Resolves to their results, also if a tool failed. */
export function runToolCalls(calls: readonly ToolCall[], batch: ToolBatch): Promise<BatchResult> {
  const run = new BatchRun(calls, batch);
  const at_once = Math.min(batch.max_parallel, calls.length);
  return at_once === 1 ? run.work() : run.workAtOnce(at_once);
}

/** One run of a batch. */
class BatchRun implements BatchResult {
  readonly messages: Message[];
  limited = false;
  readonly #calls: readonly ToolCall[];
  readonly #batch: ToolBatch;
  #next = 0;
  #failed = false;
  /** Result of the call that a limit refused; the remaining calls get the same, because the turn ends. */
  #refusal: string | null = null;

  constructor(calls: readonly ToolCall[], batch: ToolBatch) {
    this.#calls = calls;
    this.#batch = batch;
    this.messages = new Array(calls.length);
  }

  /** Waits for all workers, even when one fails: no call may continue after its turn. */
  async workAtOnce(count: number): Promise<this> {
    for (const worker of await Promise.allSettled(Array.from({ length: count }, () => this.work()))) {
      if (worker.status === "rejected") throw worker.reason;
    }
    return this;
  }

  /** Runs the next calls, one after the other, until all were started. */
  async work(): Promise<this> {
    const calls = this.#calls;
    try {
      while (this.#next < calls.length && !this.#failed) {
        const index = this.#next++;
        const call = calls[index]!; // below the length
        const content = this.#batch.signal.aborted
          ? cancelledCallText(call.name)
          : this.#refusal ?? await this.#run(call);
        this.messages[index] = { role: "tool", tool_call_id: call.id, name: call.name, content };
      }
    } catch (error) {
      this.#failed = true;
      throw error;
    }
    return this;
  }

  /** Runs one call; resolves to the content of its result. */
  async #run(requested: ToolCall): Promise<Message["content"]> {
    const { select, hooks, tools, parallel_group_id, session_id, signal, cut_call } = this.#batch;
    const selection = select && await select(requested);
    if (selection && "denied" in selection) return `Denied by hook: ${selection.denied}`;
    const call = selection ? selection.call : requested;
    const { id, name } = call;
    const gated = { tool_name: name, tool_call_id: id, tool_input: call.arguments, parallel_group_id };
    const pre = await hooks.emit("tool:pre", gated);
    if (pre.action === "deny") {
      await this.#apply(pre, "tool:pre");
      return `Denied by hook: ${pre.reason}`;
    }
    const tool_input = isObject(pre.data.tool_input) ? pre.data.tool_input : call.arguments;
    const facts = { ...gated, tool_input };
    const tool = findTool(tools, name);
    const refusal = tool === undefined
      ? notFound(name, tools)
      : await refusalOf(call, tool, tool_input, pre.modified, id === cut_call);
    if (tool === undefined || refusal !== null) {
      await this.#apply(withoutQuestion(pre), "tool:pre");
      await hooks.emit("tool:error", { ...facts, error: refusal });
      return `Error: ${refusal?.msg}`;
    }
    if (!isNoop(pre)) {
      const settled = await this.#apply(pre, "tool:pre");
      if (settled.action === "deny") return `Denied by hook: ${settled.reason}`;
    }
    let result: ToolResult;
    try {
      const context = { id, signal, session_id, progress: ignoreProgress };
      result = toToolResult(await tool.execute(tool_input, context));
    } catch (error) {
      return await this.#fail(call, facts, error);
    }
    const shown = shownResult(result);
    const post = await hooks.emit("tool:post", { ...facts, result: shown });
    if (!isNoop(post)) await this.#apply(post, "tool:post");
    return modelContent(changedResult(result, post) ?? result);
  }

  /** Reports a call whose tool threw; resolves to the text of its result. */
  async #fail({ name }: ToolCall, facts: JsonObject, thrown: unknown): Promise<string> {
    const { hooks, signal } = this.#batch;
    if (signal.aborted) return cancelledCallText(name);
    const error = { type: toolErrorType(thrown), msg: errorMessage(thrown) };
    await this.#apply(await hooks.emit("tool:error", { ...facts, error }), "tool:error");
    const text = `Error executing tool: ${error.msg}`;
    if (errorCode(thrown) === "limit_reached") {
      this.limited = true;
      this.#refusal = text;
    }
    return text;
  }

  /** Carries out what hooks asked for; resolves to the emission after a question was answered. */
  async #apply(emission: Emission, event: string): Promise<Emission> {
    const settled = await this.#batch.process(emission, event);
    this.#batch.keep(settled.injections);
    return settled;
  }
}

/** The guard of a tool reports progress to the session. */
function ignoreProgress(): void {}

/** Returns an emission without its question: a call that cannot run needs no approval. */
function withoutQuestion(pre: Emission): Emission {
  return { ...pre, action: pre.action === "ask_user" ? "inject_context" : pre.action, approval: null };
}

/** Returns the tool with this mount name, else with this `name`. */
export function findTool(tools: Record<string, Tool>, name: string): Tool | undefined {
  return (Object.hasOwn(tools, name) ? tools[name] : undefined) ??
    Object.values(tools).find((tool) => tool.name === name);
}

/** What the model must do about a call that its limit cut: the same call would be cut again. */
const CUT = "the limit of output tokens (max_output_tokens) cut the answer in the middle of its arguments. " +
  "Write less in one call: divide a long text over several calls, such as one that creates a file and others that add to it";

/** Resolves to why a call must not run, or to null. */
async function refusalOf(
  { name, invalid_arguments }: ToolCall,
  tool: Tool,
  input: JsonObject,
  modified: boolean,
  is_cut: boolean,
): Promise<Refusal | null> {
  if (invalid_arguments === undefined || modified) return await refusalOfInput(tool, input);
  const received = invalid_arguments.slice(0, 200);
  const msg = is_cut
    ? `The call of tool '${name}' was not run: ${CUT}`
    : `Arguments of tool '${name}' must be a JSON object: received ${received}`;
  return { type: "tool_input_invalid", msg };
}

/** Maximum number of tools that the result of an unknown one names. */
const MAX_NAMES = 12;

function notFound(name: string, tools: Record<string, Tool>): Refusal {
  const known = Object.keys(tools);
  const nearest = nearestNames(name, known);
  const others = known.length > MAX_NAMES ? ` and ${known.length - MAX_NAMES} more` : "";
  const hint = nearest.length > 0
    ? `; did you mean ${nearest.map((near) => `'${near}'`).join(" or ")}?`
    : known.length > 0
    ? `; the tools are ${known.slice(0, MAX_NAMES).join(", ")}${others}`
    : "; there are no tools";
  return { type: "tool_not_found", msg: `Tool '${name}' not found${hint}` };
}

/** Returns the result with which a hook replaced the tool's, or null; compared by value. */
export function changedResult(result: ToolResult, post: Emission): ToolResult | null {
  if (!post.modified) return null;
  const changed = post.data.result;
  const shown = shownResult(result);
  if (jsonEqual(changed, shown)) return null;
  const is_result = isObject(changed) &&
    ["success", "output", "error", "content"].some((field) => field in changed);
  if (!is_result) return ToolResult({ success: result.success, output: changed });
  const error = isObject(changed.error) ? changed.error : null;
  const replaced = ToolResult({ success: changed.success !== false, output: changed.output, error });
  const text = () => serializeOutput(replaced);
  const content = changedContent(changed, shown, imagesOf(result.content), text);
  return content === undefined ? replaced : ToolResult({ ...replaced, content });
}

/** Decision about a call. */
export type Selection = { call: ToolCall } | { denied: string };

/** Dependencies of a selection. */
export interface SelectingParts {
  /** Where the events are emitted. */
  hooks: HookRegistry;
  /** Names of the available tools. */
  tools: readonly string[];
  /** Group id in both events. */
  parallel_group_id: string;
  /** Timeout of each handler in seconds; default: that of `emitAndCollect`. */
  timeout_s?: number;
}

/**
 * Lets hooks select a call before its gate. A handler of `tool:selecting` may return as `data`: `{deny: true,
 * reason?}`, another `tool_name` or another `tool_input`. The first denial wins, otherwise the first choice.
 * Emits `tool:selecting`, then `tool:selected` with the decision and the hooks'
 * data.
 */
export async function selectTool(call: ToolCall, parts: SelectingParts): Promise<Selection> {
  const { hooks, tools, parallel_group_id, timeout_s } = parts;
  const facts = {
    tool_name: call.name,
    tool_call_id: call.id,
    tool_input: call.arguments,
    parallel_group_id,
  };
  const decisions =
    (await hooks.emitAndCollect("tool:selecting", { ...facts, available_tools: tools }, timeout_s))
      .filter(isObject);
  const denial = decisions.find((decision) => decision.deny === true || decision.action === "deny");
  const selection: Selection = denial
    ? { denied: typeof denial.reason === "string" ? denial.reason : "not selected" }
    : { call: chosen(call, decisions) };
  await hooks.emit("tool:selected", {
    ...facts,
    ...("call" in selection
      ? { tool_name: selection.call.name, tool_input: selection.call.arguments }
      : { denied: true, reason: selection.denied }),
    decisions,
  });
  return selection;
}

function chosen(call: ToolCall, decisions: readonly JsonObject[]): ToolCall {
  const named = decisions.find(({ tool_name }) => typeof tool_name === "string" && tool_name !== "");
  const replaced = decisions.find(({ tool_input }) => isObject(tool_input));
  if (!named && !replaced) return call;
  const name = named ? String(named.tool_name) : call.name;
  const input = replaced ? replaced.tool_input as JsonObject : call.arguments; // an object, just checked
  const changed: ToolCall = { id: call.id, name, tool: name, arguments: input, input };
  return replaced || call.invalid_arguments === undefined
    ? changed
    : { ...changed, invalid_arguments: call.invalid_arguments };
}
