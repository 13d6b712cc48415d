/**
 * Reads the commands of a shell text without running it, with a parser of Bash's grammar. Words that only the
 * shell can compute have no text. What may hide further commands makes the reading uncertain.
 */
import { forEachChild, parse, type SyntaxNode, type Word as ParsedWord } from "unbash";

/** One word of a command. */
export interface Word {
  /** The word without quotes; null when it is computed at run time. */
  readonly text: string | null;
  /** Whether the shell may expand it to several words or to none. */
  readonly splits: boolean;
}

/** One simple command, or something that is judged like one. */
export interface ShellCommand {
  /**
   * Words of the command. A redirection to a file is the operator and its target, such as `>`, `out.txt`; an
   * assignment is one word, such as `PATH=/tmp`, or `PATH=$` when its value is computed or a loop's; `((` and
   * `[[` stand for what they evaluate.
   */
  readonly words: readonly Word[];
  /** Text that the command reads as its input; null: what it reads is unknown. Absent: the usual input. */
  readonly input?: string | null;
}

/** The result of reading a text. */
export interface ShellReading {
  /** All commands that were found, also inside of substitutions. */
  readonly commands: readonly ShellCommand[];
  /** False when commands may be missing, because the text cannot be read completely. */
  readonly certain: boolean;
  /** The words, when the text is one command of known words without any other syntax; else null. */
  readonly plain: readonly string[] | null;
}

/** Maximum characters of a text that is read. */
export const MAX_COMMAND_CHARS = 32_768;
/** Maximum parentheses that are open at once: the parser reads the rest of a text again for each. */
const MAX_OPEN = 40;

const UNREADABLE: ShellReading = { commands: [], certain: false, plain: null };

/** Reads a text. Never throws. */
export function readShell(text: string): ShellReading {
  // what follows a NUL, or a backslash at the end, depends on the shell
  if (
    text.length > MAX_COMMAND_CHARS || isTooDeep(text) || text.includes("\0") ||
    /(?<!\\)(?:\\\\)*\\$/.test(text)
  ) {
    return UNREADABLE;
  }
  const reader = new Reader();
  try {
    reader.visit(parse(text));
  } catch {
    return UNREADABLE; // such as nested too deeply
  }
  const { commands, certain, syntax } = reader;
  const words = commands.length === 1 && certain && !syntax ? commands[0]!.words.map(textOf) : null;
  const hasControl = /[^\P{Cc}\n\t]/u.test(text);
  const plain = words?.every((word) => word !== null) && !hasControl ? words : null;
  return { commands, certain: certain && commands.length > 0, plain };
}

function isTooDeep(text: string): boolean {
  let open = 0;
  for (const character of text) {
    if (character === "(" && ++open > MAX_OPEN) return true;
    if (character === ")" && open > 0) open--;
  }
  return false;
}

/** Returns a word that is known. */
export function literal(text: string): Word {
  return { text, splits: false };
}

function textOf({ text }: Word): string | null {
  return text;
}

/** Operators of redirections that name a file, unless their target is a descriptor. */
const DUPLICATES: ReadonlySet<string> = new Set([">&", "<&"]);

/** Nodes that make more of a text than one command of words. */
const PLAIN_NODES: ReadonlySet<string> = new Set(
  ["Script", "Statement", "Command", "Word", "Literal", "SingleQuoted", "DoubleQuoted"],
);

class Reader {
  readonly commands: ShellCommand[] = [];
  certain = true;
  /** Whether there is more than words. */
  syntax = false;

