/** Decides about a tool call by rules: each command that it may run is judged by the first rule for it. */
import { compileGlob, type Glob, isObject, type JsonObject } from "preamp/base";
import type { Word } from "../shell/commands.ts";

/** The words of a command; null: a command that is not known. */
export type FoundCommand = readonly Word[] | null;

/** Returns the commands in a tool's input, for a number of globs that they are matched against. */
export type CommandReader = (input: JsonObject, globs: number) => readonly FoundCommand[] | null;

export type RuleAction = "allow" | "ask" | "deny";

/** A rule as it is written in a config. */
export interface WrittenRule {
  tool: string;
  argv?: string[];
  input?: Record<string, string>;
  action: RuleAction;
}

/** A rule that can be matched. */
export interface Matcher {
  readonly action: RuleAction;
  readonly tool: Glob;
  /** Globs for the words of a command, and whether further words may follow (a last `**`). */
  readonly argv: { readonly globs: readonly Glob[]; readonly rest: boolean } | null;
  /** Globs for fields of the input. */
  readonly input: readonly (readonly [field: string, glob: Glob])[];
}

/** The last glob of an `argv` that matches any further words. */
export const REST = "**";

export function compileMatcher({ tool, argv, input = {}, action }: WrittenRule): Matcher {
  const rest = argv?.at(-1) === REST;
  return {
    action,
    tool: compileGlob(tool),
    argv: argv ? { globs: (rest ? argv.slice(0, -1) : argv).map(compileGlob), rest } : null,
    input: Object.entries(input).map(([field, glob]) => [field, compileGlob(glob)]),
  };
}

/** A decision about a call or one of its commands. */
export interface Judgement<M extends Matcher> {
  readonly action: RuleAction;
  /** The rule that decided; null: none matches. */
  readonly rule: M | null;
  /** Whether the rule matches for certain. */
  readonly certain: boolean;
}

/** What is known of a call, for rules that allow it by a field. */
export interface CallFacts {
  /** Returns whether the tool has a field: one that it does not read allows nothing. */
  declares(field: string): boolean;
  /** The names of each path in the input with its links followed; null: they are not known. */
  readonly real_paths: readonly (readonly string[])[] | null;
}

/**
 * Returns the decisions about a call, one for each command that it may run; one for a call without commands.
 *
 * @param input Null: the input is not known, so a rule about it asks.
 * @param otherwise Decision where no rule matches.
 * @param commandsOf Used for rules with `argv` only.
 */
export function judge<M extends Matcher>(
  matchers: readonly M[],
  name: string,
  input: JsonObject | null,
  otherwise: RuleAction,
  commandsOf: CommandReader,
  facts: CallFacts = { declares: () => true, real_paths: null },
): Judgement<M>[] {
  const own = matchers.filter(({ tool }) => tool(name));
  if (input === null) return [judgeUnknown(own, otherwise)];
  const fitting = own.filter(({ action, input: fields }) =>
    fields.every(([field, glob]) => fits(glob, input, field, action === "allow" ? facts : null))
  );
  const globs = own.reduce((sum, { argv }) => sum + (argv?.globs.length ?? 0), 0);
  const commands = globs === 0 ? null : commandsOf(input, globs);
  if (commands === null) return [first(fitting.filter(({ argv }) => argv === null), otherwise)];
  return commands.map((command) => judgeCommand(fitting, command, otherwise));
}

function first<M extends Matcher>([rule]: readonly M[], otherwise: RuleAction): Judgement<M> {
  return { action: rule?.action ?? otherwise, rule: rule ?? null, certain: true };
}

/** Some loops emit no input: rules about it are not decided, so that a person is asked. */
function judgeUnknown<M extends Matcher>(rules: readonly M[], otherwise: RuleAction): Judgement<M> {
  const [rule] = rules;
  const needsInput = rule !== undefined && (rule.argv !== null || rule.input.length > 0);
  return needsInput ? { action: "ask", rule: null, certain: false } : first(rules, otherwise);
}

function judgeCommand<M extends Matcher>(
  rules: readonly M[],
  command: FoundCommand,
  otherwise: RuleAction,
): Judgement<M> {
  for (const rule of rules) {
    const { action, argv } = rule;
    const certain = argv === null || command !== null && surelyMatches(argv, command);
    if (certain) return { action, rule, certain };
    // what only may be the command is not allowed, but asked about or denied
    if (action !== "allow" && (command === null || mayMatch(argv, command))) {
      return { action, rule, certain };
    }
  }
  return { action: otherwise, rule: null, certain: true };
}

type Argv = NonNullable<Matcher["argv"]>;

/** Returns whether a command of known words matches. */
function surelyMatches({ globs, rest }: Argv, words: readonly Word[]): boolean {
  if (words.some(({ text }) => text === null)) return false;
  if (rest ? words.length < globs.length : words.length !== globs.length) return false;
  return globs.every((glob, index) => glob(words[index]!.text ?? ""));
}

/**
 * Returns whether a command may match, where words that are computed may be any words. Takes globs × words
 * steps, backwards.
 */
function mayMatch({ globs, rest }: Argv, words: readonly Word[]): boolean {
  const count = words.length;
  let next = new Uint8Array(count + 1); // the row after the last glob
  next[count] = 1;
  for (let at = count - 1; at >= 0; at--) next[at] = rest || words[at]!.splits && next[at + 1] ? 1 : 0;
  for (let index = globs.length - 1; index >= 0; index--) {
    const row = new Uint8Array(count + 1);
    for (let at = count - 1; at >= 0; at--) {
      const { text, splits } = words[at]!;
      if (splits) row[at] = row[at + 1] || next[at] ? 1 : 0; // it expands to nothing, or to one more word
      const glob = globs[index]!;
      const fitsWord = text === null || glob(text) || index === 0 && glob(programOf(text));
      if (!row[at] && next[at + 1] && fitsWord) row[at] = 1;
    }
    next = row;
  }
  return next[0] === 1;
}

/** The fields of an input that name a file; tools accept one for the other. */
export const PATH_FIELDS: readonly string[] = ["path", "file_path"];

/**
 * Returns whether a field of the input matches. To allow, the tool must declare the field, no other field may
 * have its meaning, and a path must not lead back.
 *
 * @param facts Null: the rule does not allow.
 */
function fits(
  glob: Glob,
  input: JsonObject,
  field: string,
  facts: CallFacts | null,
): boolean {
  const is_path = PATH_FIELDS.includes(field);
  const names = (is_path ? PATH_FIELDS : [field]).filter((name) => Object.hasOwn(input, name));
  const values = names.map((name) => textOf(input[name]));
  if (facts === null) return values.some(glob);
  if (is_path && !(facts.real_paths ?? []).every((forms) => forms.some(glob))) return false;
  return names.some((name) => facts.declares(name)) &&
    values.every((value) => glob(value) && !/(?:^|[\\/])\.\.(?:[\\/]|$)/.test(value));
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(isObject(value) ? { ...value } : value) ?? "";
}

/** Returns whether a word sets a variable, as in `NAME=value`. */
export function isAssignment({ text }: Word): boolean {
  return text !== null && /^[A-Za-z_]\w*\+?=/.test(text);
}

/** Returns a program's name without its folder: a rule against `rm` also applies to `/bin/rm`. */
export function programOf(word: string): string {
  return word.slice(word.lastIndexOf("/") + 1);
}
