/** Formats the entries of a run's log as permanent lines of progress. */
import type { Entry } from "../../kernel/host.ts";
import type { Run } from "../../runs/types.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import { escapeUnprintable } from "../../text/escape.ts";
import { counted, type Style } from "./format.ts";

/** Maximum length of a model's or tool's text in a line of progress, in characters. */
const MAX_TEXT = 160;

/** Maximum length of a message to a person, in characters. It is long because advice is often at the end. */
const MAX_MESSAGE = 2_000;

/** Converts entries to lines. Remembers the start of each tool call. */
export class ProgressLines {
  readonly #style: Style;
  readonly #started = new Map<string, number>();
  readonly #answer_is_seen: boolean;

  /** @param options `answer_is_seen`: the answer is written to the same terminal. */
  constructor(style: Style, options: { answer_is_seen: boolean }) {
    this.#style = style;
    this.#answer_is_seen = options.answer_is_seen;
  }

  /** Returns the lines of an entry; for most entries an empty list. */
  of(entry: Entry): string[] {
    return this.#lines(entry).map((line) => indentOf(entry) + line);
  }

  #lines(entry: Entry): string[] {
    const { event, data, ts, verdict } = entry;
    const { dim, green, red } = this.#style;
    const call = callKey(entry);
    switch (event) {
      case "user:notification":
        return [this.#notificationLine(data)];
      case "tool:pre":
        this.#started.set(call, Date.parse(ts));
        return verdict?.action === "deny"
          ? [`${red("denied")} ${callText(data)}: ${formatValue(verdict.reason ?? "")}`]
          : [];
      case "approval:granted":
        this.#started.set(call, Date.parse(ts)); // the time of a tool starts after the approval
        return [`${green("allowed")} ${subject(data)}${by(data)}`];
      case "approval:denied":
        if (data.decision === "unanswered") return []; // the run's warning says so
        return [`${red("denied")} ${subject(data)}${by(data)}`];
      case "tool:post":
        return [this.#toolLine(entry)];
      case "tool:error":
        return [`${red("failed")} ${callText(data)}: ${errorText(data.error)}`];
      case "provider:response":
        if (data.tool_calls !== true || this.#answer_is_seen && entry.parent_id === undefined) return [];
        return textsOf(data.response).map((text) => dim(formatValue(text)));
      case "provider:retry":
        return [`${this.#style.yellow("retrying")} ${retryText(data)}`];
      case "provider:error":
        return [`${red("failed")} provider ${formatValue(data.provider)}: ${errorText(data.error)}`];
      case "task:agent_spawned":
        return [`agent ${formatValue(data.agent ?? data.sub_session_id)}`];
      case "task:agent_resumed":
        return [`agent ${formatValue(data.agent ?? data.sub_session_id)} continues`];
      case "task:agent_completed":
        return data.status === "completed" ? [] : [
          `${red(formatValue(data.status))} agent ${formatValue(data.agent)}: ${
            errorText(data.error ?? data.stop_reason)
          }`,
        ];
      default:
        return [];
    }
  }

  #toolLine(entry: Entry): string {
    const { data, ts } = entry;
    const { dim, green, red } = this.#style;
    const result = isObject(data.result) ? data.result : {};
    const ms = Date.parse(ts) - (this.#started.get(callKey(entry)) ?? Date.parse(ts));
    const time = dim(`(${duration(ms)})`);
    // a tool may report its failure in its output
    const reason = result.error === null && typeof result.output === "string" && result.output !== ""
      ? messageText(result.output)
      : errorText(result.error);
    return result.success === false
      ? `${red("failed")} ${callText(data)}: ${reason} ${time}`
      : `${green("called")} ${callText(data)} = ${formatValue(result.output)} ${time}`;
  }

  /** Formats a hook's `user_message`, a tool's `progress` or a warning of the context. */
  #notificationLine({ message, level, source }: JsonObject): string {
    const { cyan, dim, red, yellow } = this.#style;
    const text = messageText(message);
    const [, kind, name] = /^(tool:|hook:)?(.*)$/s.exec(typeof source === "string" ? source : "") ?? [];
    if (kind === "tool:") return `${cyan(formatValue(name))}: ${text}`;
    const label = level === "error"
      ? red("error:")
      : level === "warning"
      ? yellow("warning:")
      : cyan("note:");
    return `${label} ${text}${name ? dim(` (${formatValue(name)})`) : ""}`;
  }
}

/** Returns which call is repeated, how, and why. */
function retryText({ provider, delay, error_type, error_message }: JsonObject): string {
  const how = error_type === "ContextLengthError"
    ? "with fewer tokens"
    : delay === 0
    ? "at once"
    : `in ${duration(1000 * Number(delay))}`;
  return `provider ${formatValue(provider)} ${how}: ${messageText(error_message)}`;
}

/** Returns the indentation of sub-agents' lines. */
export function indentOf(entry: Entry): string {
  return entry.parent_id === undefined ? "" : "  ";
}

/**
 * Returns a key of a tool call. Ids of calls are unique only in a session: two agents may both have a
 * `call_1`.
 */
export function callKey({ session_id, data }: Pick<Entry, "session_id" | "data">): string {
  return `${session_id} ${String(data.tool_call_id)}`;
}

function callText(data: JsonObject): string {
  return `${formatValue(data.tool_name)} ${formatValue(data.tool_input)}`;
}

function subject(data: JsonObject): string {
  return data.tool_name === null ? "the step" : formatValue(data.tool_name);
}

function by(data: JsonObject): string {
  if (data.decision === "timeout") return ": not answered in time, the default applies";
  const decided_by = typeof data.decided_by === "string" ? ` by ${formatValue(data.decided_by)}` : "";
  return `${decided_by}${typeof data.reason === "string" ? `: ${formatValue(data.reason)}` : ""}`;
}

/** Returns the message of an error and the place in the module where it was thrown. */
function errorText(error: unknown): string {
  if (!isObject(error)) return messageText(error ?? "no reason was given");
  const at = typeof error.at === "string" ? ` at ${messageText(error.at)}` : "";
  return `${messageText(error.msg ?? error.message ?? error)}${at}`;
}

function textsOf(response: unknown): string[] {
  const content = isObject(response) && Array.isArray(response.content) ? response.content : [];
  return content.flatMap((block) =>
    isObject(block) && block.type === "text" && typeof block.text === "string" ? [block.text] : []
  );
}

/** Returns any value as short printable text on one line. */
export function formatValue(value: unknown): string {
  return printed(value, MAX_TEXT);
}

/** Returns a message for a person as one printable line. */
export function messageText(value: unknown): string {
  return printed(value, MAX_MESSAGE);
}

function printed(value: unknown, max: number): string {
  const text = typeof value === "string" ? value : JSON.stringify(value) ?? "nothing";
  const points = [...text.slice(0, max * 2).trim().replaceAll(/[\r\n\t]+/g, " ")];
  return escapeUnprintable(points.length > max ? `${points.slice(0, max - 1).join("")}…` : points.join(""));
}

/** Returns a duration for a person: `3 ms`, `1.2 s`, `4 min 5 s`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} min${seconds % 60 === 0 ? "" : ` ${seconds % 60} s`}`;
}

/** Returns dollars with four digits after the point, or all digits if those four would be 0. */
export function dollars(cost_usd: string): string {
  const value = Number(cost_usd);
  return value === 0 || value >= 0.0001 ? `$${value.toFixed(4)}` : `$${cost_usd}`;
}

/** Returns the last line of a run's output. */
export function summaryLine(run: Run, style: Style): string {
  const { status, stop_reason, turn_count, tool_call_count, usage } = run;
  const outcome = status === "completed"
    ? style.green(status)
    : style.red(stop_reason === null || stop_reason === status ? status : `${status} (${stop_reason})`);
  const facts = [
    counted(turn_count, "model call"),
    counted(tool_call_count, "tool call"),
    `${usage.total_tokens.toLocaleString("en-US")} tokens`,
    ...(usage.cost_usd === null ? [] : [dollars(usage.cost_usd)]),
    ...(run.ended_at === null ? [] : [duration(Date.parse(run.ended_at) - Date.parse(run.created_at))]),
  ];
  return `${outcome}${style.dim(`: ${facts.join(", ")}`)}`;
}
