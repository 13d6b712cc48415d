/**
 * Fetches one file: checks its URL and every redirect against the policy, reads it within its limits, and
 * hashes its decoded bytes. Knows nothing about the meaning of files.
 */
import { createHash } from "node:crypto";
import {
  addressProblem,
  type SourceProblem,
  sourceProblem,
  type SourceRules,
  type SourceUse,
} from "../../policy/source_rules.ts";
import { concat } from "../../process/frames.ts";
import { untilAborted } from "../../sdk/abortable.ts";
import { errorMessage, PreampError } from "../../sdk/errors.ts";
import {
  type Connection,
  type ConnectionOptions,
  Connections,
  StaleConnection,
} from "../../sdk/http/pinned_connections.ts";
import {
  bodyEnds,
  type Head,
  HttpError,
  readDecodedBody,
  readHead,
  REDIRECTS,
  requestOf,
  TruncatedResponse,
} from "../../sdk/http/http1_client.ts";
import { kindOfUrl, mayImport } from "./specifiers.ts";
import { displayUrl } from "../module_errors.ts";
import type { FetchedFile, LoaderPolicy } from "../types.ts";

/** Options of {@link FileFetcher}. */
export interface FetchOptions extends ConnectionOptions {
  rules: SourceRules;
  limits: LoaderPolicy["limits"];
  /** Aborts all requests. */
  signal: AbortSignal;
  /** Called with the number of bytes as they arrive; throws if the graph has too many. */
  count(bytes: number): void;
  base_url?: string;
}

/** Fetches the files of one graph. */
export class FileFetcher implements Disposable {
  readonly #options: FetchOptions;
  readonly #connections: Connections;

