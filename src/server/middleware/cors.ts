/**
 * CORS: requests of web pages from other origins (Fetch standard). Browser credentials are never allowed,
 * since a page sends its key itself. `*` is not supported, because any page could then use a server without
 * keys.
 */
import { originIn } from "../../policy/setting_types.ts";
import type { Middleware } from "../context.ts";
import { respond } from "../respond.ts";

/** Headers of the answer to a preflight request. */
const PREFLIGHT = {
  "access-control-allow-methods": "GET,HEAD,POST,PUT,DELETE",
  "access-control-allow-headers": "Authorization,Content-Type,Idempotency-Key,Last-Event-ID,Prefer",
  "access-control-max-age": "600", // seconds
  vary: "Origin, Access-Control-Request-Headers",
} as const;

const EXPOSED = "Location,Preamp-Request-Id,Preamp-Run-Id,Preamp-Run-Status,Preference-Applied,Retry-After";

/**
 * Answers preflight requests of the origins and lets their pages read all answers, also problems. Other
 * origins get no such header; the host check refuses them.
 *
 * @throws {TypeError} if an item is not an origin, such as `https://app.example.com`.
 */
export function allowOrigins(origins: readonly string[]): Middleware {
  for (const origin of origins) {
    if (originIn(origin) === origin) continue;
    throw new TypeError(
      `Cannot allow the origin ${
        JSON.stringify(origin)
      }: write scheme, host and port, as in "https://app.example.com"`,
    );
  }
  const allowed = new Set(origins);

  return async (c, next) => {
    const { method, headers } = c.env.request;
    const origin = headers.get("origin") ?? "";
    const is_allowed = allowed.has(origin);
    if (is_allowed && method === "OPTIONS" && headers.has("access-control-request-method")) {
      c.res = respond(c, { status: 204, headers: { ...PREFLIGHT }, body: null });
    } else {
      await next();
      c.res.headers.append("vary", "Origin");
    }
    if (!is_allowed) return;
    c.res.headers.set("access-control-allow-origin", origin);
    c.res.headers.set("access-control-expose-headers", EXPOSED);
  };
}
