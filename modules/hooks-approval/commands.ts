/** Finds every command that a tool call may run: those of its shell text, and those that they start. */
import type { JsonObject } from "preamp/base";
import { effectsOf } from "./effects.ts";
import { type FoundCommand, isAssignment, programOf } from "./rules.ts";
import { literal, MAX_COMMAND_CHARS, readShell, type ShellCommand, type Word } from "../shell/commands.ts";

const UNKNOWN: readonly FoundCommand[] = [null];
/** Maximum nesting of texts and programs that start others. */
const MAX_DEPTH = 6;
/** Maximum characters of a command times the globs that it is matched against: each may read all words. */
const MAX_MATCHING = 500_000;

/**
 * Returns the commands in a tool's input: `command` (text or words, plus `args`) and `argv`. Null when it has
 * none of these fields.
 *
 * @param globs Number of globs that they are matched against. With many, a long command is not known.
 */
export function commandsOf(input: JsonObject, globs: number): readonly FoundCommand[] | null {
  const { command, args, argv } = input;
  const fields = [command, args, argv].filter((value) => value !== undefined && value !== null);
  if (fields.length === 0) return null;
  const max_chars = Math.min(MAX_COMMAND_CHARS, Math.floor(MAX_MATCHING / Math.max(1, globs)));
  if (JSON.stringify(fields).length > max_chars + 2) return UNKNOWN;
  const found: FoundCommand[] = [];
  if (argv !== undefined && argv !== null) found.push(...ofList(argv));
  if (typeof command !== "string") {
    if (command !== undefined && command !== null) found.push(...ofList(command, args));
    else if (args !== undefined && args !== null) found.push(null);
  } else if (args === undefined || args === null || Array.isArray(args) && args.length === 0) {
    found.push(...ofText(command, 0));
  } else {
    const { plain } = readShell(command);
    found.push(...plain === null ? UNKNOWN : ofList([...plain], args));
  }
  return found;
}

function ofList(words: unknown, more: unknown = []): readonly FoundCommand[] {
  const all = [words, more ?? []].flat();
  const isKnown = Array.isArray(words) && all.length > 0 && all.every((word) => typeof word === "string");
  return isKnown ? ofCommand({ words: all.map(literal) }, 0) : UNKNOWN;
}

function ofText(text: string, depth: number): readonly FoundCommand[] {
  if (depth > MAX_DEPTH) return UNKNOWN;
  const { commands, certain } = readShell(text);
  const found = commands.flatMap((command) => ofCommand(command, depth));
  return certain ? found : [...found, null];
}

function ofCommand(command: ShellCommand, depth: number): readonly FoundCommand[] {
  const { words } = command;
  return [words, ...effectsOf(programOf(words[0]?.text ?? ""), words), ...startedBy(command, depth + 1)];
}

/** How the words of a program that starts another one are read. */
interface Wrapper {
  /** Letters of options without a value, and with one. */
  readonly flags?: string;
  readonly valued?: string;
  /** Words before the command. */
  readonly before?: number;
  /** Whether assignments may precede the command. */
  readonly assigns?: boolean;
  /** Whether more words are added to the command. */
  readonly adds?: boolean;
}

/** Programs that start the command in their words. */
const WRAPPERS: Readonly<Record<string, Wrapper>> = {
  builtin: {},
  command: { flags: "p" },
  doas: { flags: "n", valued: "Cu" },
  env: { flags: "i0v", valued: "uC", assigns: true },
  exec: { flags: "cl", valued: "a" },
  ionice: { flags: "t", valued: "cn" },
  nice: { flags: "0123456789", valued: "n" },
  nohup: {},
  setsid: { flags: "cfw" },
  stdbuf: { valued: "ioe" },
  sudo: { flags: "ABbEHkKnPS", valued: "CDghpRrTtUu", assigns: true },
  time: { flags: "apv", valued: "fo" },
  timeout: { flags: "fpv", valued: "ks", before: 1 },
  xargs: { flags: "0oprtx", valued: "aEIdLnPs", adds: true },
};

const SHELLS: ReadonlySet<string> = new Set(["ash", "bash", "dash", "ksh", "mksh", "sh", "zsh"]);

