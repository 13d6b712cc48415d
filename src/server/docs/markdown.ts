/**
 * Renders the Markdown of a page as HTML, with its headings and sections. Raw HTML in a page is displayed as
 * text; links lead to other pages, to headings and to the web only.
 */
import { Lexer, Parser, Renderer, type Token, type Tokens } from "marked";
import { linkedPage } from "../../docs/pages.ts";
import { escapeHtml } from "../../text/escape.ts";

/** A heading of a page. */
export interface Heading {
  /** 1 for the title of the page. */
  readonly depth: number;
  readonly text: string;
  /** Unique in the page. */
  readonly anchor: string;
}

/** A heading with the text below it, up to the next heading. */
export interface Section extends Heading {
  /** Plain text in one line, code included. */
  readonly body: string;
}

/** A rendered page. */
export interface RenderedPage {
  readonly html: string;
  readonly headings: readonly Heading[];
}

/** Renders a page. `prefix` leads from the URL of the page to the other pages. */
export function renderPage(markdown: string, prefix: string): RenderedPage {
  const tokens = new Lexer().lex(markdown);
  const headings = headingsOf(tokens);
  const html = new Parser({ renderer: new PageRenderer(headings, prefix) }).parse(tokens);
  return { html, headings: [...headings.values()] };
}

/** Returns the sections of a page in order; text before the first heading belongs to none. */
export function sectionsOf(markdown: string): Section[] {
  const tokens = new Lexer().lex(markdown);
  const headings = headingsOf(tokens);
  const sections: (Heading & { parts: string[] })[] = [];
  for (const token of tokens) {
    const heading = headings.get(token);
    if (heading) sections.push({ ...heading, parts: [] });
    else sections.at(-1)?.parts.push(plainText([token]));
  }
  return sections.map(({ parts, ...heading }) => ({
    ...heading,
    body: parts.join(" ").replace(/\s+/g, " ").trim(),
  }));
}

/** Returns the headings of the top level by their tokens. */
function headingsOf(tokens: readonly Token[]): Map<Token, Heading> {
  const counts = new Map<string, number>();
  const headings = new Map<Token, Heading>();
  for (const token of tokens) {
    if (token.type !== "heading") continue;
    const base = anchorOf(token.text);
    const count = counts.get(base) ?? 0;
    counts.set(base, count + 1);
    const anchor = count === 0 ? base : `${base}-${count}`;
    headings.set(token, { depth: token.depth, text: plainText(token.tokens ?? []), anchor });
  }
  return headings;
}

/** Returns the anchor of a heading, as GitHub makes it. */
function anchorOf(heading: string): string {
  return heading.toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, "").replaceAll(" ", "-");
}

/** Returns the text of tokens without marks; that of a block ends with a space. */
function plainText(tokens: readonly Token[]): string {
  return tokens.map((token): string => {
    if (token.type === "table") {
      const { header, rows } = token as Tokens.Table;
      return [header, ...rows].flat().map((cell) => `${plainText(cell.tokens)} `).join("");
    }
    if (token.type === "list") return ` ${plainText((token as Tokens.List).items)}`;
    const text = "tokens" in token && token.tokens
      ? plainText(token.tokens)
      : "text" in token
      ? token.text
      : " ";
    return BLOCKS.has(token.type) ? `${text} ` : text;
  }).join("");
}

const BLOCKS: ReadonlySet<string> = new Set(["blockquote", "code", "list_item", "paragraph"]);

class PageRenderer extends Renderer {
  readonly #headings: ReadonlyMap<Token, Heading>;
  readonly #prefix: string;

  constructor(headings: ReadonlyMap<Token, Heading>, prefix: string) {
    super();
    this.#headings = headings;
    this.#prefix = prefix;
  }

  override heading(token: Tokens.Heading): string {
    const heading = this.#headings.get(token);
    const text = this.parser.parseInline(token.tokens);
    if (heading === undefined) return `<h${token.depth}>${text}</h${token.depth}>\n`; // inside a list or quotation
    const anchor = escapeHtml(heading.anchor);
    const own = heading.depth > 1 && !token.tokens.some(({ type }) => type === "link");
    const linked = own ? `<a class="anchor" href="#${anchor}">${text}</a>` : text;
    return `<h${heading.depth} id="${anchor}">${linked}</h${heading.depth}>\n`;
  }

  override code(token: Tokens.Code): string {
    return `<div class="code">${super.code(token)}</div>\n`;
  }

  override table(token: Tokens.Table): string {
    return `<div class="table">${super.table(token)}</div>\n`;
  }

  override html({ text }: Tokens.HTML | Tokens.Tag): string {
    return escapeHtml(text);
  }

  override image({ text }: Tokens.Image): string {
    return escapeHtml(text);
  }

  override link({ href, tokens }: Tokens.Link): string {
    const page = linkedPage(href);
    const target = page ? `${this.#prefix}${page.name}${page.anchor}` : href;
    const text = this.parser.parseInline(tokens);
    // another scheme could run code; another path is no route of the server
    if (!page && !/^(?:https?:\/\/|#)/i.test(href)) return text;
    return `<a href="${escapeHtml(target)}">${text}</a>`;
  }
}
