/** Matches the command of a tool call against a rule's `argv`: for certain (allow) or possibly (deny). */
import type { Glob, JsonObject } from "preamp/base";
import { MAX_COMMAND_CHARS, readShell, type Word } from "./shell.ts";

/** The `argv` of a rule: one glob for each word, and whether further words may follow (a last `**`). */
export interface ArgvPattern {
  globs: Glob[];
  rest: boolean;
}

/** One command text or word list in the input of a call. */
export interface Invocation {
  /** The words of the only command if all of them are literal, else null. */
  argv: string[] | null;
  /** All commands that were found. */
  commands: Word[][];
  /** Whether `commands` is complete. */
  certain: boolean;
}

/**
 * Programs that execute their arguments: each of their arguments may start a command (`sudo rm`,
 * `find . -exec rm`). The list cannot be complete, because any interpreter can start programs.
 */
const RUN_WORDS: ReadonlySet<string> = new Set(
  ("builtin chroot command coproc doas env exec fakeroot find flock ionice ltrace nice nohup nsenter pkexec setarch setsid " +
    "stdbuf strace sudo time timeout unbuffer unshare xargs").split(" "),
);

/** Programs that also execute an argument as shell text (`sh -c "rm …"`). */
const RUN_TEXTS: ReadonlySet<string> = new Set(
  "ash bash busybox csh dash env eval fish flock ksh parallel runuser script sh ssh su tcsh trap watch zsh"
    .split(" "),
);

/** Reserved words that precede a command. */
const LEADING: ReadonlySet<string> = new Set("! { do elif else if then until while".split(" "));

/** Maximum nesting of shell texts in arguments; deeper texts count as a match. */
const MAX_COMMAND_TEXTS = 3;

/** Maximum characters of a command times the globs that it is matched against: each may read all words. */
const MAX_MATCHING = 500_000;

/**
 * Returns the commands in a tool's input: `command` (text or words, plus `args`) and `argv`.
 *
 * @param globs Number of globs that they are matched against. For many globs, a long command is not certain.
 */
export function invocationsOf(input: JsonObject, globs: number = 1): Invocation[] {
  const max_chars = Math.min(MAX_COMMAND_CHARS, Math.floor(MAX_MATCHING / Math.max(1, globs)));
  const { command, args, argv } = input;
  const invocations: Invocation[] = [];
  if (command !== undefined && command !== null) {
    const invocation = typeof command === "string" ? ofText(command, max_chars) : ofWords(command, max_chars);
    invocations.push(withArguments(invocation, args, max_chars));
  }
  if (argv !== undefined && argv !== null) invocations.push(ofWords(argv, max_chars));
  return invocations;
}

const UNKNOWN: Invocation = { argv: null, commands: [], certain: false };

/** Returns whether an invocation is exactly one command that matches the pattern. When in doubt, false. */
export function surelyRuns(pattern: ArgvPattern, { argv, certain }: Invocation): boolean {
  if (!certain || argv === null) return false;
  const { globs, rest } = pattern;
  if (rest ? argv.length < globs.length : argv.length !== globs.length) return false;
  return globs.every((glob, index) => glob(argv[index] ?? ""));
}

/** Returns whether any command of an invocation may match the pattern. When in doubt, true. */
export function couldRun(pattern: ArgvPattern, { commands, certain }: Invocation): boolean {
  return !certain || commands.some((words) => commandCouldBe(pattern, words, MAX_COMMAND_TEXTS));
}

function ofText(text: string, max_chars: number): Invocation {
  if (text.length > max_chars) return UNKNOWN;
  const reading = readShell(text);
  const words = reading.plain ? reading.commands[0] : undefined;
  return {
    argv: words ? words.map((word) => word.text ?? "") : null,
    commands: reading.commands,
    certain: reading.certain,
  };
}

function ofWords(value: unknown, max_chars: number): Invocation {
  const readable = isTextList(value) && value.length > 0 &&
    value.reduce((sum, word) => sum + word.length + 1, -1) <= max_chars;
  if (!readable) return UNKNOWN;
  return { argv: value, commands: [value.map(literal)], certain: true };
}

