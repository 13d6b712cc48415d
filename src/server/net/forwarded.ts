/**
 * Finds the client of a request behind reverse proxies: by `Forwarded` (RFC 7239) or `X-Forwarded-For`,
 * `-Proto` and `-Host`, from trusted addresses only. Each proxy appends what it saw, so the headers are read
 * from right to left as long as the next proxy is trusted; what stands further left may have been written by
 * the client.
 */
import { type AddressBlock, inBlock, parseAddress, parseBlock, unmapped } from "../../sdk/http/ip_address.ts";

/** The client of a request, as the outermost trusted proxy saw it. */
export interface Client {
  /**
   * IP address, or the identifier that a proxy gave instead: `unknown` or `_…`. Null without a connection.
   */
  readonly address: string | null;
  /** Null: that of the request's URL. */
  readonly scheme: "http" | "https" | null;
  /** Host with its port; null: that of the request. */
  readonly host: string | null;
}

/** One element of `Forwarded`: the parameters that a proxy wrote, by name in lower case. */
export type ForwardedElement = ReadonlyMap<string, string>;

/** What one proxy saw. */
interface Hop {
  /**
   * The client of the proxy, such as `192.0.2.1`, `[2001:db8::1]:80` or `_hidden`; undefined if it did not
   * say.
   */
  readonly node: string | undefined;
  readonly scheme: string | undefined;
  readonly host: string | undefined;
}

/** Addresses of reverse proxies whose headers are believed. */
export class TrustedProxies {
  readonly #blocks: readonly AddressBlock[];

  /** @throws {TypeError} for text that is neither an IP address nor a block such as `10.0.0.0/8`. */
  constructor(proxies: readonly string[]) {
    this.#blocks = proxies.map((text) => {
      const block = parseBlock(text);
      if (block) return block;
      throw new TypeError(
        `Cannot trust the proxy ${
          JSON.stringify(text)
        }: write an IP address, or a block such as "10.0.0.0/8"`,
      );
    });
  }

  /** Returns the client of a request from a peer. The headers of a peer that is not trusted are ignored. */
  clientOf(peer: string | null, headers: Headers): Client {
    let address = peer;
    let scheme: Client["scheme"] = null;
    let host: string | null = null;
    if (this.#blocks.length === 0 || !this.#trusts(peer)) return { address, scheme, host };
    for (const hop of hopsOf(headers).reverse()) {
      scheme = schemeOf(hop.scheme) ?? scheme;
      host = hostOf(hop.host) ?? host;
      const node = hop.node === undefined ? null : nodeName(hop.node);
      if (node === null) break;
      address = node;
      if (!this.#trusts(address)) break;
    }
    return { address, scheme, host };
  }

  #trusts(address: string | null): boolean {
    const bytes = address === null ? undefined : parseAddress(address);
    return bytes !== undefined && this.#blocks.some((block) => inBlock(unmapped(bytes), block));
  }
}

/**
 * Returns the hops of a request, the outermost first. None if the headers are malformed, or if `Forwarded`
 * and `X-Forwarded-For` name different clients of the nearest proxy: it wrote one of them, and passed on the
 * other unread.
 */
function hopsOf(headers: Headers): Hop[] {
  const header = headers.get("forwarded");
  const others = otherHops(headers);
  if (header === null) return others;
  const elements = parseForwarded(header);
  if (elements === null) return [];
  const hops = elements.map((element): Hop => ({
    node: element.get("for"),
    scheme: element.get("proto"),
    host: element.get("host"),
  }));
  const [own, other] = [hops.at(-1)?.node, others.at(-1)?.node];
  const differ = other !== undefined && (own === undefined || nodeName(own) !== nodeName(other));
  return differ ? [] : hops;
}

/** Returns the hops of `X-Forwarded-For`, `-Proto` and `-Host`. */
function otherHops(headers: Headers): Hop[] {
  const list = (name: string) => headers.get(name)?.split(",").map((item) => item.trim()) ?? [];
  const nodes = list("x-forwarded-for");
  const schemes = list("x-forwarded-proto");
  const hosts = list("x-forwarded-host");
  const count = Math.max(nodes.length, schemes.length > 0 || hosts.length > 0 ? 1 : 0);
  // Most proxies replace the last two headers, and append to the first: their last values belong to the
  // nearest proxy.
  return Array.from({ length: count }, (_, at) => ({
    node: nodes[at],
    scheme: schemes[schemes.length - count + at],
    host: hosts[hosts.length - count + at],
  }));
}

/**
 * A parameter: a token, and after `=` a token or a quoted string (RFC 9110 §5.6), with spaces around both.
 */
const PARAMETER =
  /[ \t]*([!#$%&'*+.^_`|~0-9A-Za-z-]+)=(?:([!#$%&'*+.^_`|~0-9A-Za-z-]+)|"((?:[^"\\]|\\.)*)")[ \t]*/y;

/** Parses a `Forwarded` header; null if it is malformed. Elements without parameters are left out. */
export function parseForwarded(header: string): ForwardedElement[] | null {
  const elements: ForwardedElement[] = [];
  let element = new Map<string, string>();
  for (let at = 0; at <= header.length;) {
    PARAMETER.lastIndex = at;
    const match = PARAMETER.exec(header);
    if (match) {
      const [written, name = "", token, quoted = ""] = match;
      if (element.has(name.toLowerCase())) return null;
      element.set(name.toLowerCase(), token ?? quoted.replace(/\\(.)/g, "$1"));
      at += written.length;
    } else {
      while (header[at] === " " || header[at] === "\t") at++;
    }
    if (at < header.length && header[at] !== "," && header[at] !== ";") return null;
    if (at === header.length || header[at] === ",") {
      if (element.size > 0) elements.push(element);
      element = new Map();
    }
    at++;
  }
  return elements;
}

/** A node: an IPv4 address, an IPv6 address in brackets, `unknown` or `_…`, and a port (RFC 7239 §6). */
const NODE =
  /^(?:([0-9.]+)|\[([0-9A-Fa-f:.]+)\]|(unknown|_[0-9A-Za-z._-]{1,80}))(?::(?:[0-9]{1,5}|_[0-9A-Za-z._-]+))?$/i;

/** Returns the name of a node without brackets and port; null if it is malformed. */
function nodeName(text: string): string | null {
  if (text.includes(":") && parseAddress(text)?.length === 16) {
    return text.replace(/^\[|\]$/g, "").toLowerCase(); // common in X-Forwarded-For
  }
  const [, v4, v6, identifier] = NODE.exec(text) ?? [];
  const address = v4 ?? v6;
  if (address !== undefined) return parseAddress(address) ? address.toLowerCase() : null;
  return identifier ?? null;
}

function schemeOf(text: string | undefined): "http" | "https" | null {
  const scheme = text?.toLowerCase();
  return scheme === "http" || scheme === "https" ? scheme : null;
}

/** Returns a host with an optional port; null for anything else, since it becomes part of URLs. */
export function hostOf(text: string | undefined): string | null {
  if (text === undefined) return null;
  const is_host = /^(?:[0-9A-Za-z._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?$/.test(text);
  return is_host && URL.canParse(`http://${text}/`) ? text : null;
}
