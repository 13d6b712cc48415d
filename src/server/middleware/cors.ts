/**
 * CORS: requests of web pages from other origins (Fetch standard). Browser credentials are never allowed,
 * since a page sends its key itself. `*` is not supported, because any page could then use a server without
 * keys.
 */
import { cors } from "hono/cors";
import { originIn } from "../../policy/rules.ts";
import type { Middleware } from "../context.ts";

const HEADERS = {
  allowMethods: ["GET", "HEAD", "POST", "DELETE"],
  allowHeaders: ["Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID", "Prefer"],
  exposeHeaders: [
    "Location",
    "Preamp-Request-Id",
    "Preamp-Run-Id",
    "Preamp-Run-Status",
    "Preference-Applied",
    "Retry-After",
  ],
  /** Seconds that a browser caches the response to a preflight. */
  maxAge: 600,
};

/**
 * Answers preflight requests of the origins and lets their pages read all responses, also problems. Other
 * origins get no CORS header; the host check refuses them.
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
  const share = cors({ origin: [...origins], ...HEADERS });

  return async (context, next) => {
    const { method, headers } = context.req.raw;
    const preflight = headers.has("access-control-request-method");
    if (allowed.has(headers.get("origin") ?? "") && (method !== "OPTIONS" || preflight)) {
      return await share(context, next);
    }
    await next();
    context.res.headers.append("vary", "Origin");
  };
}
