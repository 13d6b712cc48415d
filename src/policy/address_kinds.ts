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

type Block = readonly [block: AddressBlock, kind: AddressKind];

/** IANA IPv4 Special-Purpose Address Registry, and multicast. The first match wins. */
const V4: readonly Block[] = [
  [blockOf("0.0.0.0/8"), "unspecified"],
  [blockOf("10.0.0.0/8"), "private"],
  [blockOf("100.64.0.0/10"), "shared"],
  [blockOf("127.0.0.0/8"), "loopback"],
  [blockOf("169.254.0.0/16"), "link-local"],
  [blockOf("172.16.0.0/12"), "private"],
  [blockOf("192.0.0.0/24"), "reserved"],
  [blockOf("192.0.2.0/24"), "reserved"],
  [blockOf("192.88.99.0/24"), "reserved"],
  [blockOf("192.168.0.0/16"), "private"],
  [blockOf("198.18.0.0/15"), "reserved"],
  [blockOf("198.51.100.0/24"), "reserved"],
  [blockOf("203.0.113.0/24"), "reserved"],
  [blockOf("224.0.0.0/4"), "multicast"],
  [blockOf("240.0.0.0/4"), "reserved"],
];

/** IANA IPv6 Special-Purpose Address Registry inside 2000::/3, and named networks outside of it. */
const V6: readonly Block[] = [
  [blockOf("::/128"), "unspecified"],
  [blockOf("::1/128"), "loopback"],
  [blockOf("fc00::/7"), "private"],
  [blockOf("fe80::/10"), "link-local"],
  [blockOf("fec0::/10"), "private"],
  [blockOf("ff00::/8"), "multicast"],
  [blockOf("2001::/23"), "reserved"],
  [blockOf("2001:db8::/32"), "reserved"],
  [blockOf("3fff::/20"), "reserved"],
];

/** Only these are allocated (RFC 4291 §2.4). */
const ALLOCATED = blockOf("2000::/3");

/** Networks whose addresses embed an IPv4 address, which determines the kind. */
const EMBEDDING: readonly (readonly [block: AddressBlock, at: number])[] = [
  [blockOf("::ffff:0:0/96"), 12], // v4-mapped
  [blockOf("::ffff:0:0:0/96"), 12], // v4-translated, RFC 2765
  [blockOf("64:ff9b::/96"), 12], // NAT64, RFC 6052
  [blockOf("2002::/16"), 2], // 6to4, RFC 3056
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
  return V4.find(([block]) => inBlock(bytes, block))?.[1] ?? "public";
}

function kindV6(bytes: readonly number[]): AddressKind {
  for (const [block, at] of EMBEDDING) {
    if (!inBlock(bytes, block)) continue;
    return kindV4(bytes.slice(at, at + 4));
  }
  const named = V6.find(([block]) => inBlock(bytes, block))?.[1];
  if (named) return named;
  return inBlock(bytes, ALLOCATED) ? "public" : "reserved";
}

function blockOf(text: string): AddressBlock {
  const block = parseBlock(text);
  if (!block) throw new RangeError(`Cannot read the block ${text}`);
  return block;
}
