/** Words of a command line → flags and the rest, strictly: what is not known is an error that names what was meant. */
import { didYouMean } from "../text/did_you_mean.ts";
import { UsageError } from "./usage_error.ts";

/** A flag that a command takes. */
export interface Flag {
  /** Without the dashes. */
  readonly name: string;
  /** One letter. */
  readonly short?: string;
  /** What its value is called in the usage; absent: it takes none. */
  readonly value?: string;
  /** May be given more than once. */
  readonly many?: boolean;
  /** One line; empty: not shown among the flags of the usage. */
  readonly help: string;
}

/** A command line that was read. */
export class Arguments {
  readonly #values: ReadonlyMap<string, readonly string[]>;
  /** What is no flag, in order. */
  readonly rest: readonly string[];

  constructor(values: ReadonlyMap<string, readonly string[]>, rest: readonly string[]) {
    this.#values = values;
    this.rest = rest;
  }

  /** Whether a flag was given. */
  has(name: string): boolean {
    return this.#values.has(name);
  }

  /** The value of a flag that may be given once. */
  value(name: string): string | undefined {
    return this.#values.get(name)?.[0];
  }

  /** All values of a flag, in order. */
  all(name: string): readonly string[] {
    return this.#values.get(name) ?? [];
  }
}

/**
 * Reads a command line. `--name value`, `--name=value`, `-n value`; after `--` nothing is a flag.
 *
 * @throws {UsageError} for an unknown flag, a value too many or missing, a flag given twice.
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
    const given = values.get(flag.name) ?? [];
    if (given.length > 0 && !flag.many) throw new UsageError(`Cannot use ${written}: it was given twice`);
    const value = inline ?? (flag.value === undefined ? undefined : words.shift());
    values.set(flag.name, [...given, valueOf(flag, written, value, inline !== undefined)]);
  }
  return new Arguments(values, rest);
}

/** `--name`, `--name=value`, `-n`, `-nvalue`; letters are not bundled. `node:util` has a parser, but loading it takes as long as serving. */
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

function valueOf(
  flag: Flag,
  written: string,
  value: string | undefined,
  inline: boolean,
): string {
  if (flag.value === undefined) {
    if (value === undefined) return "";
    throw new UsageError(`Cannot use ${written}: it takes no value: received ${JSON.stringify(value)}`);
  }
  if (value === undefined) {
    throw new UsageError(`Cannot use ${written}: it needs a value, ${written} ${flag.value}`);
  }
  if (!inline && value.length > 1 && value.startsWith("-")) {
    throw new UsageError(
      `Cannot use ${written}: it needs a value: received the flag ${
        JSON.stringify(value)
      }; write ${written}=${value} if it is meant`,
    );
  }
  return value;
}

function unknownFlag(written: string, known: ReadonlyMap<string, Flag>): string {
  const meant = didYouMean(written.replace(/^-+/, ""), known.keys());
  return `Cannot use ${JSON.stringify(written.slice(0, 80))}: there is no such flag${
    meant === undefined ? "" : `: did you mean --${meant}?`
  }`;
}
