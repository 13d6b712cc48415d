/**
 * Entries of `net` and `import`: their meaning to Deno, and the intersection of two. Measured with Deno
 * 2.6.8 and 2.9.6: a host without a port means every port. `*.example.com` means `example.com` and every
 * name below it at any depth. `10.0.0.0/8` is an IPv4 network. IPv6 is in brackets and has no networks. The
 * same entries are valid in flags and for workers.
 */
import {
  type AddressBlock,
  addressText,
  inBlock,
  parseAddress,
  parseBlock,
  unmapped,
} from "../../sdk/http/ip_address.ts";

/** A host and a port; without a port, every port. */
export interface NetEntry {
  kind: "net";
  host: NetHost;
  port: number | undefined;
}

/** A name, a name with all names below it, or a block of addresses. */
export type NetHost = { kind: "name" | "below"; name: string } | { kind: "network"; block: AddressBlock };

/** Reason why Deno rejects or misreads an entry. */
export interface EntryProblem {
  /** Requirement that the entry violates, for "must be …" messages. */
  must: string;
  hint: string;
}

const FORM: EntryProblem = {
  must: "host or host:port",
  hint: 'write a name, "*." and a name, an address, or a network such as "10.0.0.0/8"',
};

/** Parses an entry, or returns the problem with it. */
export function parseNetEntry(text: string): NetEntry | EntryProblem {
  if (text.includes("://")) {
    return { must: FORM.must, hint: URL.canParse(text) ? `write "${new URL(text).host}"` : FORM.hint };
  }
  const { hostText, portText } = splitPort(text);
  const port = portText === undefined ? undefined : parsePort(portText);
  if (portText !== undefined && port === undefined) return FORM;
  const host = parseHost(hostText);
  return "must" in host ? host : { kind: "net", host, port };
}

/** Splits host and port. A `]` or a single colon ends the host; IPv6 without brackets is invalid in Deno. */
function splitPort(text: string): { hostText: string; portText: string | undefined } {
  const colon = text.lastIndexOf(":");
  const ends = text.startsWith("[") ? text[colon - 1] === "]" : colon !== -1 && text.indexOf(":") === colon;
  return ends
    ? { hostText: text.slice(0, colon), portText: text.slice(colon + 1) }
    : { hostText: text, portText: undefined };
}

function parsePort(text: string): number | undefined {
  if (!/^[0-9]{1,5}$/.test(text)) return undefined;
  const port = Number(text);
  return port <= 65_535 ? port : undefined;
}

function parseHost(text: string): NetHost | EntryProblem {
  if (text.includes("[") || text.includes("]") || text.includes(":")) return parseBracketed(text);
  const block = parseBlock(text);
  if (block?.start.length === 4) return { kind: "network", block };
  if (text.includes("/")) return { must: 'a network of IPv4, such as "10.0.0.0/8"', hint: FORM.hint };
  const below = text.startsWith("*.");
  const name = parseName(below ? text.slice(2) : text);
  return typeof name === "string" ? { kind: below ? "below" : "name", name } : name;
}

function parseBracketed(text: string): NetHost | EntryProblem {
  const bytes = text.includes("/") ? undefined : parseAddress(text);
  const bracketed = text.startsWith("[") && text.endsWith("]") && !text.includes("%");
  if (bytes?.length === 16 && bracketed) {
    // Deno 2.9 treats ::ffff:a.b.c.d as a.b.c.d, too; 2.6 does not
    const start = unmapped(bytes);
    return { kind: "network", block: { start, bits: 8 * start.length } };
  }
  const must = "an IPv6 address in brackets, without network or zone";
  return {
    must,
    hint: bytes?.length === 16 ? `write "${addressText(bytes)}"` : 'write one such as "[::1]:80"',
  };
}

/**
 * Parses a name: lower case, without the final dot, of letters, digits, `-` and `_` only, as in Deno.
 * Refuses a name that ends in a number: it is a name to Deno and an address to `fetch` (WHATWG URL §3.5).
 */
function parseName(text: string): string | EntryProblem {
  const name = (text.endsWith(".") ? text.slice(0, -1) : text).toLowerCase();
  const labels = name.split(".");
  if (name.length > 253 || !labels.every((label) => /^[a-z0-9_-]{1,63}$/.test(label))) {
    const host = /[^ -~]/.test(name) && URL.canParse(`http://${name}/`)
      ? new URL(`http://${name}/`).host
      : "";
    if (host !== "") return { must: "a name in ASCII", hint: `write "${host}"` };
    return text === "*" ? { must: FORM.must, hint: "write true for every host" } : FORM;
  }
  const last = labels.at(-1) ?? "";
  if (/^([0-9]+|0x[0-9a-f]*)$/.test(last)) {
    return { must: "a name, or an address with its four numbers", hint: FORM.hint };
  }
  return name;
}

/** Returns the intersection of two entries, or undefined if it is empty. */
export function meetNet(a: NetEntry, b: NetEntry): NetEntry | undefined {
  if (a.port !== undefined && b.port !== undefined && a.port !== b.port) return undefined;
  const host = meetHosts(a.host, b.host);
  return host && { kind: "net", host, port: a.port ?? b.port };
}

function meetHosts(a: NetHost, b: NetHost): NetHost | undefined {
  if (holdsHost(a, b)) return b;
  return holdsHost(b, a) ? a : undefined;
}

function holdsHost(broad: NetHost, narrow: NetHost): boolean {
  if (broad.kind === "network" || narrow.kind === "network") {
    return broad.kind === "network" && narrow.kind === "network" &&
      broad.block.bits <= narrow.block.bits && inBlock(narrow.block.start, broad.block);
  }
  if (broad.kind === "name") return narrow.kind === "name" && narrow.name === broad.name;
  return narrow.name === broad.name || narrow.name.endsWith(`.${broad.name}`);
}

/** Returns an entry as text for Deno. */
export function netText({ host, port }: NetEntry): string {
  return `${hostText(host)}${port === undefined ? "" : `:${port}`}`;
}

function hostText(host: NetHost): string {
  if (host.kind !== "network") return host.kind === "below" ? `*.${host.name}` : host.name;
  const { start, bits } = host.block;
  return `${addressText(start)}${bits === 8 * start.length ? "" : `/${bits}`}`;
}