/**
 * Adds `args` to an invocation, as in `{command: "ls", args: ["-la"]}`. They may belong to the last command.
 */
function withArguments(invocation: Invocation, args: unknown, max_chars: number): Invocation {
  if (args === undefined || args === null || (Array.isArray(args) && args.length === 0)) return invocation;
  const added = ofWords(args, max_chars);
  if (added.argv === null) return added;
  const last = invocation.commands.at(-1) ?? [];
  return {
    argv: invocation.argv && [...invocation.argv, ...added.argv],
    commands: [...invocation.commands, [...last, ...added.argv.map(literal)]],
    certain: invocation.certain,
  };
}

function commandCouldBe(pattern: ArgvPattern, command: readonly Word[], texts: number): boolean {
  const words = command.slice(startOf(command));
  if (words.length === 0) return false;
  const reachable = startsOf(pattern, words);
  if (reachable[0]) return true;
  if (!mayBeProgram(words[0], RUN_WORDS) && !mayBeProgram(words[0], RUN_TEXTS)) return false;
  if (reachable.includes(1)) return true;
  return words.some((word) => mayBeProgram(word, RUN_TEXTS)) &&
    words.some((word, index) => index > 0 && word.text !== null && textCouldRun(pattern, word.text, texts));
}

/** Returns the index of a command's first word, after assignments and reserved words. */
function startOf(command: readonly Word[]): number {
  let at = 0;
  while (at < command.length) {
    const word = command[at] as Word; // at < length
    if (word.assigns || LEADING.has(word.text ?? "")) at++;
    else if (word.text === "function") at += 2; // and the function's name
    else if (word.text === "for" || word.text === "select") {
      const body = command.findIndex((each, index) => index > at && each.text === "do");
      at = body < 0 ? command.length : body + 1;
    } else break;
  }
  return at;
}

/** Returns whether a word may be one of the programs; an unknown word may be any. */
function mayBeProgram(word: Word | undefined, programs: ReadonlySet<string>): boolean {
  return word !== undefined && (word.text === null || programs.has(programOf(word.text)));
}

function textCouldRun(pattern: ArgvPattern, text: string, texts: number): boolean {
  const reading = readShell(text);
  if (reading.plain && reading.commands[0]?.length === 1) return false; // one plain word was already matched
  if (texts === 0 || !reading.certain) return true;
  return reading.commands.some((command) => commandCouldBe(pattern, command, texts - 1));
}

/**
 * Returns 1 for each word from which the pattern may match up to the end. Takes globs × words steps,
 * backwards.
 */
function startsOf({ globs, rest }: ArgvPattern, words: readonly Word[]): Uint8Array {
  const count = words.length;
  let next = new Uint8Array(count + 1); // the row after the last glob
  next[count] = 1;
  for (let at = count - 1; at >= 0; at--) {
    next[at] = rest || (words[at]?.splits && next[at + 1]) ? 1 : 0;
  }
  for (let index = globs.length - 1; index >= 0; index--) {
    const row = new Uint8Array(count + 1);
    for (let at = count - 1; at >= 0; at--) {
      const word = words[at] as Word; // at < count
      if (word.splits) row[at] = row[at + 1] || next[at] ? 1 : 0; // the word expands to nothing, or to one more word
      if (!row[at] && next[at + 1] && mayMatch(globs[index] as Glob, word, index === 0)) row[at] = 1;
    }
    next = row;
  }
  return next;
}

function mayMatch(glob: Glob, word: Word, first: boolean): boolean {
  return word.text === null || glob(word.text) || (first && glob(programOf(word.text)));
}

/** Returns a program's name without its folder: a rule against `rm` also applies to `/bin/rm`. */
function programOf(word: string): string {
  return word.slice(word.lastIndexOf("/") + 1);
}

function literal(text: string): Word {
  return { text, splits: false, assigns: false };
}

function isTextList(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}
