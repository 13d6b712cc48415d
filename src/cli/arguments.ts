/**
 * Reads command lines strictly, with Node's `parseArgs`: an unknown flag is an error that suggests a known
 * one.
 */
import { parseArgs, type ParseArgsConfig } from "node:util";
import { didYouMean } from "../sdk/findings.ts";
import { errorMessage } from "../sdk/errors.ts";
import { UsageError } from "../settings/errors.ts";

export { UsageError };

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

/** A command line that was read. */
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

  /** Returns the value of a flag; the last one if it may be given more than once. */
  value(name: string): string | undefined {
    return this.#values.get(name)?.at(-1);
  }

  /** Returns all values of a flag, in order. */
  all(name: string): readonly string[] {
    return this.#values.get(name) ?? [];
  }
}

/**
 * Reads a command line: `--name value`, `--name=value`, `-n value`. Arguments after `--` are not flags.
 *
 * @throws {UsageError} for an unknown flag, a missing, unexpected or unknown value, or a flag given twice.
 */
export function readArguments(args: readonly string[], flags: readonly Flag[]): Arguments {
  const { values, positionals } = parse({
    args: [...args],
    allowPositionals: true,
    options: Object.fromEntries(flags.map((flag) => [flag.name, {
      type: valueName(flag) === undefined ? "boolean" : "string",
      multiple: true,
      ...(flag.short === undefined ? {} : { short: flag.short }),
    }])),
  }, flags);
  const given = flags.flatMap((flag) => {
    const texts = (values[flag.name] as (string | boolean)[] | undefined)?.map(String);
    return texts ? [[flag.name, checked(flag, texts)] as const] : [];
  });
  return new Arguments(new Map(given), positionals);
}

function parse(config: ParseArgsConfig, flags: readonly Flag[]) {
  try {
    return parseArgs(config);
  } catch (error) {
    const message = errorMessage(error).replaceAll("\n", " ");
    const [, unknown] = /^Unknown option '(-*[^']*)'/.exec(message) ?? [];
    if (unknown === undefined) throw new UsageError(`Cannot read the flags: ${message}`, { cause: error });
    const meant = didYouMean(unknown.replace(/^-+/, ""), flags.map(({ name }) => name));
    const advice = meant === undefined ? "" : `; did you mean --${meant}?`;
    const flag = JSON.stringify(unknown.slice(0, 80));
    throw new UsageError(`Cannot use ${flag}: there is no such flag${advice}`, { cause: error });
  }
}

function checked({ name, many, choices }: Flag, texts: readonly string[]): readonly string[] {
  const refuse = (fact: string) => new UsageError(`Cannot use --${name}: ${fact}`);
  if (texts.length > 1 && !many) throw refuse("it was given twice");
  const wrong = choices && texts.find((text) => !choices.includes(text));
  if (wrong === undefined) return texts;
  const list = choices!.join(choices!.length === 2 ? " or " : ", ");
  throw refuse(`must be ${list}, but is ${JSON.stringify(wrong)}`);
}

/** Returns what to do about an unknown word: `did you mean X?`, or else other advice. */
export function adviceFor(word: string, known: Iterable<string>, otherwise: string): string {
  const meant = didYouMean(word, known);
  return meant === undefined ? otherwise : `did you mean ${meant}?`;
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
