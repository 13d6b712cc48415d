/** Failures of model calls: what is told of them, and which may be tried again (behaviour.md §4.8; threats.md, the retry rule). */
import { errorCode, errorMessage, errorName, toLLMError } from "../errors.ts";
import { isObject, type JsonObject } from "../json.ts";
import type { Provider } from "../providers.ts";

/** Codes with which a guard stops a call: no failure of the provider's. */
const STOPS: ReadonlySet<string | undefined> = new Set(["limit_reached", "denied", "cancelled"]);

/** Statuses that mean the same request would fail again, whatever the error says of itself. */
const NEVER_AGAIN: ReadonlySet<unknown> = new Set([400, 401, 402, 403, 404, 413, 422]);

/** Returns the data of `provider:error`, or null when a guard stopped the call and the provider did not fail. */
export function providerFailure(name: string, error: unknown): JsonObject | null {
  if (STOPS.has(errorCode(error))) return null;
  const fields = isObject(error) ? error : {};
  return {
    provider: name,
    error: { type: errorName(error), msg: errorMessage(error) },
    retryable: typeof fields.retryable === "boolean" ? fields.retryable : false,
    status_code: typeof fields.status_code === "number" ? fields.status_code : null,
  };
}

/** Returns whether a call that failed so may be made again, here or at another provider. */
export function isPassing(error: unknown): boolean {
  if (STOPS.has(errorCode(error))) return false;
  const { retryable, status_code } = toLLMError(error);
  return retryable && !NEVER_AGAIN.has(status_code);
}

/** Returns whether a stream broke: such a call is made once more at most. */
export function isBrokenStream(error: unknown): boolean {
  return errorName(error) === "StreamError";
}

/** Returns whether a provider tries again by itself: it says so with the capability `retries`. */
export function retriesItself(provider: Provider): boolean {
  return capabilitiesOf(provider).includes("retries");
}

/** Returns what a provider says it can do; nothing when it says nothing. */
export function capabilitiesOf(provider: Provider): readonly string[] {
  const told = provider.getInfo?.().capabilities;
  return Array.isArray(told) ? told : [];
}
