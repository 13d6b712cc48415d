/**
 * A certificate authority and a server's certificate, created for each test run: X.509 in DER by hand (RFC
 * 5280).
 */
import { Buffer } from "node:buffer";

/** PEM texts. */
export interface TestCertificate {
  /** The authority, to be trusted. */
  ca: string;
  cert: string;
  key: string;
}

const CURVE = { name: "ECDSA", namedCurve: "P-256" };
const ECDSA_WITH_SHA256 = sequence(oid("1.2.840.10045.4.3.2"));

/** Resolves to a certificate for an IPv4 address, signed by an authority of its own. */
export async function makeCertificate(address: string): Promise<TestCertificate> {
  const authority = await crypto.subtle.generateKey(CURVE, true, ["sign", "verify"]);
  const server = await crypto.subtle.generateKey(CURVE, true, ["sign", "verify"]);
  const isAuthority = extension("2.5.29.19", sequence(der(0x01, Uint8Array.of(0xff))));
  const names = extension("2.5.29.17", sequence(der(0x87, Uint8Array.from(address.split(".").map(Number)))));
  const ca = await certificate(
    "Preamp test authority",
    1,
    authority.publicKey,
    authority.privateKey,
    isAuthority,
  );
  const cert = await certificate("Preamp test server", 2, server.publicKey, authority.privateKey, names);
  const key = new Uint8Array(await crypto.subtle.exportKey("pkcs8", server.privateKey));
  return { ca: pem("CERTIFICATE", ca), cert: pem("CERTIFICATE", cert), key: pem("PRIVATE KEY", key) };
}

async function certificate(
  subject: string,
  serial: number,
  key: CryptoKey,
  signer: CryptoKey,
  extensionBytes: Uint8Array,
): Promise<Uint8Array> {
  const spki = new Uint8Array(await crypto.subtle.exportKey("spki", key));
  const year = new Date().getUTCFullYear();
  const body = sequence(
    der(0xa0, der(0x02, Uint8Array.of(2))),
    der(0x02, Uint8Array.of(serial)),
    ECDSA_WITH_SHA256,
    nameOf("Preamp test authority"),
    sequence(time(year - 1), time(year + 2)),
    nameOf(subject),
    spki,
    der(0xa3, sequence(extensionBytes)),
  );
  const algorithm = { name: "ECDSA", hash: "SHA-256" };
  const raw = new Uint8Array(await crypto.subtle.sign(algorithm, signer, new Uint8Array(body)));
  const signature = sequence(integer(raw.subarray(0, 32)), integer(raw.subarray(32)));
  return sequence(body, ECDSA_WITH_SHA256, der(0x03, join([Uint8Array.of(0), signature])));
}

function extension(id: string, value: Uint8Array): Uint8Array {
  return sequence(oid(id), der(0x01, Uint8Array.of(0xff)), der(0x04, value));
}

function nameOf(text: string): Uint8Array {
  return sequence(der(0x31, sequence(oid("2.5.4.3"), der(0x0c, new TextEncoder().encode(text)))));
}

function time(year: number): Uint8Array {
  return der(0x18, new TextEncoder().encode(`${year}0101000000Z`));
}

function integer(bytes: Uint8Array): Uint8Array {
  let start = 0;
  while (start < bytes.length - 1 && bytes[start] === 0) start++;
  const value = bytes.subarray(start);
  return der(0x02, value[0]! >= 0x80 ? join([Uint8Array.of(0), value]) : value);
}

function oid(text: string): Uint8Array {
  const [first = 0, second = 0, ...rest] = text.split(".").map(Number);
  const bytes = [first * 40 + second];
  for (const number of rest) {
    const digits = [number & 0x7f];
    for (let left = number >> 7; left > 0; left >>= 7) digits.unshift((left & 0x7f) | 0x80);
    bytes.push(...digits);
  }
  return der(0x06, Uint8Array.from(bytes));
}

function sequence(...parts: Uint8Array[]): Uint8Array {
  return der(0x30, join(parts));
}

function der(tag: number, value: Uint8Array): Uint8Array {
  const { length } = value;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return join([Uint8Array.of(tag, ...size), value]);
}

function join(parts: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(parts));
}

function pem(label: string, bytes: Uint8Array): string {
  const lines = Buffer.from(bytes).toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
}
