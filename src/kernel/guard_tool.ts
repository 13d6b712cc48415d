/** The guard around a tool: a call is counted, has a deadline, and runs only with the allowed input. */
import { errorCode, errorMessage, PreampError } from "../sdk/errors.ts";
import { deepFreeze, isObject, isThenable, toFrozenObject, toPlainObject } from "../sdk/json.ts";
import { inputSchemaOf } from "../sdk/snake_case_aliases.ts";
import { wellFormed } from "../sdk/well_formed.ts";
import { nearestNames } from "../sdk/findings.ts";
import { changedResult } from "../sdk/loop/tool_calls.ts";
import { type Refusal, refusalOfInput } from "../sdk/loop/tool_input_validation.ts";
import {
  cancelledCallText,
  isResult,
  shownResult,
  toolErrorType,
  toolFailure,
  toToolResult,
} from "../sdk/tools.ts";
import type {
  CallFacts,
  JsonObject,
  JsonSchema,
  Message,
  RiskLevel,
  Tool,
  ToolCall,
  ToolCallContext,
  ToolResult,
} from "../sdk/types.ts";
import type { SessionContext } from "./session_context.ts";
import { requireRepeatable } from "./interrupted_turn.ts";
import type { Mounts } from "./mounts.ts";
import type { Call, Turn } from "./turn.ts";
import { limitOf } from "./run_limits.ts";
import { withinLimits } from "./limit_pause.ts";
import { CallDeadline } from "./call_deadline.ts";
import { boundedError, boundedResult } from "./tool_result_limit.ts";

/** Most characters of one call that people are shown while it runs. */
const MAX_OUTPUT_CHARS = 256 * 1024;

/** Options of {@link ToolGuard}. */
export interface ToolMount {
  /** Name that the tool is mounted under. */
  key: string;
  /** Name that is sent to models. */
  name: string;
  /** Id of the module that mounted the tool. */
  module_id: string;
}

/** A guarded tool: the only form in which loops, modules and guests receive a tool. */
export class ToolGuard implements Tool {
  readonly name: string;
  readonly description: string;
  readonly input_schema: JsonSchema;
  readonly risk: RiskLevel;
  readonly requires_approval: boolean;
  readonly idempotent: boolean;
  declare readonly native_specs?: Readonly<Record<string, JsonObject>>;
  declare readonly checkInput?: (input: JsonObject) => Promise<readonly string[]>;
  declare readonly preview?: (input: JsonObject) => Promise<string>;
  readonly #session: SessionContext;
  readonly #tool: Tool;
  readonly #key: string;
  readonly #module_id: string;

  constructor(session: SessionContext, tool: Tool, { key, name, module_id }: ToolMount) {
    this.#session = session;
    this.#tool = tool;
    this.#key = key;
    this.#module_id = module_id;
    this.name = name;
    // vendors refuse every request with half of a character, such as at the end of a text that was cut
    this.description = typeof tool.description === "string" ? tool.description.toWellFormed() : "";
    this.input_schema = deepFreeze(wellFormed(toPlainObject(inputSchemaOf(tool))));
    this.risk = tool.risk ?? "low";
    this.requires_approval = tool.requires_approval === true;
    this.idempotent = tool.idempotent === true;
    const { native_specs } = tool;
    if (isObject(native_specs)) {
      this.native_specs = deepFreeze(toPlainObject(native_specs)) as Record<string, JsonObject>;
    }
    const { checkInput } = tool;
    if (typeof checkInput === "function") {
      // perf: a named constant on purpose, see src/docs/performance.md#closures
      const check = (input: JsonObject) => Promise.resolve(checkInput.call(tool, toPlainObject(input)));
      this.checkInput = check;
    }
    const { preview } = tool;
    if (typeof preview === "function") {
      this.preview = async (input) => String(await preview.call(tool, toPlainObject(input)));
    }
    Object.freeze(this); // so that no module changes the declared risk
  }

