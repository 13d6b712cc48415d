/** The text of a fetched page: HTML as Markdown, other text as it is. */
import { type PublicPage, WebError } from "preamp/web";

/** Characters of HTML that are converted before other work of the program has its turn. */
const SLICE_CHARS = 16_384;

/** Elements without text of the page. */
const LEFT_OUT = ["script", "style", "noscript", "template", "svg", "iframe", "nav", "form"];

/**
 * Resolves to the text of a page. HTML is converted in slices: a large page does not block the program.
 *
 * @throws {WebError} for a page that is not text. Rejects with the signal's reason on abort.
 */
export async function pageText(page: PublicPage, signal: AbortSignal): Promise<string> {
  const { type, charset } = mediaTypeOf(page.contentType);
  const isHtml = type === "text/html" || type === "application/xhtml+xml";
  if (!isHtml && !isText(type, page.bytes)) {
    throw new WebError(`it is ${type || "binary data"} of ${page.bytes.length} bytes, not text`);
  }
  const text = decoded(page.bytes, charset ?? (isHtml ? declaredCharset(page.bytes) : undefined));
  if (!isHtml) return text;
  const { streamHtmlToMarkdown } = await import("@mdream/js");
  const parts: string[] = [];
  const html = ReadableStream.from(slicesOf(text, signal));
  const options = { origin: new URL(page.url).origin, plugins: { filter: { exclude: LEFT_OUT } } };
  for await (const part of streamHtmlToMarkdown(html, options)) {
    parts.push(part);
  }
  return parts.join("").trim();
}

async function* slicesOf(text: string, signal: AbortSignal): AsyncGenerator<string> {
  for (let at = 0; at < text.length; at += SLICE_CHARS) {
    await new Promise((resolve) => setTimeout(resolve, 0));
    signal.throwIfAborted();
    yield text.slice(at, at + SLICE_CHARS);
  }
}

function mediaTypeOf(header: string): { type: string; charset?: string } {
  const charset = /;\s*charset\s*=\s*"?([\w.:-]+)/i.exec(header)?.[1];
  const type = header.split(";", 1)[0]!.trim().toLowerCase();
  return { type, ...(charset === undefined ? {} : { charset }) };
}

/** Returns the encoding that a page declares in its first kilobyte (WHATWG HTML §4.2.5.4). */
function declaredCharset(bytes: Uint8Array): string | undefined {
  const start = new TextDecoder("latin1").decode(bytes.subarray(0, 1_024));
  return /<meta[^>]{0,200}charset\s*=\s*["']?([\w.:-]+)/i.exec(start)?.[1];
}

function decoded(bytes: Uint8Array, charset = "utf-8"): string {
  try {
    return new TextDecoder(charset).decode(bytes);
  } catch {
    return new TextDecoder().decode(bytes); // an encoding that does not exist
  }
}

function isText(type: string, bytes: Uint8Array): boolean {
  if (/^text\/|[/+](json|xml|yaml|javascript|typescript|x-sh|toml)$/.test(type)) return true;
  return (type === "" || type === "application/octet-stream") && !bytes.subarray(0, 1_024).includes(0);
}
