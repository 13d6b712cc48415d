/**
 * Parses shell text into its simple commands, as far as possible without running it (POSIX Shell Command
 * Language, §2.2 Quoting to §2.9 Shell Commands, and bash's additions).
 *
 * Rules that allow use `plain`: the text is one simple command of literal words. Rules that deny use all
 * commands, also those in substitutions. For them, a word that is computed at run time may be any word, and a
 * text that is not `certain` may contain any command.
 */

/** One word of a command. */
export interface Word {
  /** The word without quotes; null when it is computed at run time. */
  text: string | null;
  /** Whether the shell may expand it to several words or to none. */
  splits: boolean;
  /** Whether it has the form of an assignment, such as `PATH=/tmp`. */
  assigns: boolean;
}

/** The result of parsing a text. */
export interface ShellReading {
  /** All simple commands that were found, also inside `$(…)`, backticks and `<(…)`. */
  commands: Word[][];
  /**
   * True for one simple command of literal words, without separator, redirection, expansion, assignment,
   * comment or group.
   */
  plain: boolean;
  /** False when commands may be missing: open quotes, here-documents, comments, or too deep nesting. */
  certain: boolean;
}

/** Maximum characters of a command; a longer one is neither `plain` nor `certain`. */
export const MAX_COMMAND_CHARS = 32_768;

const MAX_NESTING = 32;

/** Words of special characters that are literal when the word has no other character. */
const LONE: ReadonlySet<string> = new Set(["[", "[[", "{", "{}"]);

/** Parses a text, in time linear in its length. Never throws. */
export function readShell(text: string, nesting = 0): ShellReading {
  if (text.length > MAX_COMMAND_CHARS || nesting > MAX_NESTING || text.includes("\0")) {
    return { commands: [], plain: false, certain: false };
  }
  const reader = new ShellReader(text, nesting);
  reader.readList(false);
  const first = reader.commands[0]?.[0];
  return {
    commands: reader.commands,
    plain: reader.plain && reader.certain && reader.commands.length === 1 && first?.assigns === false,
    certain: reader.certain,
  };
}

class PendingWord {
  text = "";
  quoted = false;
  /** Contains a parameter or a substitution. */
  expands = false;
  /** Contains an unquoted pattern, brace or tilde. */
  patterns = false;
  splits = false;
  assigns = false;
}

/** First words of commands whose parts may read their input; none: after ")", or before the command. */
const PASSES_INPUT_ON: ReadonlySet<unknown> = new Set([undefined, "}", "fi", "done", "esac", ".", "source"]);

/** The state of reading one list of commands: the words of the current command and the current word. */
class Frame {
  words: Word[] = [];
  word: PendingWord | null = null;
  /** Use of the next word: argument, target of a redirection, or text that the command reads (`<<<`). */
  next: "argument" | "target" | "input" = "argument";
  /** The text that the command reads; a shell executes it. */
  input: Word | null = null;
  /** Words before an `&>`, where in bash the command continues and in POSIX another begins: both are kept. */
  before: Word[] | null = null;

  currentWord(): PendingWord {
    return this.word ??= new PendingWord();
  }

  endWord(): void {
    const word = this.word;
    this.word = null;
    if (!word) return;
    const patterns = word.patterns && !LONE.has(word.text);
    const known = !word.expands && !patterns;
    const read = { text: known ? word.text : null, splits: !known && word.splits, assigns: word.assigns };
    if (this.next === "argument") this.words.push(read);
    else if (this.next === "input") this.input = read;
    this.next = "argument";
  }
}

class ShellReader {
  readonly commands: Word[][] = [];
  plain = true;
  certain = true;
  readonly #text: string;
  #at = 0;
  #nesting: number;

  constructor(text: string, nesting: number) {
    this.#text = text;
    this.#nesting = nesting;
  }

