/**
 * Classifies IP addresses by the IANA special-purpose registries (RFC 6890 and updates). Accepts the
 * canonical text of URL parsers and resolvers; other text is `invalid`, never `public`.
 */
import { type AddressBlock, inBlock, parseAddress, parseBlock } from "../plan/permissions/ip_address.ts";

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

type Blocks = { readonly [Kind in AddressKind]?: readonly string[] };

/** IANA IPv4 Special-Purpose Address Registry, and multicast. */
const V4: Blocks = {
  unspecified: ["0.0.0.0/8"],
  loopback: ["127.0.0.0/8"],
  private: ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"],
  shared: ["100.64.0.0/10"],
  "link-local": ["169.254.0.0/16"],
  multicast: ["224.0.0.0/4"],
  reserved: [
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "240.0.0.0/4",
  ],
};

/** IANA IPv6 Special-Purpose Address Registry inside 2000::/3, and named networks outside of it. */
const V6: Blocks = {
  unspecified: ["::/128"],
  loopback: ["::1/128"],
  private: ["fc00::/7", "fec0::/10"],
  "link-local": ["fe80::/10"],
  multicast: ["ff00::/8"],
  reserved: ["2001::/23", "2001:db8::/32", "3fff::/20"],
};

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
  if (bytes.length === 4) return kindIn(V4, bytes) ?? "public";
  const [, at] = EMBEDDING.find(([block]) => isIn(bytes, block)) ?? [];
  if (at !== undefined) return kindIn(V4, bytes.slice(at, at + 4)) ?? "public";
  return kindIn(V6, bytes) ?? (isIn(bytes, ALLOCATED) ? "public" : "reserved");
}

function kindIn(blocks: Blocks, bytes: readonly number[]): AddressKind | undefined {
  const found = Object.entries(blocks).find(([_, texts]) => texts.some((text) => isIn(bytes, text)));
  return found?.[0] as AddressKind | undefined; // Object.entries loses the key type
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