  constructor(options: FetchOptions) {
    this.#options = options;
    this.#connections = new Connections(options, (url, address) => {
      const problem = addressProblem(url, address, options.rules);
      if (problem) throw this.#deniedError(url, problem);
    });
  }

  /**
   * Fetches a file. `as_code`: it is imported as a module, so a web page is an error.
   * @throws {PreampError} `module_source_denied`, `module_fetch_failed`, `module_fetch_timeout`,
   * `module_too_large`.
   */
  async fetch(requested: string, use: SourceUse, as_code: boolean): Promise<FetchedFile> {
    const url = new URL(requested);
    this.#checkAllowed(url, use);
    if (url.protocol === "file:") return await this.#readFile(url);
    if (url.protocol === "data:") return await this.#readData(requested);
    return await this.#fetchWeb(url, as_code);
  }

  /**
   * Fetches a file; resolves to null if it does not exist or the policy does not allow it. Throws as
   * {@link fetch}.
   */
  async fetchIfThere(requested: string, use: SourceUse): Promise<FetchedFile | null> {
    if (sourceProblem(new URL(requested), use, this.#options.rules)) return null;
    try {
      const file = await this.fetch(requested, use, false);
      return file.bytes[0] === LESS_THAN ? null : file; // a web page: some servers send one for missing files
    } catch (error) {
      if (error instanceof MissingFile) return null;
      throw error;
    }
  }

  /** Fetches a file that is no code; resolves to null if it does not exist. Throws as {@link fetch}. */
  async fetchText(requested: string, use: SourceUse): Promise<FetchedFile | null> {
    try {
      return await this.fetch(requested, use, false);
    } catch (error) {
      if (error instanceof MissingFile) return null;
      throw error;
    }
  }

  [Symbol.dispose](): void {
    this.#connections.close();
  }

  #checkAllowed(url: URL, use: SourceUse): void {
    const problem = sourceProblem(url, use, this.#options.rules);
    if (problem) throw this.#deniedError(url, problem);
  }

  #deniedError(url: URL, { fact, hint }: SourceProblem): PreampError {
    return new PreampError("module_source_denied", `Cannot load ${this.#display(url)}: ${fact}: ${hint}`);
  }

  #display(url: URL | string): string {
    return displayUrl(typeof url === "string" ? url : url.href, this.#options.base_url);
  }

  async #readFile(url: URL): Promise<FetchedFile> {
    try {
      const { isFile, isDirectory, mtime } = await Deno.stat(url);
      if (!isFile) {
        const fact = isDirectory ? "it is a folder" : "it is not a regular file";
        throw this.#fetchError(url, fact, "name a file");
      }
      using file = await Deno.open(url);
      const bytes = await this.#collect(url, chunksOf(file));
      return fileOf(url.href, bytes, mtime ? { mtime_ms: mtime.getTime() } : {});
    } catch (error) {
      if (error instanceof PreampError) throw error;
      if (error instanceof Deno.errors.NotFound) {
        const hint = "check the path: it is relative to the importing file";
        throw this.#missingError(url, "the file does not exist", hint);
      }
      throw this.#fetchError(url, "it cannot be read", "check that this process may read it", error);
    }
  }

  async #readData(text: string): Promise<FetchedFile> {
    const { body } = await fetch(text).catch((error) => { // decodes without network access
      throw this.#fetchError(text, "it cannot be decoded", "write data:text/javascript;base64,…", error);
    });
    return fileOf(text, await this.#collect(text, body ?? []));
  }

  async #fetchWeb(start: URL, as_code: boolean): Promise<FetchedFile> {
    const { max_redirects } = this.#options.limits;
    let url = start;
    let max_age_s = Infinity;
    for (let hop = 0; hop <= max_redirects; hop++) {
      const answer = await this.#request(url, as_code);
      max_age_s = Math.min(max_age_s, answer.max_age_s);
      if ("bytes" in answer) {
        return fileOf(url.href, answer.bytes, max_age_s === Infinity ? {} : { max_age_s });
      }
      if (!URL.canParse(answer.location, url.href)) {
        throw this.#fetchError(url, "it redirects to an invalid URL", "name the file's own URL");
      }
      const next = new URL(answer.location, url);
      next.hash = "";
      if (next.protocol !== "https:" && next.protocol !== "http:") {
        const fact = "a redirect may not leave http(s)";
        throw this.#deniedError(next, { fact, hint: "name the file's own URL" });
      }
      this.#checkAllowed(next, { as: "redirect", from: url });
      url = next;
    }
    throw this.#fetchError(start, `it redirects more than ${max_redirects} times`, "name the file's own URL");
  }

  /** Sends one request, which may take `fetch_timeout_s` from connecting to the last byte. */
  async #request(url: URL, as_code: boolean): Promise<Answer> {
    const { limits, signal: outer } = this.#options;
    const signal = AbortSignal.any([outer, AbortSignal.timeout(limits.fetch_timeout_s * 1000)]);
    try {
      const exchange = (connection: Connection) => this.#exchange(url, connection, as_code);
      return await untilAborted(signal, this.#connections.use(url, signal, exchange));
    } catch (error) {
      if (outer.aborted) throw outer.reason;
      if (error instanceof PreampError) throw error;
      if (signal.aborted) {
        const message = `Cannot fetch ${this.#display(url)}: timed out after ${limits.fetch_timeout_s} s`;
        throw new PreampError("module_fetch_timeout", message, { cause: error });
      }
      throw this.#fetchError(url, factOf(error), "check the address, and that its server runs", error);
    }
  }

  async #exchange(
    url: URL,
    connection: Connection,
    as_code: boolean,
  ): Promise<{ value: Answer; reusable: boolean }> {
    let head: Head;
    try {
      await connection.write(requestOf(url));
      head = await readHead(connection.reader);
    } catch (error) {
      if (error instanceof HttpError && !(error instanceof TruncatedResponse)) throw error;
      throw new StaleConnection(errorMessage(error), { cause: error });
    }
    const max_age_s = freshnessOf(head);
    const location = head.headers.get("location");
    if (REDIRECTS.has(head.status) && location !== undefined) {
      return { value: { location, max_age_s }, reusable: false };
    }
    if (head.status !== 200) {
      const fact = `its server answered ${head.status}`;
      const hint = HINTS[head.status] ?? "check the address";
      throw MISSING.has(head.status)
        ? this.#missingError(url, fact, hint)
        : this.#fetchError(url, fact, hint);
    }
    if (as_code && isPage(head) && mayImport(kindOfUrl(url.href))) {
      throw this.#fetchError(url, "it is a web page, not a module", "name the URL of the raw file");
    }
    const bytes = await this.#collect(url, readDecodedBody(connection.reader, head));
    return { value: { bytes, max_age_s }, reusable: head.keep_alive && bodyEnds(head) };
  }

  /** Reads a body; the limits apply while it is read. */
  async #collect(
    url: URL | string,
    chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  ): Promise<Uint8Array> {
    const { max_module_bytes } = this.#options.limits;
    const copies: Uint8Array[] = [];
    let length = 0;
    for await (const chunk of chunks) {
      length += chunk.length;
      if (length > max_module_bytes) {
        const message = `Cannot load ${this.#display(url)}: the file has more than ${max_module_bytes} bytes`;
        throw new PreampError("module_too_large", message);
      }
      this.#options.count(chunk.length);
      copies.push(chunk.slice()); // the buffer is reused
    }
    return concat(copies);
  }

  #missingError(url: URL, fact: string, hint: string): MissingFile {
    return new MissingFile("module_fetch_failed", `Cannot fetch ${this.#display(url)}: ${fact}: ${hint}`);
  }

  #fetchError(url: URL | string, fact: string, hint: string, cause?: unknown): PreampError {
    return new PreampError("module_fetch_failed", `Cannot fetch ${this.#display(url)}: ${fact}: ${hint}`, {
      cause,
    });
  }
}