  /** Reads commands up to the end of the text or, `inside` a substitution, up to its closing parenthesis. */
  readList(inside: boolean): void {
    const frame = new Frame();
    let open = 0;
    while (true) {
      const character = this.#text.charAt(this.#at);
      if (character === "") {
        if (inside) this.#markUncertain();
        break;
      }
      if (character === ")" && inside && open === 0) {
        this.#at++;
        break;
      }
      if (character === " " || character === "\t") {
        frame.endWord();
        this.#at++;
      } else if (character === "<" || character === ">" || (character === "&" && this.#peek(1) === ">")) {
        this.#redirection(frame);
      } else if ("\n;&|()".includes(character)) {
        if (character === "(") open++;
        if (character === ")" && open > 0) open--;
        this.plain = false;
        this.#endCommand(frame, inside);
        this.#at++;
      } else this.#wordPart(frame, character);
    }
    this.#endCommand(frame, inside);
  }

  #endCommand(frame: Frame, inside: boolean): void {
    frame.endWord();
    frame.next = "argument";
    // The ")" of a case pattern would end the substitution too early, and quotes after it would be misread.
    if (inside && frame.words.some((word) => word.text === "case")) this.#markUncertain();
    if (frame.words.length > 0) this.commands.push(frame.words);
    if (frame.before) this.commands.push([...frame.before, ...frame.words]);
    if (frame.input) this.commands.push([...frame.before ?? [], ...frame.words, frame.input]);
    frame.before = null;
    frame.input = null;
    frame.words = [];
  }

