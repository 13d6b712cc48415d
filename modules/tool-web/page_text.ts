/** The text of a fetched page: HTML as Markdown, other text as it is. */
import { errorMessage } from "preamp/base";
import { type PublicPage, WebError } from "preamp/web";
import { inWorker, type WorkerFile } from "../worker/worker_task.ts";
import { decoded } from "./charset.ts";
import type { HtmlPage } from "./markdown.ts";

/** Bytes of HTML that are converted: the most hostile ones take some hundred megabytes of memory. */
const MAX_HTML_BYTES = 4 * 1024 * 1024;
/** Time for the conversion of a page: one that was written by people takes less than one second. */
const CONVERT_MS = 10_000;

const WORKER: WorkerFile<HtmlPage, string> = {
  source: new URL("./page_worker.ts", import.meta.url),
  compiled: "modules/tool-web/page_worker.js",
  inline: async (page) => (await import("./markdown.ts")).markdownOf(page),
};

/**
 * Resolves to the text of a page.
 *
 * @throws {WebError} for a page that is not text, or whose HTML takes too long. Rejects with the signal's
 * reason on abort.
 */
export async function pageText(page: PublicPage, signal: AbortSignal): Promise<string> {
  const { type, charset } = mediaTypeOf(page.contentType);
  if (type === "text/html" || type === "application/xhtml+xml") return await htmlText(page, charset, signal);
  if (isText(type, page.bytes)) return decoded(page.bytes, charset);
  throw new WebError(`it is ${type || "binary data"} of ${page.bytes.length} bytes, not text`);
}

async function htmlText(
  { bytes: received, url }: PublicPage,
  charset: string | undefined,
  signal: AbortSignal,
): Promise<string> {
  const bytes = received.slice(0, MAX_HTML_BYTES); // the worker gets these
  const page = { bytes, isCut: bytes.length < received.length, charset, origin: new URL(url).origin };
  try {
    return await inWorker(WORKER, page, { signal, timeout_ms: CONVERT_MS, transfer: [bytes.buffer] });
  } catch (error) {
    signal.throwIfAborted();
    throw new WebError(`its HTML cannot be read: ${errorMessage(error)}`, { cause: error });
  }
}

function mediaTypeOf(header: string): { type: string; charset?: string } {
  const charset = /;\s*charset\s*=\s*"?([\w.:-]+)/i.exec(header)?.[1];
  const type = header.split(";", 1)[0]!.trim().toLowerCase();
  return { type, ...(charset === undefined ? {} : { charset }) };
}

function isText(type: string, bytes: Uint8Array): boolean {
  if (/^text\/|[/+](json|xml|yaml|javascript|typescript|x-sh|toml)$/.test(type)) return true;
  return (type === "" || type === "application/octet-stream") && !bytes.subarray(0, 1_024).includes(0);
}
