/** Formats tool calls for a person: the line of a call, its arguments, its result with its diff. */
import type { Entry } from "../../kernel/host.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import { escapeUnprintable } from "../../text/escape.ts";
import { cutToWidth, type Style } from "./format.ts";
import { formatValue } from "./progress_lines.ts";

/** Lines of a result that are shown, and of one with a diff. */
export const MAX_RESULT_LINES = 8;
const MAX_DIFF_LINES = 40;

/** Fields of a tool's input that say most about the call, best first. */
const TELLING = [
  "command",
  "pattern",
  "query",
  "url",
  "path",
  "file_path",
  "name",
  "expression",
  "instruction",
];

/** A tool call with the width that its lines may have. */
interface Shown {
  readonly data: JsonObject;
  readonly style: Style;
  readonly columns: number;
}

/** Returns the line of a call that starts: its tool and what it is about. */
export function callLine({ data, style, columns }: Shown): string {
  const name = formatValue(data.tool_name);
  return `${style.cyan("●")} ${style.bold(name)} ${cutToWidth(subjectOf(data), columns - name.length - 4)}`
    .trimEnd();
}

/** Returns a call as its tool and what it is about, both on one line. */
export function callTitle(data: JsonObject): { name: string; subject: string } {
  return { name: formatValue(data.tool_name), subject: subjectOf(data) };
}

/** What a call has answered: its text, the change that it made, and whether it failed. */
export interface AnsweredCall {
  readonly text: string;
  readonly diff: string | null;
  readonly failed: boolean;
}

/** Returns what a call has answered, of its `tool:post` or `tool:error`; nothing is escaped. */
export function resultText({ event, data }: Pick<Entry, "event" | "data">): AnsweredCall {
  if (event === "tool:error") {
    const { error } = data;
    const message = isObject(error) ? error.msg ?? error.message : error;
    return { text: String(message ?? "no reason was given"), diff: null, failed: true };
  }
  const { output, error, success } = isObject(data.result) ? data.result : {} as JsonObject;
  const said = textOf(output);
  if (success === false) {
    const message = isObject(error) ? String(error.message ?? error.msg ?? "") : "";
    const is_said = said.includes(message) ||
      isObject(error) && said.trimEnd().endsWith(`exit code ${error.exit_code})`);
    const text = is_said ? said : said === "" ? message : `${said.trimEnd()}\n${message}`;
    return { text, diff: null, failed: true };
  }
  const at = said.indexOf("\n@@ ");
  if (at < 0) return { text: said, diff: null, failed: false };
  return { text: said.slice(0, at), diff: said.slice(at + 1), failed: false };
}

/** Returns what a call is about, on one line: its path, its command or its arguments. */
function subjectOf({ tool_input: input }: JsonObject): string {
  if (!isObject(input)) return "";
  const field = TELLING.find((name) => typeof input[name] === "string" && input[name] !== "");
  if (field !== undefined) return formatValue(input[field]);
  return Object.keys(input).length === 0 ? "" : formatValue(input);
}

/**
 * Returns the lines of a result, or of a failure. `is_known`: the person has seen the change in the question
 * about it.
 */
export function resultLines(
  { event, data, style, columns }: Shown & Pick<Entry, "event">,
  is_known: boolean,
): string[] {
  const { text, diff, failed } = resultText({ event, data });
  const lines = textLines(text, columns, MAX_RESULT_LINES).map(failed ? style.red : style.dim);
  if (diff === null || is_known) return lines;
  return [...lines, ...textLines(diff, columns, MAX_DIFF_LINES).map((line) => diffLine(line, style))];
}

function textOf(output: unknown): string {
  if (typeof output === "string") return output;
  if (isObject(output) && typeof output.response === "string") return output.response; // of a sub-agent
  return output === undefined || output === null ? "" : JSON.stringify(output);
}

/** Returns the first lines of a text, cut to the width, and how many are left out. */
function textLines(text: string, columns: number, max: number): string[] {
  const lines = text.trimEnd().split("\n");
  if (lines.length === 1 && lines[0] === "") return [];
  const shown = lines.slice(0, lines.length === max + 1 ? max + 1 : max).map((line) =>
    resultLine(line, columns)
  );
  const left = lines.length - shown.length;
  return left === 0 ? shown : [...shown, `… ${left} more lines`];
}

/** Returns a line of a result, cut to the width. */
export function resultLine(line: string, columns: number): string {
  return cutToWidth(printable(line), columns - 4);
}

/** Returns a line of a change in its colour. */
export function diffLine(line: string, { cyan, dim, green, red }: Style): string {
  if (line.startsWith("+")) return green(line);
  if (line.startsWith("-")) return red(line);
  return line.startsWith("@@") ? cyan(line) : dim(line);
}

/** Returns all that a call would do, never shortened: a person must see what they allow. */
export function inputLines(input: JsonObject | null, style: Style): string[] {
  if (input === null || Object.keys(input).length === 0) return [];
  const { command, content, edits, old_string, new_string, patch, ...others } = input;
  const lines: string[] = [];
  const rest: JsonObject = { ...others };
  const key = typeof input.path === "string" ? "path" : "file_path"; // of both, the other one is in the rest
  if (typeof input[key] === "string") {
    lines.push(printable(input[key]));
    delete rest[key];
  }
  const add = (name: string, value: unknown, format: (text: string) => string[]) => {
    if (typeof value === "string") lines.push(...format(value));
    else if (value !== undefined) rest[name] = value;
  };
  const all = (text: string) => text.replace(/\n$/, "").split("\n").map(printable);
  add("command", command, (text) => all(text).map((line, index) => `${index === 0 ? "$" : " "} ${line}`));
  add("content", content, (text) => all(text).map((line) => style.green(`+${line}`)));
  add("patch", patch, (text) => all(text).map((line) => diffLine(line, style)));
  for (
    const edit of [...(Array.isArray(edits) ? edits : edits === undefined ? [] : [edits]), {
      old_string,
      new_string,
    }]
  ) {
    if (!isObject(edit) || typeof edit.old_string !== "string" || typeof edit.new_string !== "string") {
      if (!isObject(edit) || Object.values(edit).some((value) => value !== undefined)) {
        lines.push(...json(edit));
      }
      continue;
    }
    const { old_string, new_string, ...more } = edit;
    lines.push(...all(old_string).map((line) => style.red(`-${line}`)));
    lines.push(...all(new_string).map((line) => style.green(`+${line}`)));
    lines.push(...fieldLines(more));
  }
  return [...lines, ...fieldLines(rest)];
}

/** Returns the other fields of an input, one a line. */
function fieldLines(fields: JsonObject): string[] {
  return Object.entries(fields).flatMap(([name, value]) => {
    const [first = "", ...more] = isPlain(value) ? [printable(value)] : json(value);
    return [`${/^[\w.-]+$/.test(name) ? name : printable(JSON.stringify(name))}: ${first}`, ...more];
  });
}

/** Whether a text reads as itself without quotation marks: it is one line, and no other JSON value. */
function isPlain(value: unknown): value is string {
  return typeof value === "string" && !/^[\s"[{\d-]|^(?:true|false|null)$|[\r\n]|\s$|^$/.test(value);
}

function json(value: unknown): string[] {
  const short = JSON.stringify(value) ?? "";
  return (short.length <= 80 ? short : JSON.stringify(value, null, 2)).split("\n").map(printable);
}

/** Returns a line with its control characters escaped; tabs become spaces, so that the width is known. */
function printable(line: string): string {
  return escapeUnprintable(line.replace(/\r$/, "").replaceAll("\t", "  "));
}
