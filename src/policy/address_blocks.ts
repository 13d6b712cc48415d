/** Blocks of IP addresses, such as `10.0.0.0/8`; one address is a block of its own. */
import { parseAddress } from "../plan/permissions/ip_address.ts";

/** A block: the addresses whose first `bits` bits equal those of `start`. */
export interface AddressBlock {
  /** 4 or 16 bytes. */
  readonly start: readonly number[];
  readonly bits: number;
}

/** Returns the block of an address or of CIDR notation; null for other text. */
export function parseBlock(text: string): AddressBlock | null {
  const slash = text.indexOf("/");
  const start = parseAddress(slash === -1 ? text : text.slice(0, slash));
  if (!start) return null;
  const size = slash === -1 ? String(8 * start.length) : text.slice(slash + 1);
  if (!/^(0|[1-9][0-9]{0,2})$/.test(size) || Number(size) > 8 * start.length) return null;
  return { start, bits: Number(size) };
}

/** Returns whether a block contains an address of 4 or 16 bytes. */
export function inBlock(bytes: readonly number[], { start, bits }: AddressBlock): boolean {
  if (start.length !== bytes.length) return false;
  for (let bit = 0; bit < bits; bit += 8) {
    const mask = bits - bit >= 8 ? 0xff : (0xff << (8 - (bits - bit))) & 0xff;
    if (((bytes[bit / 8] ?? 0) & mask) !== ((start[bit / 8] ?? 0) & mask)) return false;
  }
  return true;
}
