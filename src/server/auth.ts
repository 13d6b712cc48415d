/** Who may talk to the server: the names it answers to (DNS rebinding, CSRF; trust.md) and the keys it knows. */
import { type KeyRing, LOCAL_NAMESPACE } from "../policy/api_keys.ts";
import type { Caller } from "../runs/types.ts";
import { PreampError } from "../sdk/errors.ts";
import type { Cors } from "./cors.ts";

/**
 * Returns the caller of a key, or null. Compares in constant time whatever it is given, the empty string too: it is asked
 * for every request, also for one without a key. Must not throw.
 */
export type Authenticate = (key: string) => Caller | null;

/** Names the server is reached by, beside those of loopback; `any` where the address is not ours (Deno Deploy, a proxy). */
export type Hosts = readonly string[] | "any";

/** Who asks when no keys are used; what it makes is still there when a key is generated at the next start. */
export const ANONYMOUS: Caller = { name: "anonymous", namespace: LOCAL_NAMESPACE, origin: "caller" };

/** Returns the {@link Authenticate} of a ring of keys. */
export function authenticateWith(keys: Pick<KeyRing, "find">): Authenticate {
  return (key) => {
    const holder = keys.find(key);
    return holder ? { ...holder, name: `key:${holder.name}`, origin: "caller" } : null;
  };
}

/**
 * Matches the URL that Deno gives a request of HTTP/1.1 without `Host`. HTTP/2 has no such header either: there the URL has the
 * name that the client asked for.
 */
const HOSTLESS = /^http:\/\/localhost[:/]/;

const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];

/**
 * Returns a check of `Host` and `Origin`. A browser on a foreign page sends that page's name in one or the other: a rebound
 * name in `Host`, a cross-site request in `Origin`. Ports are not compared: no browser lets a page choose another name's port.
 * With `any`, only a request whose `Origin` is not its own `Host` is foreign. Origins that `cors` allows are not foreign.
 *
 * The check throws `request_invalid` for a missing `Host` that came over a connection, `forbidden` for a foreign name.
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
    `Cannot answer the request: ${header} must be a name of this server: received ${
      JSON.stringify(value.slice(0, 200))
    }`,
  );
}

/** Returns a host name as {@link nameOf} gives it: lower case, IPv6 in brackets, no port, no trailing dot. */
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
    return null; // "null" (a sandboxed page, a file) and garbage are foreign
  }
}

/**
 * Returns the caller of a request.
 *
 * @throws {PreampError} `unauthorized`, with the same words for a missing, a malformed and an unknown key (threats.md T22).
 */
export function authorise(request: Request, authenticate: Authenticate | null): Caller {
  if (authenticate === null) return ANONYMOUS;
  const key = bearerKey(request.headers.get("authorization"));
  const caller = authenticate(key);
  if (caller !== null && key !== "") return caller;
  throw new PreampError(
    "unauthorized",
    'Cannot answer the request: it must carry a key of this server as "Authorization: Bearer KEY": received none that is known',
  );
}

/** Returns the key of a Bearer header (RFC 6750 §2.1; the scheme in any case), or the empty string. */
function bearerKey(header: string | null): string {
  if (header === null || header.slice(0, 7).toLowerCase() !== "bearer ") return "";
  return header.slice(7).trim();
}
