/** What happens in a run, told on stderr: lines that stay, from the entries of its log. Where they go is the others' business. */
import type { Entry } from "../kernel/host.ts";
import type { Run } from "../runs/types.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";
import { escapeUnprintable } from "../server/printable.ts";
import type { Output } from "./io.ts";
import { type Style, styleOf } from "./style.ts";

/** Shows a run while it goes on. */
export interface Progress {
  /** Takes the next entry of the log. */
  entry(entry: Entry): void;
  /** Writes a line that stays. */
  note(text: string): void;
  /** Leaves the terminal to somebody else until the returned function is called, once. */
  hold(): () => void;
  /** Ends; nothing is drawn afterwards. */
  close(): void;
}

/** Longest text of a model or tool on a line of progress, in characters. */
const MAX_TEXT = 160;

/** Returns progress as plain lines, for a pipe or a log. */
export function plainProgress(output: Output): Progress {
  const lines = new ProgressLines(styleOf(output));
  return {
    entry(entry) {
      // what a terminal's live line shows by itself: whom the run waits for
      if (entry.event === "provider:request") {
        output.write(`${indentOf(entry)}asking ${shown(entry.data.provider)}\n`);
      }
      for (const line of lines.of(entry)) output.write(`${line}\n`);
    },
    note: (text) => output.write(`${text}\n`),
    hold: () => () => {},
    close() {},
  };
}

/** Entries → lines. Remembers when each tool call began. */
export class ProgressLines {
  readonly #style: Style;
  readonly #started = new Map<string, number>();

  constructor(style: Style) {
    this.#style = style;
  }

  /** Returns the lines that an entry is worth; most are worth none. */
  of(entry: Entry): string[] {
    return this.#lines(entry).map((line) => indentOf(entry) + line);
  }

  #lines(entry: Entry): string[] {
    const { event, data, ts, verdict } = entry;
    const { dim, green, red, yellow } = this.#style;
    const call = callKey(entry);
    switch (event) {
      case "module:skipped":
        return [
          `${yellow("skipped")} ${shown(data.module_id)}: ${shown(data.reason ?? errorText(data.error))}`,
        ];
      case "tool:pre":
        this.#started.set(call, Date.parse(ts));
        return verdict?.action === "deny"
          ? [`${red("denied")} ${callText(data)}: ${shown(verdict.reason ?? "")}`]
          : [];
      case "approval:granted":
        this.#started.set(call, Date.parse(ts)); // waiting for a person is not the tool's time
        return [`${green("allowed")} ${subject(data)}${by(data)}`];
      case "approval:denied":
        return [`${red("denied")} ${subject(data)}${by(data)}`];
      case "tool:post":
        return [this.#toolLine(entry)];
      case "tool:error":
        return [`${red("failed")} ${callText(data)}: ${errorText(data.error)}`];
      case "provider:response":
        return data.tool_calls === true ? textsOf(data.response).map((text) => dim(shown(text))) : [];
      case "provider:error":
        return [`${red("failed")} provider ${shown(data.provider)}: ${errorText(data.error)}`];
      case "task:agent_spawned":
        return [`agent ${shown(data.agent ?? data.sub_session_id)}`];
      case "task:agent_resumed":
        return [`agent ${shown(data.agent ?? data.sub_session_id)} goes on`];
      case "task:agent_completed":
        return data.status === "completed" ? [] : [
          `${red(shown(data.status))} agent ${shown(data.agent)}: ${
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
    return result.success === false
      ? `${red("failed")} ${callText(data)}: ${errorText(result.error)} ${time}`
      : `${green("called")} ${callText(data)} = ${shown(result.output)} ${time}`;
  }
}

/** Lines of a sub-agent stand in from its parent's. */
function indentOf(entry: Entry): string {
  return entry.parent_id === undefined ? "" : "  ";
}

/** Ids of calls are a session's own: two agents may both have a `call_1`. */
export function callKey({ session_id, data }: Entry): string {
  return `${session_id} ${String(data.tool_call_id)}`;
}

function callText(data: JsonObject): string {
  return `${shown(data.tool_name)} ${shown(data.tool_input)}`;
}

function subject(data: JsonObject): string {
  return data.tool_name === null ? "the step" : shown(data.tool_name);
}

function by(data: JsonObject): string {
  if (typeof data.decided_by === "string") return ` by ${shown(data.decided_by)}`;
  if (data.decision === "timeout") return ": nobody answered, the default applies";
  return typeof data.reason === "string" ? `: ${shown(data.reason)}` : "";
}

function errorText(error: unknown): string {
  if (!isObject(error)) return shown(error ?? "no reason was given");
  return shown(error.msg ?? error.message ?? error);
}

function textsOf(response: unknown): string[] {
  const content = isObject(response) && Array.isArray(response.content) ? response.content : [];
  return content.flatMap((block) =>
    isObject(block) && block.type === "text" && typeof block.text === "string" ? [block.text] : []
  );
}

/** Returns anything as one printable, short piece of a line. */
export function shown(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value) ?? "nothing";
  const points = [...text.slice(0, MAX_TEXT * 2).replaceAll(/[\r\n\t]+/g, " ")];
  return escapeUnprintable(
    points.length > MAX_TEXT ? `${points.slice(0, MAX_TEXT - 1).join("")}…` : points.join(""),
  );
}

/** Returns milliseconds as people say them: `3 ms`, `1.2 s`, `4 min 5 s`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} min${seconds % 60 === 0 ? "" : ` ${seconds % 60} s`}`;
}

/** Returns dollars with four digits after the point, more when they would all be 0. */
export function dollars(cost_usd: string): string {
  const value = Number(cost_usd);
  return value === 0 || value >= 0.0001 ? `$${value.toFixed(4)}` : `$${cost_usd}`;
}

/** Returns the line that a run ends with. */
export function summaryLine(run: Run, style: Style): string {
  const { status, stop_reason, turn_count, tool_call_count, usage } = run;
  const told = status === "completed"
    ? style.green(status)
    : style.red(stop_reason === null || stop_reason === status ? status : `${status} (${stop_reason})`);
  const facts = [
    counted(turn_count, "model call"),
    counted(tool_call_count, "tool call"),
    `${usage.total_tokens.toLocaleString("en-US")} tokens`,
    ...(usage.cost_usd === null ? [] : [dollars(usage.cost_usd)]),
    ...(run.ended_at === null ? [] : [duration(Date.parse(run.ended_at) - Date.parse(run.created_at))]),
  ];
  return `${told}${style.dim(`: ${facts.join(", ")}`)}`;
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
