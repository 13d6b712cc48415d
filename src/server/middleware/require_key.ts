/** Authentication by API key: see src/docs/security.md#over-http. */
import { type KeyRing, LOCAL_NAMESPACE } from "../../policy/api_keys.ts";
import type { Caller } from "../../runs/types.ts";
import { unless } from "../../sdk/abortable.ts";
import { PreampError } from "../../sdk/errors.ts";
import { isObject, isThenable } from "../../sdk/json.ts";
import { describeKind } from "../../sdk/value_path.ts";
import type { SystemClock } from "../../process/system_clock.ts";
import type { Middleware } from "../context.ts";

/**
 * Returns the caller of a key, or null, or a promise of either. Called for every request, with an empty
 * string when the request has no key. Must compare in constant time. If it throws, returns anything else, or
 * takes more than 10 s, the request fails with `internal`.
 */
export type Authenticate = (key: string) => Caller | null | Promise<Caller | null>;

/** Milliseconds that {@link Authenticate} may take. */
const AUTHENTICATE_MS = 10_000;

/**
 * The caller when keys are not checked. The generated local key has the same namespace, so both see the same
 * runs.
 */
export const ANONYMOUS: Caller = { name: "anonymous", namespace: LOCAL_NAMESPACE, origin: "caller" };

/** Creates an {@link Authenticate} function from a key ring. */
export function authenticateWith(keys: Pick<KeyRing, "find">): (key: string) => Caller | null {
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
    if (authenticate === null) {
      env.caller = ANONYMOUS;
      return next();
    }
    const key = bearerKey(env.request.headers.get("authorization"));
    const found: unknown = authenticate(key);
    const admit = (caller: unknown) => {
      env.caller = callerOf(key, caller);
      return next();
    };
    return isThenable(found) ? inTime(found, env.server.clock).then(admit) : admit(found);
  };
}

/** Settles as what was found does; rejects when that takes too long. */
function inTime(found: PromiseLike<unknown>, clock: Pick<SystemClock, "later">): Promise<unknown> {
  const message = `authenticate() has not answered within ${AUTHENTICATE_MS / 1000} s`;
  return unless(found, (reject) => clock.later(AUTHENTICATE_MS, () => reject(new Error(message))));
}

/**
 * Returns the caller that was found for a key.
 * @throws {PreampError} `unauthorized` without a caller or a key.
 * @throws {TypeError} if it is not a caller.
 */
function callerOf(key: string, found: unknown): Caller {
  if (found === null || found === undefined || key === "") {
    throw new PreampError(
      "unauthorized",
      "Missing or unknown API key: send `Authorization: Bearer <key>`",
    );
  }
  if (isCaller(found)) return found;
  throw new TypeError(
    `Cannot use what authenticate() returned: must be {name, namespace, origin: "caller" or "operator"} or null: received ${
      isObject(found) ? `an object with ${Object.keys(found).join(", ") || "no keys"}` : describeKind(found)
    }`,
  );
}

/** Returns whether a value is a caller; without these fields its rights would be undefined. */
function isCaller(value: unknown): value is Caller {
  if (!isObject(value)) return false;
  const { name, namespace, origin, policy, owner } = value;
  if (owner !== undefined && typeof owner !== "boolean") return false;
  return typeof name === "string" && name !== "" && typeof namespace === "string" && namespace !== "" &&
    (origin === "caller" || origin === "operator") && (policy === undefined || typeof policy === "string");
}

/** Returns the key of a Bearer header (RFC 6750 §2.1; the scheme is case-insensitive), or an empty string. */
function bearerKey(header: string | null): string {
  if (header === null || header.slice(0, 7).toLowerCase() !== "bearer ") return "";
  return header.slice(7).trim();
}