/** Programs that start commands in other ways: what they start is not known. */
const OPAQUE: ReadonlySet<string> = new Set(
  ("busybox choom chroot chrt coproc csh fakeroot fish flock ltrace nsenter numactl parallel pkexec prlimit runuser " +
    "script setarch setpriv ssh strace su systemd-run taskset tcsh trap unbuffer unshare watch").split(" "),
);

/** Returns the commands that a command starts. */
function startedBy({ words, input }: ShellCommand, depth: number): readonly FoundCommand[] {
  if (depth > MAX_DEPTH) return UNKNOWN;
  const name = programOf(words[0]?.text ?? "");
  if (SHELLS.has(name)) return startedByShell(words, input, depth);
  if (OPAQUE.has(name)) return words.length > 1 ? UNKNOWN : [];
  if (name === "eval") {
    const texts = words.slice(words[1]?.text === "--" ? 2 : 1).map(({ text }) => text);
    return texts.includes(null) ? UNKNOWN : ofText(texts.join(" "), depth);
  }
  if (name === "." || name === "source") return readsInput(words[1]) ? UNKNOWN : [];
  if (name === "find") return startedByFind(words, depth);
  if (!Object.hasOwn(WRAPPERS, name)) return [];
  const wrapper = WRAPPERS[name]!;
  const start = startOf(words, wrapper);
  if (start === null) return UNKNOWN;
  const assigned = words.slice(1, start).filter(isAssignment).map((word) => [word]);
  const rest = words.slice(start);
  if (rest.length === 0) return assigned;
  if (wrapper.adds) rest.push({ text: null, splits: true });
  return [...assigned, ...ofCommand({ words: rest, ...(input === undefined ? {} : { input }) }, depth)];
}

/** Returns the index of the word at which a wrapped command begins; null: the options are not known. */
function startOf(
  words: readonly Word[],
  { flags = "", valued = "", before = 0, assigns }: Wrapper,
): number | null {
  let at = 1;
  for (; at < words.length; at++) {
    const { text } = words[at]!;
    if (text === null) return null;
    if (text === "--") {
      at++;
      break;
    }
    if (assigns && (isAssignment(words[at]!) || text === "-")) continue; // env - is env -i
    if (!text.startsWith("-") || text === "-") break;
    if (/^--s(?:p[a-z-]*)?=/.test(text)) return null; // --split-string of env, or its beginning
    if (/^--[a-z-]+=/.test(text)) continue;
    for (let letter = 1; letter < text.length; letter++) {
      if (flags.includes(text[letter]!)) continue;
      if (!valued.includes(text[letter]!)) return null;
      if (letter === text.length - 1) at++; // the value is the next word
      break;
    }
  }
  return at + before;
}

function startedByShell(
  words: readonly Word[],
  input: string | null | undefined,
  depth: number,
): readonly FoundCommand[] {
  for (let at = 1; at < words.length; at++) {
    const { text } = words[at]!;
    if (text === null) return UNKNOWN;
    if (/^-[A-Za-z]*c[A-Za-z]*$/.test(text)) {
      const next = words[at + 1]?.text ?? null;
      return next === null || next.startsWith("-") ? UNKNOWN : ofText(next, depth);
    }
    if (/^[-+][oO]$|^--(?:rcfile|init-file)$/.test(text)) at++;
    else if (text === "-s") break;
    else if (!/^[-+]/.test(text)) return readsInput(words[at]) ? UNKNOWN : []; // a script
  }
  return typeof input === "string" ? ofText(input, depth) : UNKNOWN;
}

/** Returns whether a script's path may be what the command reads. */
function readsInput(script: Word | undefined): boolean {
  return script === undefined || script.text === null || /^-$|^\/(?:dev|proc)\//.test(script.text);
}

function startedByFind(words: readonly Word[], depth: number): readonly FoundCommand[] {
  const found: FoundCommand[] = [];
  for (let at = 1; at < words.length; at++) {
    const { text, splits } = words[at]!;
    if (text === null && splits) found.push(null); // it may begin a command
    if (text === null || !/^-(?:exec|execdir|ok|okdir)$/.test(text)) continue;
    const end = words.findIndex(({ text }, index) => index > at && (text === ";" || text === "+"));
    const started = words.slice(at + 1, end < 0 ? undefined : end);
    found.push(...ofCommand({
      words: started.map((word) => word.text?.includes("{}") ? { text: null, splits: false } : word),
    }, depth));
    if (end < 0) break;
    at = end;
  }
  return found;
}
