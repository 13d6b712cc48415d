/** The flags `--output-format` and `--json`, which are the same for every command. */
import { type Arguments, type Flag, UsageError } from "./arguments.ts";
import type { Io } from "./terminal/io.ts";

/** Formats of every command that prints an answer. */
const FORMATS = ["text", "json"] as const;

/** Options of {@link formatFlags}. */
export interface FormatOptions {
  /** Description of the output in each format. */
  help: string;
  /** One letter for `--output-format`. */
  short?: string;
  /** Formats in addition to `text` and `json`. */
  more?: readonly string[];
}

/** Returns the format flags of a command. */
export function formatFlags({ help, short, more = [] }: FormatOptions): Flag[] {
  const value = [...FORMATS, ...more].join("|");
  return [
    { name: "output-format", ...(short === undefined ? {} : { short }), value, help },
    { name: "json", help: "the same as --output-format json" },
  ];
}

/** Returns the requested format. @throws {UsageError} for a format that the command does not have. */
export function readFormat<More extends string = never>(
  args: Arguments,
  more: readonly More[] = [],
): "text" | "json" | More {
  const formats = [...FORMATS, ...more];
  const requested = args.value("output-format");
  const format = formats.find((name) => name === (requested ?? (args.has("json") ? "json" : "text")));
  if (format === undefined) {
    throw new UsageError(
      `Cannot use --output-format: must be ${formats.join(", ")}, but is ${JSON.stringify(requested)}`,
    );
  }
  if (args.has("json") && format === "text") {
    throw new UsageError("Cannot use --json with --output-format text; remove one of them");
  }
  return format;
}

/** Returns whether JSON is requested. @throws {UsageError} for an unknown format. */
export function wantsJson(args: Arguments): boolean {
  return readFormat(args) === "json";
}

/** Writes an answer as JSON: indented for a person, on one line for a program. */
export function writeJson(io: Pick<Io, "out">, answer: unknown): void {
  io.out.write(`${JSON.stringify(answer, null, io.out.terminal ? 2 : 0)}\n`);
}
