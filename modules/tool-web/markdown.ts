/** HTML as Markdown. A page can make this slow and large: it runs in a worker. */
import { htmlToMarkdown } from "@mdream/js";
import { declaredCharset, decoded } from "./charset.ts";

/** The beginning of a page, as it came. */
export interface HtmlPage {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Whether the page has more bytes. */
  readonly isCut: boolean;
  /** Encoding that the server states. */
  readonly charset: string | undefined;
  /** Origin of its relative links. */
  readonly origin: string;
}

/** Elements without text of the page. */
const LEFT_OUT = ["script", "style", "noscript", "template", "svg", "iframe", "nav", "form"];
/** Most characters of a page's Markdown. */
const MAX_MARKDOWN_CHARS = 4 * 1024 * 1024;

/** Returns the Markdown of a page; of a long one the beginning, which says so. */
export function markdownOf({ bytes, isCut, charset, origin }: HtmlPage): string {
  const html = decoded(bytes, charset ?? declaredCharset(bytes));
  const options = { origin, plugins: { filter: { exclude: LEFT_OUT } } };
  const markdown = htmlToMarkdown(html, options).trim();
  if (!isCut && markdown.length <= MAX_MARKDOWN_CHARS) return markdown;
  return `${markdown.slice(0, MAX_MARKDOWN_CHARS)}\n\n[The rest of the page is left out]`;
}
