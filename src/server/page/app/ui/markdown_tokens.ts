/**
 * Reads Markdown that grows while a model writes it, and text that is made to be slow to read, in bounded
 * time.
 */
import { Lexer, type Token } from "marked";

/** Characters up to which a text is read as Markdown; a longer one is plain text. */
const MAX_CHARS = 200_000;
/** Characters up to which the emphasis and links of a paragraph are read: some take quadratic time. */
const MAX_PARAGRAPH_CHARS = 5_000;
/** Squared characters of paragraphs after which the others of a text are shown as they were written. */
const MAX_WORK = 250e6;
/** Blocks at the end, blank lines included, that more text may change: a list and what follows it. */
const OPEN_BLOCKS = 4;

/** A text and its blocks. */
interface Reading {
  readonly text: string;
  /** Null when the text is too long, or nested too deeply for the lexer, which calls itself at each level. */
  readonly tokens: readonly Token[] | null;
  /** Whether the text defines links, which earlier blocks may refer to. */
  readonly defines: boolean;
}

/** Nothing read. */
export const NOTHING: Reading = { text: "", tokens: [], defines: false };

/** Reads a text. Of one that begins with the text read before, only the last blocks are read again. */
export function read(source: string, before: Reading): Reading {
  const text = source.replace(/\r\n?/g, "\n");
  if (text === before.text) return before;
  if (text.length > MAX_CHARS) return { text, tokens: null, defines: false };
  const grows = text.startsWith(before.text) && !before.defines;
  const kept = grows ? before.tokens?.slice(0, -OPEN_BLOCKS) ?? [] : [];
  const from = kept.reduce((sum, { raw }) => sum + raw.length, 0);
  const lexer = new BoundedLexer();
  try {
    const tokens = lexer.lex(text.slice(from));
    const defines = Object.keys(lexer.tokens.links).length > 0;
    return defines && from > 0 ? read(text, NOTHING) : { text, tokens: [...kept, ...tokens], defines };
  } catch {
    return { text, tokens: null, defines: false };
  }
}

class BoundedLexer extends Lexer {
  #work = 0;

  override inlineTokens(source: string, tokens: Token[] = []): Token[] {
    this.#work += source.length ** 2;
    if (source.length <= MAX_PARAGRAPH_CHARS && this.#work < MAX_WORK) {
      return super.inlineTokens(source, tokens);
    }
    tokens.push({ type: "text", raw: source, text: source, escaped: false });
    return tokens;
  }
}