type Answer =
  & { readonly max_age_s: number }
  & ({ readonly bytes: Uint8Array } | { readonly location: string });

/** Thrown when a file does not exist. */
class MissingFile extends PreampError {}

/** Statuses of missing files; some servers use the same for private ones. */
const MISSING: ReadonlySet<number> = new Set([401, 403, 404, 410]);
const LESS_THAN = 0x3c;

const HINTS: Readonly<Record<number, string>> = {
  401: "it requires credentials, which are not supported",
  403: "it requires credentials, which are not supported",
  404: "check the path and the version in it",
  429: "its server limits requests: try again later",
};

function fileOf(
  url: string,
  bytes: Uint8Array,
  more: { max_age_s?: number; mtime_ms?: number } = {},
): FetchedFile {
  return { url, bytes, sha256: createHash("sha256").update(bytes).digest("hex"), ...more };
}

/** Returns the seconds that a response is fresh (RFC 9111 §5.2); `Infinity` if the server sent none. */
function freshnessOf({ headers }: Head): number {
  const directives = (headers.get("cache-control") ?? "").toLowerCase().split(",").map((part) => part.trim());
  if (directives.includes("no-store") || directives.includes("no-cache")) return 0;
  const [, seconds] = directives.find((part) => part.startsWith("max-age="))?.split("=") ?? [];
  if (seconds === undefined || !/^[0-9]{1,10}$/.test(seconds)) return Infinity;
  const age = Number(headers.get("age") ?? 0);
  return Math.max(0, Number(seconds) - (Number.isFinite(age) ? age : 0));
}

function isPage({ headers }: Head): boolean {
  return (headers.get("content-type") ?? "").toLowerCase().startsWith("text/html");
}

async function* chunksOf(file: Deno.FsFile): AsyncGenerator<Uint8Array> {
  const buffer = new Uint8Array(64 * 1024);
  for (let count = await file.read(buffer); count !== null; count = await file.read(buffer)) {
    yield buffer.subarray(0, count);
  }
}

/** Returns the reason of a network error as text. */
function factOf(error: unknown): string {
  if (error instanceof Deno.errors.ConnectionRefused) return "its server refused the connection";
  if (error instanceof Deno.errors.NotCapable) {
    return "this process may not reach it: start it with --allow-net";
  }
  const message = errorMessage(error);
  if (/certificate/i.test(message)) return "its certificate is not trusted for this name";
  if (/ENOTFOUND|EAI_|getaddrinfo|no address/i.test(message)) return "its host is unknown";
  if (error instanceof HttpError || error instanceof StaleConnection) return message;
  return "the connection failed";
}
