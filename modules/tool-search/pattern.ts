/**
 * Patterns of texts: RE2 syntax with ripgrep's meaning, matched in linear time. A pattern is read into
 * tokens, which are written once for RE2JS and once for ripgrep.
 */
import { FileError } from "../files/access.ts";

/** A compiled pattern. */
export interface TextPattern {
  /** Whether a match may span several lines. */
  readonly is_multiline: boolean;
  /** Whether `\r` at the end of a line is a part of it. */
  readonly keeps_cr: boolean;
  /** Characters that can be searched without a pause. */
  readonly chars: number;
  /** Arguments for ripgrep that find at least the files in which this pattern is; null: none are known. */
  readonly ripgrep: readonly string[] | null;
  /** What the caller may have meant by a pattern that matches nothing. */
  readonly hint: string | null;
  /** Returns false when nothing in a text matches. */
  maybe(text: string): boolean;
  /** Returns the first match that begins at an index or after it; null: nothing matches. */
  find(text: string, from: number): TextMatch | null;
}

/** Indexes of a match. */
export interface TextMatch {
  readonly start: number;
  readonly end: number;
}

/** A pattern as it was asked for. */
export interface PatternInput {
  readonly pattern: string;
  readonly ignore_case?: boolean;
  readonly literal?: boolean;
}

/** Instructions of a compiled pattern; a character takes a step for each. Steps without a pause. */
const MAX_PATTERN_SIZE = 1000;
const MAX_STEPS = 1_000_000;

/** @throws {FileError} when the pattern cannot be read. */
export async function readPattern({ pattern, literal = false, ignore_case = false }: PatternInput): Promise<
  TextPattern
> {
  const tokens = literal ? [] : tokensOf(pattern);
  const is_multiline = literal ? pattern.includes("\n") : tokens.some(matchesNewline);
  const keeps_cr = literal ? pattern.includes("\r") : tokens.some(({ text }) => /\\r|\r/.test(text));
  const common = { is_multiline, keeps_cr };
  const flags = ignore_case ? ["--ignore-case"] : [];
  if (literal && !ignore_case) {
    return {
      ...common,
      chars: Infinity,
      ripgrep: is_multiline || keeps_cr ? null : ["--regexp", escaped(pattern)],
      hint: null,
      maybe: (text) => text.includes(pattern),
      find: (text, from) => {
        const start = text.indexOf(pattern, from);
        return start < 0 ? null : { start, end: start + pattern.length };
      },
    };
  }
  const { RE2JS } = await import("re2js");
  const widened = literal ? escaped(pattern) : forRipgrep(tokens);
  try {
    const compiled = RE2JS.compile(
      literal ? RE2JS.quote(pattern) : forRe2(tokens, is_multiline),
      RE2JS.MULTILINE | (ignore_case ? RE2JS.CASE_INSENSITIVE : 0),
    );
    const size = compiled.programSize();
    if (size > MAX_PATTERN_SIZE) {
      throw new FileError("pattern repeats too much: use smaller numbers in {…}, or * and +");
    }
    return {
      ...common,
      chars: Math.ceil(MAX_STEPS / size),
      ripgrep: is_multiline || keeps_cr || widened === null ? null : [...flags, "--regexp", widened],
      hint: tokens.some(({ text }) => text === "\\|")
        ? "\\| is the character |: write a|b for one of several"
        : null,
      maybe: (text) => compiled.test(text),
      find: (text, from) => {
        const found = compiled.matcher(text);
        return found.find(from) ? { start: found.start(), end: found.end() } : null;
      },
    };
  } catch (error) {
    if (error instanceof FileError) throw error;
    throw new FileError(`pattern cannot be read: ${reasonOf(pattern, error)}`);
  }
}

function reasonOf(pattern: string, error: unknown): string {
  const reason = error instanceof Error ? error.message : String(error);
  if (/\(\?(?:[=!>]|<[=!])/.test(pattern)) {
    return "it looks ahead or back, as in (?=…), (?!…), (?<=…), (?<!…) or (?>…), which RE2 and ripgrep do not " +
      "support: search for a simpler pattern";
  }
  if (/\\[1-9]/.test(pattern)) return "it refers to a group, as in \\1, which RE2 and ripgrep do not support";
  return `${reason}; set literal to search for it as text`;
}

/** One part of a pattern: an escape such as `\w`, a class, the start of a group, or one character. */
interface Token {
  readonly kind: "escape" | "class" | "group" | "character";
  readonly text: string;
}

const TOKEN =
  /(\\Q.*?(?:\\E|$)|\\x\{[^}]*\}|\\x[0-9A-Fa-f]{2}|\\[pP](?:\{[^}]*\}|.)|\\.)|(\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\])|(\(\?(?:P?<\w+>|[a-zA-Z-]*[:)]?))|./gsu;

