/** Parses command lines strictly: an unknown flag is an error that suggests a known one. */
import { didYouMean } from "../sdk/findings.ts";

/** A flag of a command. */
export interface Flag {
  /** Without the dashes. */
  readonly name: string;
  /** One letter. */
  readonly short?: string;
  /** Name of its value in the usage; absent for a flag without a value. */
  readonly value?: string;
  /** All possible values; the usage has them in place of `value`. Absent: any text. */
  readonly choices?: readonly string[];
  /** Whether it may be given without its value; the value is then written as `--name=value` only. */
  readonly value_optional?: boolean;
  /** Whether it may be given more than once. */
  readonly many?: boolean;
  /** One line for the usage; an empty text leaves the flag out of the usage. */
  readonly help: string;
}

/**
 * Returns the value of a flag in the usage, such as `FILE` or `text|json`; undefined for a flag without a
 * value.
 */
export function valueName({ value, choices }: Flag): string | undefined {
  return value ?? choices?.join("|");
}

/** A parsed command line. */
export class Arguments {
  readonly #values: ReadonlyMap<string, readonly string[]>;
  /** Arguments that are not flags, in order. */
  readonly rest: readonly string[];

  constructor(values: ReadonlyMap<string, readonly string[]>, rest: readonly string[]) {
    this.#values = values;
    this.rest = rest;
  }

  /** Returns whether a flag was given. */
  has(name: string): boolean {
    return this.#values.has(name);
  }

  /** Returns the value of a flag that may be given once. */
  value(name: string): string | undefined {
    return this.#values.get(name)?.[0];
  }

  /** Returns all values of a flag, in order. */
  all(name: string): readonly string[] {
    return this.#values.get(name) ?? [];
  }
}

/**
 * Parses a command line: `--name value`, `--name=value`, `-n value`. Arguments after `--` are not flags.
 *
 * @throws {UsageError} for an unknown flag, a missing, unexpected or unknown value, or a flag given twice.
 */
export function readArguments(args: readonly string[], flags: readonly Flag[]): Arguments {
  const values = new Map<string, string[]>();
  const rest: string[] = [];
  const words = [...args];
  for (let word = words.shift(); word !== undefined; word = words.shift()) {
    if (word === "--") {
      rest.push(...words);
      break;
    }
    if (word === "-" || !word.startsWith("-")) {
      rest.push(word);
      continue;
    }
    const { written, flag, inline } = split(word, flags);
    const earlier = values.get(flag.name) ?? [];
    if (earlier.length > 0 && !flag.many) throw new UsageError(`Cannot use ${written}: it was given twice`);
    const takes_next = valueName(flag) !== undefined && !flag.value_optional;
    const value = inline ?? (takes_next ? words.shift() : undefined);
    values.set(flag.name, [...earlier, checkedValue(flag, written, value, inline !== undefined)]);
  }
  return new Arguments(values, rest);
}

/**
 * Splits `--name`, `--name=value`, `-n` and `-nvalue`; letters are not combined. The parser of `node:util` is
 * not used because loading it takes as long as starting a server.
 */
function split(
  word: string,
  flags: readonly Flag[],
): { written: string; flag: Flag; inline: string | undefined } {
  const is_long = word.startsWith("--");
  const end = is_long ? word.indexOf("=") : 2;
  const written = end < 0 ? word : word.slice(0, end);
  const inline = written === word ? undefined : word.slice(end).replace(/^=/, "");
  const name = written.replace(/^--?/, "");
  const flag = flags.find((flag) => (is_long ? flag.name : flag.short) === name);
  if (flag && (is_long || inline === undefined || valueName(flag) !== undefined)) {
    return { written, flag, inline };
  }
  const unknown = is_long ? written : word;
  const meant = didYouMean(unknown.replace(/^-+/, ""), flags.map((flag) => flag.name));
  const advice = meant === undefined ? "" : `; did you mean --${meant}?`;
  throw new UsageError(
    `Cannot use ${JSON.stringify(unknown.slice(0, 80))}: there is no such flag${advice}`,
  );
}

function checkedValue(flag: Flag, written: string, value: string | undefined, inline: boolean): string {
  const { choices, value_optional, name } = flag;
  const refuse = (fact: string): never => {
    throw new UsageError(`Cannot use ${written}: ${fact}`);
  };
  const form = valueName(flag);
  if (value === undefined) {
    return form === undefined || value_optional ? "" : refuse(`it needs a value, ${written} ${form}`);
  }
  const quoted = JSON.stringify(value);
  if (form === undefined) return refuse(`it takes no value, but received ${quoted}`);
  if (!inline && value.length > 1 && value.startsWith("-")) {
    const advice = `write ${written}=${value} to use that text as the value`;
    return refuse(`it needs a value, but the flag ${quoted} follows; ${advice}`);
  }
  if (choices && !choices.includes(value)) {
    const list = choices.join(choices.length === 2 ? " or " : ", ");
    throw new UsageError(`Cannot use --${name}: must be ${list}, but is ${quoted}`);
  }
  return value;
}

/** Returns what to do about an unknown word: `did you mean X?`, or else other advice. */
export function adviceFor(word: string, known: Iterable<string>, otherwise: string): string {
  const meant = didYouMean(word, known);
  return meant === undefined ? otherwise : `did you mean ${meant}?`;
}

/** Thrown for a command line that cannot be used; `message` says how to correct it. */
export class UsageError extends Error {
  override readonly name = "UsageError";
  /** Command or group to show help for; "" for the usage of the program. Default: the command that runs. */
  command?: string;
}

/**
 * Returns the flags `--output-format` and `--json`, which are the same for every command that prints an
 * answer.
 */
export function formatFlags(
  { help, short, more = [] }: {
    /** Description of the output in each format. */
    help: string;
    /** One letter for `--output-format`. */
    short?: string;
    /** Formats in addition to `text` and `json`. */
    more?: readonly string[];
  },
): Flag[] {
  const choices = ["text", "json", ...more];
  return [
    { name: "output-format", ...(short === undefined ? {} : { short }), choices, help },
    { name: "json", help: "the same as --output-format json" },
  ];
}

/** Returns the requested format. @throws {UsageError} for `--json` with the format `text`. */
export function formatOf(args: Arguments): string {
  const format = args.value("output-format") ?? (args.has("json") ? "json" : "text");
  if (!args.has("json") || format !== "text") return format;
  throw new UsageError("Cannot use --json with --output-format text; remove one of them");
}