  /** Runs the tool for a loop or another module, through the gate of the call. */
  async execute(input: JsonObject, context?: ToolCallContext): Promise<ToolResult> {
    const { turn, host } = this.#session;
    if (turn === null) throw noTurn(this.name);
    const names = [this.name, this.#key] as const;
    const call = turn.running(context?.id, names, toFrozenObject(input), () => host.newId("call"));
    return await this.run(turn, call, {}, context);
  }

  /**
   * Runs a call: gate, arguments, question, limit, deadline, tool, report.
   *
   * @throws the error of the tool, which is then how the call ended; `limit_reached`; an error of the log.
   */
  async run(turn: Turn, call: Call, asked: AskedFacts, context?: ToolCallContext): Promise<ToolResult> {
    call.started = true;
    try {
      const known = turn.recovered?.get(call.id);
      if (typeof known === "object") return endedBefore(call, known);
      const { steps } = this.#session;
      const pre = await steps.pre(call);
      if (pre.action !== "deny") {
        const refusal = (pre.modified ? null : unreadable(call.name, asked)) ??
          await refusalOfInput(this, call.input);
        if (refusal) return await refuse(this.#session, call, refusal);
      }
      const { allowed, reason } = await steps.decide(call);
      if (!allowed) return toolFailure(`Denied by hook: ${reason}`, { type: "denied" });
      call.ended = await this.#run(call, known, context);
      return await this.#report(turn, call);
    } finally {
      call.done = true;
      call.over?.resolve();
    }
  }

  /** Executes the tool within limit and deadline; resolves to how the call ended. */
  async #run(
    call: Call,
    known: "lost" | "redacted" | undefined,
    context: ToolCallContext | undefined,
  ): Promise<Ended> {
    const session = this.#session;
    const { limits, cancellation } = session;
    const deadline = call.deadline = new CallDeadline(session, call.name);
    cancellation.registerToolStart(call.id, call.name);
    try {
      if (known !== undefined) requireRepeatable(known, this.name, this.idempotent);
      const counted = withinLimits(session, () => session.run_limits.countToolCall(), {
        tool_call_id: call.id,
      });
      if (counted) await counted;
      const returned = this.#tool.execute(toPlainObject(call.input), {
        id: call.id,
        session_id: session.session_id,
        signal: deadline.signal,
        progress: (text) => this.#progress(call, text, context),
        output: (text, stream) => this.#output(call, text, stream),
      });
      const answer = isThenable(returned) ? await deadline.wait(returned) : returned;
      if (isResult(answer)) session.noteReturned("tool result", answer, this.#module_id);
      return { result: boundedResult(toToolResult(answer), limits) };
    } catch (error) {
      return { error: boundedError(error, limits.max_tool_result_bytes) };
    } finally {
      deadline.stop();
      call.deadline = null;
      cancellation.registerToolComplete(call.id);
    }
  }

  /** Reports how a call ended; resolves to its result, which hooks may have replaced. */
  async #report(turn: Turn, call: Call): Promise<ToolResult> {
    const { steps, cancellation, error_locators } = this.#session;
    const ended = call.ended!; // it has just ended
    if ("result" in ended) {
      const post = await steps.report(call, "tool:post", { result: shownResult(ended.result) });
      const changed = changedResult(ended.result, post);
      if (changed) call.ended = { result: changed };
      return changed ?? ended.result;
    }
    const { error: thrown } = ended as { error: unknown }; // it ran: it was not denied
    turn.limit ??= limitOf(thrown);
    if (errorCode(thrown) === "cancelled" || cancellation.is_immediate) throw thrown;
    const at = error_locators?.get(this.#module_id)?.(thrown);
    const error = { type: toolErrorType(thrown), msg: errorMessage(thrown) };
    await steps.report(call, "tool:error", { error: at === undefined ? error : { ...error, at } });
    throw thrown;
  }

  #progress(call: Call, text: string, context: ToolCallContext | undefined): void {
    context?.progress(text);
    this.#session.hooks.emit("user:notification", {
      message: String(text),
      level: "info",
      source: `tool:${call.name}`,
      tool_call_id: call.id,
    }).catch((error) => this.#session.host.warn("progress_lost", String(error)));
  }

  #output(call: Call, text: string, stream: unknown): void {
    const shown = String(text).slice(0, MAX_OUTPUT_CHARS - call.output_chars);
    if (shown === "" || call.ended) return;
    call.output_chars += shown.length;
    const data = { tool_call_id: call.id, text: shown, stream: stream === "stderr" ? "stderr" : "stdout" };
    this.#session.hooks.emit("tool:output", data).catch((error) =>
      this.#session.host.warn("output_lost", String(error))
    );
  }
}

/** How a call ended that ran. */
type Ended = NonNullable<Call["ended"]>;

/** What a loop knows of the arguments of a call that the model requested. */
interface AskedFacts {
  /** Text that is no JSON object. */
  readonly invalid?: string | undefined;
  /** Whether the limit of output tokens cut the arguments. */
  readonly is_cut?: boolean | undefined;
}

