/**
 * CORS: requests of web pages from other origins (Fetch standard). Browser credentials are never allowed,
 * since a page sends its key itself. `*` is not supported, because any page could then use a server without
 * keys.
 */
import { originIn } from "../../policy/rules.ts";
import { addVary, type Answer } from "../answers.ts";
import type { RequestContext } from "../context.ts";

/** Headers of the answer to a preflight request. */
const PREFLIGHT = {
  "access-control-allow-methods": "GET,HEAD,POST,DELETE",
  "access-control-allow-headers": "Authorization,Content-Type,Idempotency-Key,Last-Event-ID,Prefer",
  "access-control-max-age": "600", // seconds
  vary: "Access-Control-Request-Headers",
} as const;

const EXPOSED = "Location,Preamp-Request-Id,Preamp-Run-Id,Preamp-Run-Status,Preference-Applied,Retry-After";

/** Lets pages of some origins send requests and read responses. */
export class SharedOrigins {
  readonly #origins: ReadonlySet<string>;

  /** @throws {TypeError} if an item is not an origin, such as `https://app.example.com`. */
  constructor(origins: readonly string[]) {
    for (const origin of origins) {
      if (originIn(origin) === origin) continue;
      throw new TypeError(
        `Cannot allow the origin ${
          JSON.stringify(origin)
        }: write scheme, host and port, as in "https://app.example.com"`,
      );
    }
    this.#origins = new Set(origins);
  }

  /** Returns the answer to a preflight request of an allowed origin; null for any other request. */
  preflight({ method, request: { headers } }: RequestContext): Answer | null {
    if (method !== "OPTIONS" || !headers.has("access-control-request-method")) return null;
    if (!this.#origins.has(headers.get("origin") ?? "")) return null;
    return { status: 204, headers: { ...PREFLIGHT }, body: null };
  }

  /**
   * Adds the headers that let a page of an allowed origin read an answer, also a problem. Other origins get none; the host
   * check refuses them.
   */
  addHeaders({ request }: RequestContext, { headers }: Answer): void {
    addVary(headers, "Origin");
    const origin = request.headers.get("origin");
    if (origin === null || !this.#origins.has(origin)) return;
    headers["access-control-allow-origin"] = origin;
    headers["access-control-expose-headers"] = EXPOSED;
  }
}
