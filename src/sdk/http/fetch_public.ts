/**
 * Fetches a page of the public web. Every address of every host on the way is checked before the connection
 * is made to it, so that neither a redirect nor a name server leads into a private network.
 */
import { untilAborted } from "../abortable.ts";
import { HttpError, readDecodedBody, readHead, REDIRECTS, requestOf } from "./http1_client.ts";
import { addressKind } from "./ip_address.ts";
import { Connections, systemLookup } from "./pinned_connections.ts";

/** Options of {@linkcode fetchPublic}. */
export interface FetchPublicOptions {
  /** Ends the request; its reason is thrown. */
  readonly signal: AbortSignal;
  /** Bytes of the body without its coding at which reading ends. */
  readonly maxBytes: number;
  /** Value of the header `accept`. Default: any type. */
  readonly accept?: string;
  /** Throws for a URL that may not be fetched; called for each redirect too. */
  readonly checkUrl?: (url: URL) => void;
  /** Returns true for a host that may have any address, because the plan names it. Default: none. */
  readonly isNamedHost?: (hostname: string) => boolean;
  /** Resolves a host to all its addresses. Default: the system's resolver. */
  readonly lookup?: (hostname: string) => Promise<readonly string[]>;
  /** Additional certificate authorities, as PEM. */
  readonly ca_certs?: readonly string[];
}

/** A page that was fetched. */
export interface PublicPage {
  /** URL after all redirects. */
  readonly url: string;
  /** HTTP status. */
  readonly status: number;
  /** Media type with parameters; empty if the server sent none. */
  readonly contentType: string;
  /** The body, at most `maxBytes`. */
  readonly bytes: Uint8Array;
  /** Whether the body has more bytes. */
  readonly isCut: boolean;
}

/** Thrown for a page that may not be fetched, or whose answer is not valid; the message names the reason. */
export class WebError extends Error {
  /** Always `WebError`. */
  override readonly name = "WebError";
}

const MAX_REDIRECTS = 10;

/**
 * Fetches a page with `GET`, without cookies and credentials, over at most 10 redirects.
 *
 * @throws {WebError} when a URL or address is refused, and for an answer that is not valid HTTP.
 */
export async function fetchPublic(start: URL, options: FetchPublicOptions): Promise<PublicPage> {
  const { signal, isNamedHost = () => false, lookup = systemLookup, ca_certs = [] } = options;
  // a sandbox may connect to a named host by its name only
  const addressesOf = async (host: string) => isNamedHost(host) ? [host] : await lookup(host);
  const connections = new Connections({ ca_certs, lookup: addressesOf }, (url, address) => {
    const kind = addressKind(address);
    if (kind === "public" || isNamedHost(url.hostname)) return;
    throw new WebError(
      `${url.hostname} has the address ${address}, which is ${kind}: only public addresses may be fetched`,
    );
  });
  try {
    let url = start;
    for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
      if (url.protocol !== "https:" && url.protocol !== "http:") {
        throw new WebError(`${url.protocol} URLs cannot be fetched: use https`);
      }
      if (url.username !== "" || url.password !== "") {
        throw new WebError("A URL must not have a user or a password");
      }
      options.checkUrl?.(url);
      const answer = await untilAborted(signal, exchange(connections, url, options));
      if (!(answer instanceof URL)) return answer;
      url = answer;
    }
    throw new WebError(`${start} redirects more than ${MAX_REDIRECTS} times`);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof HttpError) {
      throw new WebError(`${start.hostname}: ${error.message}`, { cause: error });
    }
    throw error;
  } finally {
    connections.close();
  }
}

/** Resolves to the page, or to the URL that it redirects to. */
async function exchange(
  connections: Connections,
  url: URL,
  { signal, maxBytes, accept }: FetchPublicOptions,
): Promise<PublicPage | URL> {
  return await connections.use<PublicPage | URL>(url, signal, async (connection) => {
    await connection.write(requestOf(url, accept));
    const head = await readHead(connection.reader);
    const location = head.headers.get("location");
    if (REDIRECTS.has(head.status) && location !== undefined) {
      if (!URL.canParse(location, url.href)) throw new WebError(`${url} redirects to an invalid URL`);
      return { value: new URL(location, url), reusable: false };
    }
    const parts: Uint8Array[] = [];
    let left = maxBytes;
    let isCut = false;
    for await (const chunk of readDecodedBody(connection.reader, head)) {
      isCut = chunk.length > left;
      parts.push(chunk.slice(0, left)); // the buffer is used again
      left -= Math.min(left, chunk.length);
      if (isCut) break;
    }
    const bytes = new Uint8Array(await new Blob(parts as BlobPart[]).arrayBuffer());
    const contentType = head.headers.get("content-type") ?? "";
    return { value: { url: url.href, status: head.status, contentType, bytes, isCut }, reusable: false };
  });
}
