/** `--output-format` and its short form `--json`, the same for every command. */
import type { Arguments, Flag } from "./arguments.ts";
import type { Io } from "./terminal/io.ts";
import { UsageError } from "./usage_error.ts";

/** Formats that every command with an answer has. */
const FORMATS = ["text", "json"] as const;

/** How the flags of a command differ from the usual ones. */
export interface FormatOptions {
  /** What the command prints. */
  help: string;
  /** One letter for `--output-format`. */
  short?: string;
  /** Formats in addition to `text` and `json`. */
  more?: readonly string[];
}

/** Returns the flags of a command that prints text or JSON. */
export function formatFlags({ help, short, more = [] }: FormatOptions): Flag[] {
  const value = [...FORMATS, ...more].join("|");
  return [
    { name: "output-format", ...(short === undefined ? {} : { short }), value, help },
    { name: "json", help: "the same as --output-format json" },
  ];
}

/** Returns the format that is asked for. @throws {UsageError} for one that the command does not have. */
export function readFormat<More extends string = never>(
  args: Arguments,
  more: readonly More[] = [],
): "text" | "json" | More {
  const formats = [...FORMATS, ...more];
  const given = args.value("output-format");
  const format = formats.find((one) => one === (given ?? (args.has("json") ? "json" : "text")));
  if (format === undefined) {
    throw new UsageError(
      `Cannot use --output-format: must be ${formats.join(", ")}: received ${JSON.stringify(given)}`,
    );
  }
  if (args.has("json") && format === "text") {
    throw new UsageError("Cannot use --json with --output-format text: leave one of them out");
  }
  return format;
}

/** Returns whether JSON is asked for. @throws {UsageError} for another format. */
export function wantsJson(args: Arguments): boolean {
  return readFormat(args) === "json";
}

/** Writes an answer as JSON: indented for a person, on one line for a program. */
export function writeJson(io: Pick<Io, "out">, answer: unknown): void {
  io.out.write(`${JSON.stringify(answer, null, io.out.terminal ? 2 : 0)}\n`);
}
