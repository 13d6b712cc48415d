/** Parses command lines strictly: an unknown flag is an error that suggests a known one. */
import { didYouMean } from "../sdk/did_you_mean.ts";

/** A flag of a command. */
export interface Flag {
  /** Without the dashes. */
  readonly name: string;
  /** One letter. */
  readonly short?: string;
  /** Name of its value in the usage; absent for a flag without a value. */
  readonly value?: string;
  /** Whether it may be given without its value; the value is then written as `--name=value` only. */
  readonly value_optional?: boolean;
  /** Whether it may be given more than once. */
  readonly many?: boolean;
  /** One line for the usage; an empty text leaves the flag out of the usage. */
  readonly help: string;
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
 * @throws {UsageError} for an unknown flag, a missing or unexpected value, or a flag given twice.
 */
export function readArguments(args: readonly string[], flags: readonly Flag[]): Arguments {
  const byName = new Map(flags.map((flag) => [flag.name, flag]));
  const byLetter = new Map(flags.map((flag) => [flag.short, flag]));
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
    const { written, flag, inline } = split(word, byName, byLetter);
    if (!flag) throw new UsageError(unknownFlag(written, byName));
    const earlier = values.get(flag.name) ?? [];
    if (earlier.length > 0 && !flag.many) throw new UsageError(`Cannot use ${written}: it was given twice`);
    const value = inline ?? (takesNextWord(flag) ? words.shift() : undefined);
    values.set(flag.name, [...earlier, valueOf(flag, written, value, inline !== undefined)]);
  }
  return new Arguments(values, rest);
}

/**
 * Splits `--name`, `--name=value`, `-n` and `-nvalue`; letters are not combined. The parser of `node:util` is not
 * used because loading it takes as long as starting a server.
 */
function split(
  word: string,
  byName: ReadonlyMap<string, Flag>,
  byLetter: ReadonlyMap<string | undefined, Flag>,
): { written: string; flag: Flag | undefined; inline: string | undefined } {
  if (!word.startsWith("--")) {
    const written = word.slice(0, 2);
    const flag = byLetter.get(written.slice(1));
    if (flag?.value === undefined && word.length > 2) {
      return { written: word, flag: undefined, inline: undefined };
    }
    return { written, flag, inline: word.length > 2 ? word.slice(2).replace(/^=/, "") : undefined };
  }
  const equals = word.indexOf("=");
  const written = equals < 0 ? word : word.slice(0, equals);
  return {
    written,
    flag: byName.get(written.slice(2)),
    inline: equals < 0 ? undefined : word.slice(equals + 1),
  };
}

function takesNextWord({ value, value_optional = false }: Flag): boolean {
  return value !== undefined && !value_optional;
}

function valueOf(
  flag: Flag,
  written: string,
  value: string | undefined,
  inline: boolean,
): string {
  if (flag.value === undefined) {
    if (value === undefined) return "";
    throw new UsageError(`Cannot use ${written}: it takes no value, but received ${JSON.stringify(value)}`);
  }
  if (value === undefined) {
    if (flag.value_optional) return "";
    throw new UsageError(`Cannot use ${written}: it needs a value, ${written} ${flag.value}`);
  }
  if (!inline && value.length > 1 && value.startsWith("-")) {
    throw new UsageError(
      `Cannot use ${written}: it needs a value, but the flag ${
        JSON.stringify(value)
      } follows; write ${written}=${value} to use that text as the value`,
    );
  }
  return value;
}

function unknownFlag(written: string, known: ReadonlyMap<string, Flag>): string {
  const meant = didYouMean(written.replace(/^-+/, ""), known.keys());
  return `Cannot use ${JSON.stringify(written.slice(0, 80))}: there is no such flag${
    meant === undefined ? "" : `; did you mean --${meant}?`
  }`;
}

/** Thrown for a command line that cannot be used; `message` says how to correct it. */
export class UsageError extends Error {
  override readonly name = "UsageError";
  /** Command or group to show help for; "" for the usage of the program. Default: the command that runs. */
  command?: string;
}
