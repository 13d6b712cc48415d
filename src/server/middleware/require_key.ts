/** Authentication by API key: see src/docs/security.md#over-http. */
import { type KeyRing, LOCAL_NAMESPACE } from "../../policy/api_keys.ts";
import type { Caller } from "../../runs/types.ts";
import { PreampError } from "../../sdk/errors.ts";
import type { Middleware } from "../context.ts";

/**
 * Returns the caller of a key, or null. Called for every request, with an empty string when the request has
 * no key. Must compare in constant time and must not throw.
 */
export type Authenticate = (key: string) => Caller | null;

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
 * Sets the caller of a request; anonymous when keys are not checked (null). Throws `unauthorized`, with the
 * same message for a missing, a malformed and an unknown key.
 */
export function requireKey(authenticate: Authenticate | null): Middleware {
  return ({ env }, next) => {
    env.caller = authenticate === null ? ANONYMOUS : callerOf(env.request.headers, authenticate);
    return next();
  };
}

function callerOf(headers: Headers, authenticate: Authenticate): Caller {
  const key = bearerKey(headers.get("authorization"));
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
