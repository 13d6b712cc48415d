/** What happens in a run, told on stderr: lines that stay, from the entries of its log. Where they go is the others' business. */
import type { Entry } from "../../kernel/host.ts";
import type { Run } from "../../runs/types.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import { escapeUnprintable } from "../../text/escape.ts";
import type { OpenLine } from "../answer.ts";
import type { Output } from "./io.ts";
import { type Style, styleOf } from "./style.ts";

/** Shows a run while it goes on. */
export interface Progress {
  /** Takes the next entry of the log. */
  entry(entry: Entry): void;
  /** Writes a line that stays. */
  note(text: string): void;
  /** Clears what is drawn, before something else is written to the same terminal. */
  clear(): void;
  /** Leaves the terminal to somebody else until the returned function is called, once. */
  hold(): () => void;
  /** Ends; nothing is drawn afterwards. */
  close(): void;
}

/** Longest text of a model or tool on a line of progress, in characters. */
const MAX_TEXT = 160;

/** Longest message to a person, in characters: what to do about it is often at its end. */
const MAX_MESSAGE = 2_000;

/**
 * Returns progress as plain lines, for a pipe or a log.
 * @param answer The answer, when it is written to the same terminal.
 */
export function plainProgress(output: Output, answer?: OpenLine): Progress {
  const lines = new ProgressLines(styleOf(output), { answer_is_seen: answer !== undefined });
  const held = new HeldLines((text) => {
    answer?.breakLine();
    output.write(`${text}\n`);
  });
  const note = (text: string) => held.add(text);
  return {
    entry(entry) {
      // what a terminal's live line shows by itself: whom the run waits for
      if (entry.event === "provider:request") {
        note(`${indentOf(entry)}asking ${formatValue(entry.data.provider)}`);
      }
      lines.of(entry).forEach(note);
    },
    note,
    clear() {},
    hold() {
      answer?.breakLine();
      return held.hold();
    },
    close: () => held.flush(),
  };
}

/** Lines that wait while a question has the terminal. */
export class HeldLines {
  readonly #print: (line: string) => void;
  readonly #waiting: string[] = [];
  #holds = 0;

  /** @param print Writes a line, when nothing holds it back. */
  constructor(print: (line: string) => void) {
    this.#print = print;
  }

  /** Whether lines wait. */
  get held(): boolean {
    return this.#holds > 0;
  }

  /** Prints a line, now or when it is no longer held back. */
  add(line: string): void {
    if (this.held) this.#waiting.push(line);
    else this.#print(line);
  }

  /** Holds lines back until the returned function is called, once. */
  hold(): () => void {
    this.#holds++;
    return () => {
      this.#holds--;
      if (!this.held) this.#waiting.splice(0).forEach(this.#print);
    };
  }

  /** Prints what waits, and holds nothing back from now on. */
  flush(): void {
    this.#holds = 0;
    this.#waiting.splice(0).forEach(this.#print);
  }
}

/** Entries → lines. Remembers when each tool call began. */
export class ProgressLines {
  readonly #style: Style;
  readonly #started = new Map<string, number>();
  readonly #answer_is_seen: boolean;

  /** @param options `answer_is_seen`: the texts of the run's own session are on the same terminal already. */
  constructor(style: Style, options: { answer_is_seen: boolean }) {
    this.#style = style;
    this.#answer_is_seen = options.answer_is_seen;
  }

  /** Returns the lines that an entry is worth; most are worth none. */
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
        this.#started.set(call, Date.parse(ts)); // waiting for a person is not the tool's time
        return [`${green("allowed")} ${subject(data)}${by(data)}`];
      case "approval:denied":
        return [`${red("denied")} ${subject(data)}${by(data)}`];
      case "tool:post":
        return [this.#toolLine(entry)];
      case "tool:error":
        return [`${red("failed")} ${callText(data)}: ${errorText(data.error)}`];
      case "provider:response":
        if (data.tool_calls !== true || this.#answer_is_seen && entry.parent_id === undefined) return [];
        return textsOf(data.response).map((text) => dim(formatValue(text)));
      case "provider:error":
        return [`${red("failed")} provider ${formatValue(data.provider)}: ${errorText(data.error)}`];
      case "task:agent_spawned":
        return [`agent ${formatValue(data.agent ?? data.sub_session_id)}`];
      case "task:agent_resumed":
        return [`agent ${formatValue(data.agent ?? data.sub_session_id)} goes on`];
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
    // a tool that is not written yet says so in its output
    const reason = result.error === null && typeof result.output === "string" && result.output !== ""
      ? messageText(result.output)
      : errorText(result.error);
    return result.success === false
      ? `${red("failed")} ${callText(data)}: ${reason} ${time}`
      : `${green("called")} ${callText(data)} = ${formatValue(result.output)} ${time}`;
  }

  /** A hook's `user_message`, a tool's `progress`, a warning of the context. */
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

/** Lines of a sub-agent are indented. */
function indentOf(entry: Entry): string {
  return entry.parent_id === undefined ? "" : "  ";
}

/** Ids of calls are a session's own: two agents may both have a `call_1`. */
export function callKey({ session_id, data }: Entry): string {
  return `${session_id} ${String(data.tool_call_id)}`;
}

function callText(data: JsonObject): string {
  return `${formatValue(data.tool_name)} ${formatValue(data.tool_input)}`;
}

function subject(data: JsonObject): string {
  return data.tool_name === null ? "the step" : formatValue(data.tool_name);
}

function by(data: JsonObject): string {
  if (typeof data.decided_by === "string") return ` by ${formatValue(data.decided_by)}`;
  if (data.decision === "timeout") return ": nobody answered, the default applies";
  return typeof data.reason === "string" ? `: ${formatValue(data.reason)}` : "";
}

/** The message, and the place in the module's file where it was thrown. */
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

/** Returns anything as one printable, short piece of a line. */
export function formatValue(value: unknown): string {
  return printed(value, MAX_TEXT);
}

/** Returns a message to a person as one printable line. */
export function messageText(value: unknown): string {
  return printed(value, MAX_MESSAGE);
}

function printed(value: unknown, max: number): string {
  const text = typeof value === "string" ? value : JSON.stringify(value) ?? "nothing";
  const points = [...text.slice(0, max * 2).trim().replaceAll(/[\r\n\t]+/g, " ")];
  return escapeUnprintable(points.length > max ? `${points.slice(0, max - 1).join("")}…` : points.join(""));
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
