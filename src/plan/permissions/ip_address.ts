/** IP addresses and blocks of them such as `10.0.0.0/8`: text and bytes. Pure. Accepts only one spelling of each byte. */

/** Returns the 4 or 16 bytes of an address in its standard text (dotted quad; RFC 4291 §2.2), or undefined. */
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
