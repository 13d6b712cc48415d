/** Does a tool call run what a rule's `argv` describes? Told for certain, or told as "could". */
import type { JsonObject } from "preamp";
import type { Glob } from "./glob.ts";
import { MAX_COMMAND_CHARS, readShell, type Word } from "./shell.ts";

/** The `argv` of a rule: one glob per word, and whether any further words may follow (a last `**`). */
export interface ArgvPattern {
  globs: Glob[];
  rest: boolean;
}

/** One way in which a call says what it runs. */
export interface Invocation {
  /** The words, when they are all there is and all are known; else null. */
  argv: string[] | null;
  /** Every command that was found. */
  commands: Word[][];
  /** Whether `commands` is all of them. */
  certain: boolean;
}

/**
 * Programs that run what follows them: behind one of these every word may begin a command (`sudo rm`, `find . -exec rm`). A
 * list can only be incomplete (any interpreter can start programs): who must be sure allows by `argv` and asks for the rest.
 */
const RUN_WORDS: ReadonlySet<string> = new Set(
  ("builtin chroot command coproc doas env exec fakeroot find flock ionice ltrace nice nohup nsenter pkexec setarch setsid " +
    "stdbuf strace sudo time timeout unbuffer unshare xargs").split(" "),
);

/** Programs that also run a word of theirs as the text of a command (`sh -c "rm …"`). */
const RUN_TEXTS: ReadonlySet<string> = new Set(
  "ash bash busybox csh dash env eval fish flock ksh parallel runuser script sh ssh su tcsh trap watch zsh"
    .split(" "),
);

/** Reserved words that a command stands behind. */
const LEADING: ReadonlySet<string> = new Set("! { do elif else if then until while".split(" "));

/** Texts of commands inside each other that are followed; deeper ones count as a match. */
const MAX_COMMAND_TEXTS = 3;

/** Returns how a tool's input says what it runs: `command` (text or words, with `args` if there are any) and `argv`. */
export function invocationsOf(input: JsonObject): Invocation[] {
  const found: Invocation[] = [];
  if (input.command !== undefined && input.command !== null) {
    const invocation = typeof input.command === "string" ? ofText(input.command) : ofWords(input.command);
    found.push(withArguments(invocation, input.args));
  }
  if (input.argv !== undefined && input.argv !== null) found.push(ofWords(input.argv));
  return found;
}

/** Returns whether an invocation is exactly one command that the pattern describes. In doubt: no. */
export function surelyRuns(pattern: ArgvPattern, { argv, certain }: Invocation): boolean {
  if (!certain || argv === null) return false;
  const { globs, rest } = pattern;
  if (rest ? argv.length < globs.length : argv.length !== globs.length) return false;
  return globs.every((glob, index) => glob(argv[index] ?? ""));
}

/** Returns whether any command of an invocation could be one that the pattern describes. In doubt: yes. */
export function couldRun(pattern: ArgvPattern, { commands, certain }: Invocation): boolean {
  return !certain || commands.some((words) => commandCouldBe(pattern, words, MAX_COMMAND_TEXTS));
}

function ofText(text: string): Invocation {
  const reading = readShell(text);
  const words = reading.plain ? reading.commands[0] : undefined;
  return {
    argv: words ? words.map((word) => word.text ?? "") : null,
    commands: reading.commands,
    certain: reading.certain,
  };
}

function ofWords(value: unknown): Invocation {
  const readable = isTextList(value) && value.length > 0 &&
    value.reduce((sum, word) => sum + word.length, 0) <= MAX_COMMAND_CHARS;
  if (!readable) return { argv: null, commands: [], certain: false };
  return { argv: value, commands: [value.map(literal)], certain: true };
}

/** `{command: "ls", args: ["-la"]}`: the words behind may as well be the last command's. */
function withArguments(invocation: Invocation, args: unknown): Invocation {
  if (args === undefined || args === null || (Array.isArray(args) && args.length === 0)) return invocation;
  const added = ofWords(args);
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
  if (!runsOthers(words[0], RUN_WORDS) && !runsOthers(words[0], RUN_TEXTS)) return false;
  if (reachable.includes(1)) return true;
  return words.some((word) => runsOthers(word, RUN_TEXTS)) &&
    words.some((word, index) => index > 0 && word.text !== null && textCouldRun(pattern, word.text, texts));
}

/** Returns where a command's own words begin: behind assignments and reserved words. */
function startOf(command: readonly Word[]): number {
  let at = 0;
  while (at < command.length) {
    const word = command[at] as Word; // at < length
    if (word.assigns || LEADING.has(word.text ?? "")) at++;
    else if (word.text === "function") at += 2; // and its name
    else if (word.text === "for" || word.text === "select") {
      const body = command.findIndex((each, index) => index > at && each.text === "do");
      at = body < 0 ? command.length : body + 1;
    } else break;
  }
  return at;
}

/** Whether a word is one of these programs; one that is not known may be. */
function runsOthers(word: Word | undefined, programs: ReadonlySet<string>): boolean {
  return word !== undefined && (word.text === null || programs.has(programOf(word.text)));
}

function textCouldRun(pattern: ArgvPattern, text: string, texts: number): boolean {
  const reading = readShell(text);
  if (reading.plain && reading.commands[0]?.length === 1) return false; // one plain word: looked at already
  if (texts === 0 || !reading.certain) return true;
  return reading.commands.some((command) => commandCouldBe(pattern, command, texts - 1));
}

/** Returns for each word 1 when the pattern could match from there to the end: globs × words steps, from the end. */
function startsOf({ globs, rest }: ArgvPattern, words: readonly Word[]): Uint8Array {
  const count = words.length;
  let next = new Uint8Array(count + 1); // row of the globs behind the last: nothing more is asked for
  next[count] = 1;
  for (let at = count - 1; at >= 0; at--) {
    next[at] = rest || (words[at]?.splits && next[at + 1]) ? 1 : 0;
  }
  for (let place = globs.length - 1; place >= 0; place--) {
    const row = new Uint8Array(count + 1);
    for (let at = count - 1; at >= 0; at--) {
      const word = words[at] as Word; // at < count
      if (word.splits) row[at] = row[at + 1] || next[at] ? 1 : 0; // none of it, or one more of it
      if (!row[at] && next[at + 1] && couldBe(globs[place] as Glob, word, place === 0)) row[at] = 1;
    }
    next = row;
  }
  return next;
}

function couldBe(glob: Glob, word: Word, first: boolean): boolean {
  return word.text === null || glob(word.text) || (first && glob(programOf(word.text)));
}

/** The name of a program without its folder: a rule against `rm` means `/bin/rm` too. */
function programOf(word: string): string {
  return word.slice(word.lastIndexOf("/") + 1);
}

function literal(text: string): Word {
  return { text, splits: false, assigns: false };
}

function isTextList(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}
