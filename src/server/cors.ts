/**
 * CORS: requests of web pages from other origins (Fetch standard). Browser credentials are never allowed,
 * since a page sends its key itself. `*` is not supported, because any page could then use a server without
 * keys.
 */
import { originIn } from "../policy/rules.ts";

/** CORS rules for a list of origins. */
export interface Cors {
  /** Returns true if the origin is allowed. */
  allows(origin: string): boolean;
  /** Returns the response to a preflight request of an allowed origin; undefined for any other request. */
  preflight(request: Request): Response | undefined;
  /** Adds the headers that let a page of an allowed origin read the response. */
  expose(request: Request, headers: Headers): void;
}

/** Seconds that a browser caches the response to a preflight. */
const MAX_AGE_S = 600;
const ALLOWED_METHODS = "GET, HEAD, POST, DELETE";
const ALLOWED_HEADERS = "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, Prefer";
const EXPOSED_HEADERS =
  "Location, Preamp-Request-Id, Preamp-Run-Id, Preamp-Run-Status, Preference-Applied, Retry-After";

/**
 * Creates the rules for a list of origins; returns null for an empty list.
 *
 * @throws {TypeError} if an item is not an origin, such as `https://app.example.com`.
 */
export function createCors(origins: readonly string[]): Cors | null {
  for (const origin of origins) {
    if (originIn(origin) === origin) continue;
    throw new TypeError(
      `Cannot allow the origin ${
        JSON.stringify(origin)
      }: write scheme, host and port, as in "https://app.example.com"`,
    );
  }
  if (origins.length === 0) return null;
  const allowed = new Set(origins);

  function originOf(request: Request): string | null {
    const origin = request.headers.get("origin");
    return origin !== null && allowed.has(origin) ? origin : null;
  }

  return {
    allows: (origin) => allowed.has(origin),
    preflight(request) {
      if (request.method !== "OPTIONS" || !request.headers.has("access-control-request-method")) {
        return undefined;
      }
      if (originOf(request) === null) return undefined;
      return new Response(null, {
        status: 204,
        headers: {
          "access-control-allow-methods": ALLOWED_METHODS,
          "access-control-allow-headers": ALLOWED_HEADERS,
          "access-control-max-age": String(MAX_AGE_S),
        },
      });
    },
    expose(request, headers) {
      headers.append("vary", "Origin");
      const origin = originOf(request);
      if (origin === null) return;
      headers.set("access-control-allow-origin", origin);
      headers.set("access-control-expose-headers", EXPOSED_HEADERS);
    },
  };
}