  #wordPart(frame: Frame, character: string): void {
    // A comment may contain quotes, which the shell ignores and this parser would not.
    if (character === "#" && frame.word === null) this.#markUncertain();
    const word = frame.currentWord();
    switch (character) {
      case "'":
        word.quoted = true;
        return this.#singleQuoted(word);
      case '"':
        word.quoted = true;
        this.#at++;
        return this.#doubleQuoted(word);
      case "\\":
        return this.#escaped(frame, word);
      case "$":
        return this.#expansion(word, false);
      case "`":
        return this.#backticks(word, false);
      case "*":
      case "?":
      case "[":
      case "{":
        word.patterns = true;
        word.splits = true;
        this.plain = false;
        break;
      case "~":
        if (word.text === "" && !word.quoted) word.patterns = true;
        this.plain = false;
        break;
      case "=":
        if (!word.quoted && !word.expands && isVariableName(word.text)) word.assigns = true;
        break;
      default:
        if (isControl(character)) this.plain = false;
    }
    word.text += character;
    this.#at++;
  }

  #singleQuoted(word: PendingWord): void {
    const end = this.#text.indexOf("'", this.#at + 1);
    if (end < 0) return this.#stop();
    word.text += this.#text.slice(this.#at + 1, end);
    this.#at = end + 1;
  }

  #doubleQuoted(word: PendingWord): void {
    while (true) {
      const character = this.#text.charAt(this.#at);
      if (character === "") return this.#stop();
      if (character === '"') {
        this.#at++;
        return;
      }
      if (character === "$") this.#expansion(word, true);
      else if (character === "`") this.#backticks(word, true);
      else if (character === "\\" && '$`"\\\n'.includes(this.#peek(1)) && this.#peek(1) !== "") {
        if (this.#peek(1) !== "\n") word.text += this.#peek(1);
        this.#at += 2;
      } else {
        word.text += character;
        this.#at++;
      }
    }
  }

  #escaped(frame: Frame, word: PendingWord): void {
    const next = this.#peek(1);
    if (next === "") return this.#stop();
    this.#at += 2;
    if (next !== "\n") {
      word.text += next;
      word.quoted = true;
    } else if (word.text === "" && !word.quoted && !word.expands) frame.word = null; // a line continuation is not a word
  }

  /** Reads an expansion from its dollar sign on. */
  #expansion(word: PendingWord, quoted: boolean): void {
    this.plain = false;
    const next = this.#peek(1);
    if (next === '"' && !quoted) {
      this.#at++; // $"…": the quote is read next; the translation is unknown
      word.expands = true;
      return;
    }
    const known = next === "(" || next === "{" || (next === "'" && !quoted) || isNameStart(next) ||
      (next !== "" && "0123456789@*#?-$!".includes(next));
    if (!known) {
      word.text += "$";
      this.#at++;
      return;
    }
    word.expands = true;
    if (next === "'") return this.#ansiQuoted();
    // In quotes only "$@" and similar expand to several words; ${…} may be one of them.
    if (!quoted || next === "@" || next === "{") word.splits = true;
    this.#at += 2;
    if (next === "(") this.#nested(() => this.readList(true));
    else if (next === "{") this.#nested(() => this.#braces(quoted));
    else if (isNameStart(next)) { while (isNamePart(this.#text.charAt(this.#at))) this.#at++; }
  }

  /** Reads `$'…'`. Escapes can produce any character, so the word is unknown, but it is a single word. */
  #ansiQuoted(): void {
    this.#at += 2;
    while (true) {
      const character = this.#text.charAt(this.#at);
      if (character === "") return this.#stop();
      this.#at += character === "\\" ? 2 : 1;
      if (character === "'") return;
    }
  }

  /** Reads the text after `${` up to its end. Quotes inside have other rules: the result is uncertain. */
  #braces(quoted: boolean): void {
    const word = new PendingWord();
    if (" \t\n|".includes(this.#text.charAt(this.#at))) this.#markUncertain(); // ${ command; } of ksh and bash 5.3
    while (true) {
      const character = this.#text.charAt(this.#at);
      if (character === "") return this.#stop();
      if (character === "}") {
        this.#at++;
        return;
      }
      if (character === "'" || character === '"') this.#markUncertain();
      if (character === "$") this.#expansion(word, quoted);
      else if (character === "`") this.#backticks(word, quoted);
      else this.#at += character === "\\" ? 2 : 1;
    }
  }

  #backticks(word: PendingWord, quoted: boolean): void {
    this.plain = false;
    word.expands = true;
    if (!quoted) word.splits = true;
    const inner: string[] = [];
    this.#at++;
    while (true) {
      const character = this.#text.charAt(this.#at);
      if (character === "") return this.#stop();
      if (character === "`") break;
      const next = this.#peek(1);
      const escapes = character === "\\" && next !== "" && (quoted ? '$`\\"' : "$`\\").includes(next);
      inner.push(escapes ? next : character);
      this.#at += escapes ? 2 : 1;
    }
    this.#at++;
    const reading = readShell(inner.join(""), this.#nesting + 1);
    this.commands.push(...reading.commands);
    if (!reading.certain) this.#markUncertain();
  }

  #redirection(frame: Frame): void {
    this.plain = false;
    const both = this.#text.charAt(this.#at) === "&";
    const numbered = !both && frame.word !== null && isDescriptor(frame.word);
    if (numbered) frame.word = null; // the 2 of 2>file
    if (both) this.#ampersand(frame);
    const sign = this.#text.charAt(this.#at);
    if (this.#peek(1) === "(") {
      const word = frame.currentWord();
      word.expands = true;
      this.#at += 2;
      this.#nested(() => this.readList(true));
      return;
    }
    frame.endWord();
    this.#at++;
    const next = this.#text.charAt(this.#at);
    if (sign === "<" && next === "<") {
      this.#at++;
      if (this.#text.charAt(this.#at) === "<") {
        this.#at++;
        if (numbered || PASSES_INPUT_ON.has(frame.words[0]?.text)) this.#markUncertain();
        frame.next = "input";
        return;
      }
      this.#markUncertain(); // the body of a here-document may contain quotes that the shell ignores
    } else if (next !== "" && (sign === "<" ? ">&" : ">|&").includes(next)) {
      this.#at++;
      if (next === "&" && this.#text.charAt(this.#at) === "-") {
        this.#at++; // >&- closes a descriptor and has no target
        return;
      }
    }
    frame.next = "target";
  }

  /** Reads the `&` of `&>`. */
  #ampersand(frame: Frame): void {
    frame.endWord();
    if (frame.before) this.#markUncertain(); // twice in one command: not all readings are kept
    frame.before = frame.words;
    frame.words = [];
    this.#at++;
  }

  #nested(read: () => void): void {
    if (++this.#nesting > MAX_NESTING) this.#stop();
    else read();
    this.#nesting--;
  }

  /** Notes that commands may be missing. */
  #markUncertain(): void {
    this.certain = false;
    this.plain = false;
  }

  /** Ends reading an incomplete text. */
  #stop(): void {
    this.#markUncertain();
    this.#at = this.#text.length;
  }

  #peek(offset: number): string {
    return this.#text.charAt(this.#at + offset);
  }
}

function isDescriptor(word: PendingWord): boolean {
  return word.text !== "" && !word.quoted && !word.expands && [...word.text].every(isDigit);
}

function isVariableName(text: string): boolean {
  const name = text.endsWith("+") ? text.slice(0, -1) : text; // NAME+=value appends
  return isNameStart(name.charAt(0)) && [...name].every(isNamePart);
}

function isDigit(character: string): boolean {
  return character >= "0" && character <= "9";
}

function isNameStart(character: string): boolean {
  return (character >= "a" && character <= "z") || (character >= "A" && character <= "Z") ||
    character === "_";
}

function isNamePart(character: string): boolean {
  return isNameStart(character) || (isDigit(character) && character !== "");
}

function isControl(character: string): boolean {
  const code = character.charCodeAt(0);
  return code < 0x20 || (code >= 0x7f && code <= 0x9f);
}
