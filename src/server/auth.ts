/**
 * Host check against DNS rebinding and cross-site requests, and authentication by API key. See
 * src/docs/security.md#over-http.
 */
import { type KeyRing, LOCAL_NAMESPACE } from "../policy/api_keys.ts";
import type { Caller } from "../runs/types.ts";
import { PreampError } from "../sdk/errors.ts";
import { quoteTruncated } from "../text/escape.ts";
import type { Cors } from "./cors.ts";

/**
 * Returns the caller of a key, or null. Called for every request, with an empty string when the request has
 * no key. Must compare in constant time and must not throw.
 */
export type Authenticate = (key: string) => Caller | null;

/** Host names of the server besides those of loopback; `any` behind a proxy or on Deno Deploy. */
export type Hosts = readonly string[] | "any";

/**
 * The caller when keys are not checked. The generated local key has the same namespace, so both see the same
 * runs.
 */
export const ANONYMOUS: Caller = { name: "anonymous", namespace: LOCAL_NAMESPACE, origin: "caller" };

/** Creates an {@link Authenticate} function from a key ring. */
export function authenticateWith(keys: Pick<KeyRing, "find">): Authenticate {
  return (key) => {
    const holder = keys.find(key);
    return holder ? { ...holder, name: `key:${holder.name}`, origin: "caller" } : null;
  };
}

/**
 * Matches the URL that Deno assigns to an HTTP/1.1 request without `Host`. HTTP/2 requests have no such
 * header either, but their URL contains the requested host name.
 */
const HOSTLESS = /^http:\/\/localhost[:/]/;

const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];

/**
 * Creates a check of `Host` and `Origin`. A rebound DNS name arrives in `Host`; a cross-site request of a
 * browser arrives with a foreign `Origin`. Ports are not compared. With `any`, `Origin` must equal `Host`.
 * Origins in `cors` are always allowed.
 *
 * The check throws `request_invalid` when a connection's request has no `Host`, and `forbidden` for a foreign
 * name.
 */
export function createHostCheck(
  hosts: Hosts,
  cors: Pick<Cors, "allows"> | null = null,
): (request: Request, overConnection: boolean) => void {
  const allowed = hosts === "any" ? null : new Set([...LOOPBACK, ...hosts.map(normaliseHost)]);

  return function checkHost(request, overConnection) {
    const header = request.headers.get("host");
    const origin = request.headers.get("origin");
    if (header === null && overConnection && HOSTLESS.test(request.url)) {
      throw new PreampError(
        "request_invalid",
        "Cannot answer the request: it must name its host: received no Host header",
      );
    }
    if (header === null && origin === null && !allowed) return;
    const host = header ?? new URL(request.url).host;
    if (allowed && !allowed.has(nameOf(host))) throw foreign("Host", host);
    if (origin === null || cors?.allows(origin)) return;
    const originHost = hostOfOrigin(origin);
    const known = originHost !== null &&
      (allowed ? allowed.has(nameOf(originHost)) : originHost === host.toLowerCase());
    if (!known) throw foreign("Origin", origin);
  };
}

function foreign(header: string, value: string): PreampError {
  return new PreampError(
    "forbidden",
    `Cannot answer the request: ${header} must be a name of this server: received ${quoteTruncated(value)}`,
  );
}

/** Returns a host name in lower case, with IPv6 in brackets, without port and trailing dot. */
function normaliseHost(host: string): string {
  return host.includes(":") && !host.startsWith("[") && host.indexOf(":") !== host.lastIndexOf(":")
    ? `[${host.toLowerCase()}]`
    : nameOf(host);
}

function nameOf(host: string): string {
  const end = host.startsWith("[") ? host.indexOf("]") + 1 : host.indexOf(":");
  const name = (end > 0 ? host.slice(0, end) : host).toLowerCase();
  return name.endsWith(".") ? name.slice(0, -1) : name;
}

function hostOfOrigin(origin: string): string | null {
  try {
    return new URL(origin).host || null;
  } catch {
    return null; // "null" (a sandboxed page, a file) or not a URL: foreign
  }
}

/**
 * Returns the caller of a request.
 *
 * @throws {PreampError} `unauthorized`, with the same message for a missing, a malformed and an unknown key.
 */
export function authorise(request: Request, authenticate: Authenticate | null): Caller {
  if (authenticate === null) return ANONYMOUS;
  const key = bearerKey(request.headers.get("authorization"));
  const caller = authenticate(key);
  if (caller !== null && key !== "") return caller;
  throw new PreampError(
    "unauthorized",
    "Missing or unknown API key: send `Authorization: Bearer <key>`",
  );
}

/** Returns the key of a Bearer header (RFC 6750 §2.1; the scheme is case-insensitive), or an empty string. */
function bearerKey(header: string | null): string {
  if (header === null || header.slice(0, 7).toLowerCase() !== "bearer ") return "";
  return header.slice(7).trim();
}
