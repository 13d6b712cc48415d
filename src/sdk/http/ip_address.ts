/**
 * IP addresses and blocks of them such as `10.0.0.0/8`: text and bytes, and their kinds by the IANA
 * special-purpose registries (RFC 6890 and updates). Pure. Accepts only one spelling of each byte; the kind
 * of other text is `invalid`, never `public`.
 */

/**
 * Returns the 4 or 16 bytes of an address in its standard text (dotted quad; RFC 4291 §2.2), or undefined.
 */
export function parseAddress(text: string): number[] | undefined {
  const bare = text.startsWith("[") && text.endsWith("]") ? text.slice(1, -1) : text;
  const zone = bare.indexOf("%");
  const address = zone === -1 ? bare : bare.slice(0, zone);
  return address.includes(":") ? parseV6(address) : parseV4(address);
}

function parseV4(text: string): number[] | undefined {
  const parts = text.split(".");
  if (parts.length !== 4) return undefined;
  const bytes: number[] = [];
  for (const part of parts) {
    // some parsers read a leading zero as octal; canonical text has none
    if (!/^(0|[1-9][0-9]{0,2})$/.test(part)) return undefined;
    const byte = Number(part);
    if (byte > 255) return undefined;
    bytes.push(byte);
  }
  return bytes;
}

function parseV6(text: string): number[] | undefined {
  const halves = text.split("::");
  if (halves.length > 2) return undefined;
  const head = groups(halves[0] ?? "", halves.length === 1);
  const tail = halves.length === 2 ? groups(halves[1] ?? "", true) : [];
  if (!head || !tail) return undefined;
  const missing = 16 - head.length - tail.length;
  if (halves.length === 1 ? missing !== 0 : missing < 2) return undefined;
  return [...head, ...new Array<number>(missing).fill(0), ...tail];
}

/** Returns the bytes of groups between colons. The last may be a dotted quad. */
function groups(text: string, last: boolean): number[] | undefined {
  if (text === "") return [];
  const bytes: number[] = [];
  const parts = text.split(":");
  for (const [index, part] of parts.entries()) {
    if (last && index === parts.length - 1 && part.includes(".")) {
      const quad = parseV4(part);
      if (!quad) return undefined;
      bytes.push(...quad);
    } else {
      if (!/^[0-9a-f]{1,4}$/i.test(part)) return undefined;
      const value = parseInt(part, 16);
      bytes.push(value >> 8, value & 0xff);
    }
  }
  return bytes;
}

/** Returns the standard text of 4 or 16 bytes. IPv6 is compressed and in brackets, as in a URL. */
export function addressText(bytes: readonly number[]): string {
  if (bytes.length === 4) return bytes.join(".");
  const groups = Array.from(
    { length: 8 },
    (_, at) => ((bytes[2 * at]! << 8) | bytes[2 * at + 1]!).toString(16),
  );
  return new URL(`http://[${groups.join(":")}]/`).hostname; // `URL` compresses as RFC 5952 requires
}

/** A block: the addresses whose first `bits` bits equal those of `start`. */
export interface AddressBlock {
  /** 4 or 16 bytes; the bits after the first `bits` are 0. */
  readonly start: readonly number[];
  readonly bits: number;
}

/** Returns the block of an address or of CIDR notation; null for other text. */
export function parseBlock(text: string): AddressBlock | null {
  const slash = text.indexOf("/");
  const start = parseAddress(slash === -1 ? text : text.slice(0, slash));
  if (!start) return null;
  const size = slash === -1 ? String(8 * start.length) : text.slice(slash + 1);
  const bits = Number(size);
  if (!/^(0|[1-9][0-9]{0,2})$/.test(size) || bits > 8 * start.length) return null;
  return { start: firstBits(start, bits), bits };
}

/** Returns whether a block contains an address of 4 or 16 bytes. */
export function inBlock(bytes: readonly number[], { start, bits }: AddressBlock): boolean {
  return start.length === bytes.length && firstBits(bytes, bits).every((byte, at) => byte === start[at]);
}

/** Returns bytes with all but their first `bits` bits set to 0. */
function firstBits(bytes: readonly number[], bits: number): number[] {
  return bytes.map((byte, at) => byte & (0xff00 >> Math.min(8, Math.max(0, bits - 8 * at))));
}

const MAPPED: AddressBlock = { start: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0], bits: 96 };

/** Returns the IPv4 address in `::ffff:a.b.c.d`, which means the same host; other addresses are unchanged. */
export function unmapped(bytes: readonly number[]): readonly number[] {
  return inBlock(bytes, MAPPED) ? bytes.slice(12) : bytes;
}

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