function tokensOf(pattern: string): Token[] {
  return [...pattern.matchAll(TOKEN)].map(([text, escape, bracket, group]) => ({
    kind: escape !== undefined
      ? "escape"
      : bracket !== undefined
      ? "class"
      : group !== undefined
      ? "group"
      : "character",
    text,
  }));
}

/** Returns whether a token is there to match the end of a line. */
function matchesNewline({ kind, text }: Token): boolean {
  if (kind === "group") return /^\(\?[a-zA-Z]*s/.test(text) && !text.includes("<");
  if (kind === "class") {
    if (text.startsWith("[^")) return false;
    return /\\n|\n|\\x0[aA]/.test(text) ||
      /\\s.*\\S|\\S.*\\s|\\w.*\\W|\\W.*\\w|\\d.*\\D|\\D.*\\d/s.test(text);
  }
  return /^(?:\n|\\n|\\\n|\\x0[aA]|\\x\{0*[aA]\})$/.test(text) || /^\\Q.*\n/s.test(text);
}

/** What ripgrep means by these classes, in RE2 syntax, inside of brackets. */
const UNICODE: Readonly<Record<string, string>> = {
  "\\d": "\\p{Nd}",
  "\\s": "\\s\\x0B\\x{85}\\pZ",
  "\\w": "\\pL\\pM\\p{Nd}\\p{Pc}",
};

const BOUNDARIES: ReadonlySet<string> = new Set(["\\b", "\\<", "\\>"]);

/** Returns the pattern for RE2JS: classes know all of Unicode, as in ripgrep. */
function forRe2(tokens: readonly Token[], is_multiline: boolean): string {
  return tokens.map(({ kind, text }, at) => {
    if (kind === "class") {
      return text.replace(/\\[dsw]|\\./gs, (escape) => UNICODE[escape] ?? escape);
    }
    if (kind !== "escape") return text;
    // RE2 knows ASCII letters only, so that there is no boundary after é
    if (BOUNDARIES.has(text)) return isForeign(tokens[at - 1]) || isForeign(tokens[at + 1]) ? "(?:)" : "\\b";
    if (!is_multiline && text === "\\A") return "^"; // each line is a text of its own
    if (!is_multiline && text === "\\z") return "$";
    const members = UNICODE[text] ?? UNICODE[text.toLowerCase()];
    if (members === undefined || text.length !== 2) return text;
    return UNICODE[text] === undefined ? `[^${members}]` : `[${members}]`;
  }).join("");
}

function isForeign(token: Token | undefined): boolean {
  return token !== undefined && /[^\0-\x7f]/.test(token.text);
}

/**
 * Returns a pattern for ripgrep that matches in every file in which the pattern matches; null when there may
 * be none, because the two programs differ in what they mean.
 */
function forRipgrep(tokens: readonly Token[]): string | null {
  let written = "";
  for (const [at, { kind, text }] of tokens.entries()) {
    const part = kind === "escape"
      ? escapeForRipgrep(text)
      : kind === "class"
      ? classForRipgrep(text)
      : kind === "group"
      ? text.replace(/^\(\?<(?=\w)/, "(?P<")
      : characterForRipgrep(text, tokens.slice(at, at + 12).map(({ text }) => text).join(""));
    if (part === null) return null;
    written += part;
  }
  return written;
}

/** Matches nothing, where it cannot exclude a match: ends of words, lines and texts differ. */
const ANYWHERE = "(?:)";

function escapeForRipgrep(text: string): string | null {
  if (BOUNDARIES.has(text) || text === "\\B" || text === "\\A" || text === "\\z") return ANYWHERE;
  if (/^\\[dwstfv]$/.test(text)) return text;
  if (text === "\\D") return "[^0-9]";
  if (text === "\\S") return "[^ ]";
  if (text === "\\W") return "[^0-9A-Za-z_]";
  return /^\\[^\w\s]$/.test(text) && !isForeign({ kind: "escape", text }) ? escaped(text.slice(1)) : null;
}

function classForRipgrep(text: string): string | null {
  const inside = text.replace(/^\[\^?\]?|\]$/g, "").replace(/\[:\^?\w+:\]/g, "");
  const differs = /\[|&&|--|~~/.test(inside.replace(/\\./gs, "")) ||
    /\\[^\\\][^dwstfv.*+?(){}|$/-]/.test(inside) ||
    text.startsWith("[^") && /\\[dws]/.test(inside);
  return differs ? null : text.replaceAll("\\/", "/");
}

function characterForRipgrep(text: string, following: string): string | null {
  if (text === "^" || text === "$") return ANYWHERE;
  if (text === "{" && !/^\{\d+(?:,\d*)?\}/.test(following)) return "\\{";
  return text === "[" || text === "\\" ? null : text; // such as a class without its end
}

/** Returns an expression that matches a text as it is. */
function escaped(text: string): string {
  return text.replace(/[\\.+*?()|[\]{}^$#&~-]/g, "\\$&");
}