  visit(node: SyntaxNode): void {
    if (!PLAIN_NODES.has(node.type)) this.syntax = true;
    switch (node.type) {
      case "Script":
        if (node.errors?.length) this.certain = false;
        break;
      case "Statement":
        if (node.background) this.syntax = true;
        break;
      case "Command":
        this.#command(node);
        break;
      case "Pipeline":
        for (const command of node.commands.slice(1)) this.#pipes.add(command);
        break;
      case "Redirected": // a shell inside may read the text
        if (node.redirects.some(({ type }) => type !== "Redirect")) this.certain = false;
        break;
      case "Redirect":
        this.#redirect(node);
        break;
      case "Assignment":
        if (!this.#arguments.has(node)) this.#add([literal(assignmentOf(node).text ?? `${node.name}=$`)]);
        break;
      case "For":
      case "Select": { // those of lower case change nothing of what runs
        const name = wordOf(node.name).text ?? "";
        if (!/^[a-z]\w*$/.test(name)) this.#add([literal(`${name}=$`)]);
        break;
      }
      case "Function":
        this.#add([literal("function"), wordOf(node.name)]);
        break;
      case "TestCommand": // arithmetic runs substitutions that are in the values of variables
        this.#add([literal("[[")]);
        break;
      case "TestUnary":
        if (/^-[vR]$/.test(node.operator)) this.#index(node.operand);
        break;
      case "TestBinary":
        if (/^-(?:eq|ne|[lg][te])$/.test(node.operator)) {
          [node.left, node.right].forEach((word) => this.#index(word));
        }
        break;
      case "ArithmeticCommand":
        this.#arithmetic(node.body);
        break;
      case "ArithmeticExpansion":
        this.#arithmetic(node.text.replace(/^\$\(\(|\)\)$/g, ""));
        break;
      case "ArithmeticFor":
        this.certain = false;
        break;
      case "ParameterExpansion": // ${x@P} does, and the index of an array
        if (node.operation?.type === "Transform" || node.index || node.prefix === "!") this.certain = false;
        break;
      case "CommandExpansion":
      case "ProcessSubstitution":
        if (node.script === undefined) this.certain = false;
        break;
    }
    forEachChild(node, (child) => this.visit(child));
  }

  /** Commands that read the output of another one. */
  readonly #pipes = new Set<SyntaxNode>();
  /** Assignments that are arguments of a command. */
  readonly #arguments = new Set<SyntaxNode>();

  #add(words: readonly Word[], input?: string | null): void {
    this.commands.push({ words, ...(input === undefined ? {} : { input }) });
  }

  #command(node: SyntaxNode & { type: "Command" }): void {
    const words = node.name ? [wordOf(node.name)] : [];
    let input: string | null | undefined = this.#pipes.has(node) ? null : undefined;
    let afterBoth: Word[] | null = null;
    for (const part of node.suffix) {
      if (part.type === "Word" || part.type === "Assignment") {
        const word = part.type === "Word" ? wordOf(part) : assignmentOf(part);
        if (part.type === "Assignment") this.#arguments.add(part);
        words.push(word);
        afterBoth?.push(word);
      } else if (part.type === "Redirect" && part.operator.startsWith("&>")) afterBoth = [];
    }
    for (const redirect of node.redirects) {
      if (redirect.type === "HereString") {
        input = textOfInput(input, redirect.target && wordOf(redirect.target));
      } else if (redirect.type === "HereDoc") {
        const { body, delimiter, closing } = redirect;
        if (!closing) this.certain = false;
        const isKnown = delimiter?.quoted || (body.parts ?? []).every(({ type }) => type === "Literal");
        input = textOfInput(input, isKnown ? literal(body.text) : undefined);
      } else if (redirect.operator.startsWith("<")) input = null;
      if (redirect.type !== "Redirect" && redirect.descriptor) input = null;
    }
    if (words.length > 0) this.#add(words, input);
    // in POSIX shells, "a &>out b" runs a and b
    if (afterBoth && afterBoth.length > 0) this.#add(afterBoth);
  }

  /** Bash runs `((a) && (b))` as commands: parentheses and quotes decide, so what has them is not certain. */
  #arithmetic(text: string): void {
    if (/^(?:[\w\s+*\/%<>=!&|^~?:,.#-]|\$\w+|\$\{\w+\})*$/.test(text)) this.#add([literal("((")]);
    else this.certain = false;
  }

  /** The index of an array is evaluated, quoted or not: one that is no number may run anything. */
  #index({ text }: ParsedWord): void {
    if (/\[(?!\d+\])/.test(text)) this.certain = false;
  }

  #redirect({ operator, target }: SyntaxNode & { type: "Redirect" }): void {
    const word = target && wordOf(target);
    if (DUPLICATES.has(operator) && word?.text != null && /^(?:\d+-?|-)$/.test(word.text)) return;
    if (word?.text === "/dev/null") return;
    const sign = operator.startsWith("<") && operator !== "<>" ? "<" : ">";
    this.#add([literal(sign), word ?? { text: null, splits: false }]);
  }
}

/** Returns the text that a command reads; null when it is unknown, or there are several. */
function textOfInput(before: string | null | undefined, word: Word | undefined): string | null {
  return before === undefined ? word?.text ?? null : null;
}

/** Returns `NAME=value` as one word. */
function assignmentOf({ name, append, index, value }: SyntaxNode & { type: "Assignment" }): Word {
  const text = value.type === "Word" && !index ? wordOf(value).text : null;
  return { text: text === null ? null : `${name}${append ? "+" : ""}=${text}`, splits: false };
}

/** Parts of a word whose value is known. */
const KNOWN_PARTS: ReadonlySet<string> = new Set(["Literal", "SingleQuoted"]);
/** Parts that are quoted, so that they stay one word. */
const ONE_WORD: ReadonlySet<string> = new Set([
  "Literal",
  "SingleQuoted",
  "DoubleQuoted",
  "AnsiCQuoted",
  "LocaleString",
]);

function wordOf(word: ParsedWord): Word {
  const { parts, text, value } = word;
  if (parts === undefined) return text.startsWith("~") ? { text: null, splits: false } : literal(value);
  const isKnown = parts.every((part) =>
    KNOWN_PARTS.has(part.type) ||
    part.type === "DoubleQuoted" && part.parts.every(({ type }) => type === "Literal")
  );
  if (isKnown && !text.startsWith("~")) return literal(value);
  const isOne = parts.every((part) =>
    ONE_WORD.has(part.type) && !(part.type === "DoubleQuoted" && mayBeList(part.text))
  );
  return { text: null, splits: !isOne };
}

/** Returns whether a quoted text may become several words or none: `"$@"`, and `"${…}"` may be like it. */
function mayBeList(text: string): boolean {
  return text.includes("$@") || text.includes("${");
}
