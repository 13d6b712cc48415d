/** Words of a command line → flags and the rest, strictly: what is not known is an error that names what was meant. */
import { parseArgs } from "node:util";
import { didYouMean } from "../plan/did_you_mean.ts";
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
  const options = Object.fromEntries(flags.map(({ name, short, value }) => {
    const type = value === undefined ? "boolean" as const : "string" as const;
    return [name, short === undefined ? { type, multiple: true } : { type, short, multiple: true }];
  }));
  const { tokens } = parseArgs({
    args: [...args],
    options,
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const values = new Map<string, string[]>();
  const rest: string[] = [];
  for (const token of tokens) {
    if (token.kind === "positional") rest.push(token.value);
    if (token.kind !== "option") continue;
    const flag = byName.get(token.name);
    if (!flag) throw new UsageError(unknownFlag(token.rawName, byName));
    const given = values.get(flag.name) ?? [];
    if (given.length > 0 && !flag.many) {
      throw new UsageError(`Cannot use ${token.rawName}: it was given twice`);
    }
    values.set(flag.name, [...given, valueOf(flag, token.rawName, token.value, token.inlineValue)]);
  }
  return new Arguments(values, rest);
}

function valueOf(
  flag: Flag,
  written: string,
  value: string | undefined,
  inline: boolean | undefined,
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
