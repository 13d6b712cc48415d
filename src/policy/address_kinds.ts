/**
 * Classifies IP addresses by the IANA special-purpose registries (RFC 6890 and updates). Accepts the
 * canonical text of URL parsers and resolvers; other text is `invalid`, never `public`.
 */
import { parseAddress } from "../plan/permissions/ip_address.ts";
import { type AddressBlock, inBlock, parseBlock } from "./address_blocks.ts";

/** Kind of network of an address. Everything but `public` is refused unless the operator named the host. */
export type AddressKind =
  | "public"
  | "loopback"
  | "private"
  | "link-local"
  | "shared"
  | "unspecified"
  | "multicast"
  | "reserved"
  | "invalid";

/** A block in CIDR notation, and the kind of its addresses. */
type Block = readonly [block: string, kind: AddressKind];

/** IANA IPv4 Special-Purpose Address Registry, and multicast. The first match wins. */
const V4: readonly Block[] = [
  ["0.0.0.0/8", "unspecified"],
  ["10.0.0.0/8", "private"],
  ["100.64.0.0/10", "shared"],
  ["127.0.0.0/8", "loopback"],
  ["169.254.0.0/16", "link-local"],
  ["172.16.0.0/12", "private"],
  ["192.0.0.0/24", "reserved"],
  ["192.0.2.0/24", "reserved"],
  ["192.88.99.0/24", "reserved"],
  ["192.168.0.0/16", "private"],
  ["198.18.0.0/15", "reserved"],
  ["198.51.100.0/24", "reserved"],
  ["203.0.113.0/24", "reserved"],
  ["224.0.0.0/4", "multicast"],
  ["240.0.0.0/4", "reserved"],
];

/** IANA IPv6 Special-Purpose Address Registry inside 2000::/3, and named networks outside of it. */
const V6: readonly Block[] = [
  ["::/128", "unspecified"],
  ["::1/128", "loopback"],
  ["fc00::/7", "private"],
  ["fe80::/10", "link-local"],
  ["fec0::/10", "private"],
  ["ff00::/8", "multicast"],
  ["2001::/23", "reserved"],
  ["2001:db8::/32", "reserved"],
  ["3fff::/20", "reserved"],
];

/** Only these are allocated (RFC 4291 §2.4). */
const ALLOCATED = "2000::/3";

/** Networks whose addresses embed an IPv4 address, which determines the kind. */
const EMBEDDING: readonly (readonly [block: string, at: number])[] = [
  ["::ffff:0:0/96", 12], // v4-mapped
  ["::ffff:0:0:0/96", 12], // v4-translated, RFC 2765
  ["64:ff9b::/96", 12], // NAT64, RFC 6052
  ["2002::/16", 2], // 6to4, RFC 3056
];

/**
 * Returns the kind of an address; `invalid` for text that is not an address. Ignores an IPv6 zone (`%eth0`)
 * and brackets.
 */
export function addressKind(text: string): AddressKind {
  const bytes = parseAddress(text);
  if (!bytes) return "invalid";
  return bytes.length === 4 ? kindV4(bytes) : kindV6(bytes);
}

function kindV4(bytes: readonly number[]): AddressKind {
  return V4.find(([block]) => isIn(bytes, block))?.[1] ?? "public";
}

function kindV6(bytes: readonly number[]): AddressKind {
  for (const [block, at] of EMBEDDING) {
    if (!isIn(bytes, block)) continue;
    return kindV4(bytes.slice(at, at + 4));
  }
  const named = V6.find(([block]) => isIn(bytes, block))?.[1];
  if (named) return named;
  return isIn(bytes, ALLOCATED) ? "public" : "reserved";
}

/** The blocks above that were compared with an address: a server that loads nothing by URL parses none. */
const parsed = new Map<string, AddressBlock>();

function isIn(bytes: readonly number[], text: string): boolean {
  let block = parsed.get(text);
  if (!block) {
    block = parseBlock(text) ?? undefined;
    if (!block) throw new RangeError(`Cannot read the block ${text}`);
    parsed.set(text, block);
  }
  return inBlock(bytes, block);
}