/** Ends a call whose result is in the log from before an interruption. */
function endedBefore(call: Call, known: { result: ToolResult } | { error: Error }): ToolResult {
  call.ended = known;
  if ("result" in known) return known.result;
  const { error } = known;
  if (!REFUSALS.has(errorCode(error))) throw error;
  call.ended = { error, refused: true };
  return toolFailure(errorMessage(error), { type: errorCode(error) });
}

/** Codes of the calls in a log that were refused. */
const REFUSALS: ReadonlySet<unknown> = new Set(["tool_not_found", "tool_input_invalid"]);

/** What the model must do about a call that its limit cut: the same call would be cut again. */
const CUT = "the limit of output tokens (max_output_tokens) cut the answer in the middle of its arguments. " +
  "Write less in one call: divide a long text over several calls, such as one that creates a file and others that add to it";

/** Returns why a call cannot run whose arguments are no JSON object, or null. */
function unreadable(name: string, { invalid, is_cut }: AskedFacts): Refusal | null {
  if (invalid === undefined) return null;
  const msg = is_cut
    ? `The call of tool '${name}' was not run: ${CUT}`
    : `Arguments of tool '${name}' must be a JSON object: received ${invalid.slice(0, 200)}`;
  return { type: "tool_input_invalid", msg };
}

/** Ends a call that cannot run. */
async function refuse({ steps }: SessionContext, call: Call, { type, msg }: Refusal): Promise<ToolResult> {
  await steps.refuse(call);
  call.ended = { error: new Error(msg), refused: true };
  await steps.report(call, "tool:error", { error: { type, msg } });
  return toolFailure(msg, { type });
}

/**
 * Runs a call that the model requested, of any tool, mounted or not; resolves to its tool message.
 *
 * @throws {PreampError} `limit_reached`: the turn must end; `internal` when no turn is running; an error of
 * the log.
 */
export async function callTool(
  session: SessionContext,
  mounts: Mounts,
  { id, name, arguments: input, invalid_arguments }: ToolCall,
  { cut_call, ...facts }: CallFacts,
): Promise<Message> {
  const { turn, cancellation, host } = session;
  const answer = (content: Message["content"]): Message => ({
    role: "tool",
    tool_call_id: id,
    name,
    content,
  });
  if (turn === null) throw noTurn(name);
  if (cancellation.is_immediate) return answer(cancelledCallText(name));
  const call = turn.asked(id, name, input, () => host.newId("call"));
  call.facts = facts;
  try {
    const tool = mounts.toolNamed(name) as ToolGuard | undefined; // every mounted tool has its guard
    const asked = { invalid: invalid_arguments, is_cut: id === cut_call };
    if (tool) await tool.run(turn, call, asked);
    else await runUnknown(session, mounts, turn, call);
    return answer(session.steps.resultContentFor(call.id, name));
  } catch (error) {
    if (cancellation.is_immediate) return answer(cancelledCallText(name));
    const is_of_call = call.ended !== null && "error" in call.ended && call.ended.error === error; // else of the log
    if (!is_of_call || limitOf(error) !== null) throw error;
    return answer(session.steps.resultContentFor(call.id, name));
  }
}

/** Takes a call of a tool that is not mounted through its gate, and refuses it. */
async function runUnknown(session: SessionContext, { tools }: Mounts, turn: Turn, call: Call): Promise<void> {
  call.started = true;
  const known = turn.recovered?.get(call.id);
  if (typeof known === "object") endedBefore(call, known);
  else if ((await session.steps.pre(call)).action === "deny") await session.steps.decide(call);
  else await refuse(session, call, notFound(call.name, tools.names));
  call.done = true;
}

/** Maximum number of tools that the result of an unknown one names. */
const MAX_NAMES = 12;

function notFound(name: string, known: readonly string[]): Refusal {
  const nearest = nearestNames(name, known);
  const others = known.length > MAX_NAMES ? ` and ${known.length - MAX_NAMES} more` : "";
  const hint = nearest.length > 0
    ? `; did you mean ${nearest.map((near) => `'${near}'`).join(" or ")}?`
    : known.length > 0
    ? `; the tools are ${known.slice(0, MAX_NAMES).join(", ")}${others}`
    : "; there are no tools";
  return { type: "tool_not_found", msg: `Tool '${name}' not found${hint}` };
}

function noTurn(tool: string): PreampError {
  return new PreampError("internal", `Cannot execute tool "${tool}": no turn is running`);
}
