/** Host check against DNS rebinding and cross-site requests: see src/docs/security.md#over-http. */
import { PreampError } from "../../sdk/errors.ts";
import { quoteTruncated } from "../../text/escape.ts";
import type { Middleware } from "../context.ts";
import { hostOf } from "../net/forwarded.ts";

/** Host names of the server besides those of loopback; `any` behind a proxy or on Deno Deploy. */
export type Hosts = readonly string[] | "any";

/**
 * Matches the URL that Deno assigns to an HTTP/1.1 request without `Host`. HTTP/2 requests have no such
 * header either, but their URL contains the requested host name.
 */
const HOSTLESS = /^http:\/\/localhost[:/]/;

const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];

/**
 * Returns whether a request must be the last one of its connection: others may see another end of its body,
 * or another host. Deno 2.9 refuses two lengths and two `Host` lines itself. Deno 2.6 joins the hosts, and
 * hides a `Content-Length` that follows `Transfer-Encoding`.
 */
export function endsConnectionOf({ headers }: Pick<Request, "headers">): boolean {
  return headers.has("transfer-encoding") || headers.get("host")?.includes(",") === true;
}

/**
 * Checks `Host` and `Origin`. A rebound DNS name arrives in `Host`; a cross-site request of a browser arrives
 * with a foreign `Origin`. Ports are not compared. With `any`, `Origin` must equal `Host`. The listed origins
 * are always allowed.
 *
 * Throws `request_invalid` when a connection's request has no `Host`, two of them, one that is not a host
 * with an optional port, or two lengths, and `forbidden` for a foreign name.
 */
export function checkHost(hosts: Hosts, origins: readonly string[]): Middleware {
  const allowed = hosts === "any" ? null : new Set([...LOOPBACK, ...hosts.map(normaliseHost)]);
  const allowed_origins = new Set(origins);

  return ({ env: { request: { headers, url }, over_connection, client } }, next) => {
    const header = headers.get("host");
    const origin = headers.get("origin");
    if (header?.includes(",") || headers.has("transfer-encoding") && headers.has("content-length")) {
      const fact = header?.includes(",") ? "two Host lines" : "both Content-Length and Transfer-Encoding";
      throw new PreampError("request_invalid", `Cannot answer the request: it has ${fact}`);
    }
    if (header === null && over_connection && HOSTLESS.test(url)) {
      throw new PreampError(
        "request_invalid",
        "Cannot answer the request: it must name its host: received no Host header",
      );
    }
    const received = header ?? URL.parse(url)?.host ?? "";
    if (hostOf(received) === null) { // it is a part of the URL: `a/b` would begin the path
      const fact = `Host must be a host with an optional port: received ${quoteTruncated(received)}`;
      throw new PreampError("request_invalid", `Cannot answer the request: ${fact}`);
    }
    const host = client.host ?? received;
    // A page behind a rebound name may send a forwarded host through a trusted proxy, but not another Host.
    if (allowed && !allowed.has(nameOf(received))) throw foreign("Host", received);
    if (allowed && !allowed.has(nameOf(host))) throw foreign("The forwarded host", host);
    if (origin === null || allowed_origins.has(origin)) return next();
    const originHost = URL.parse(origin)?.host || null; // null for a sandboxed page and a file: foreign
    const known = originHost !== null &&
      (allowed ? allowed.has(nameOf(originHost)) : originHost === host.toLowerCase());
    if (!known) throw foreignOrigin(origin, host);
    return next();
  };
}

function foreignOrigin(origin: string, host: string): PreampError {
  return new PreampError(
    "forbidden",
    `Cannot answer the request: Origin must be that of this server, or one of cors.origins: received ${
      quoteTruncated(origin)
    } for the Host ${
      quoteTruncated(host)
    }; a reverse proxy must pass Host on, or X-Forwarded-Host as a listed proxy`,
  );
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
