/** Classifies failures of model calls: their event data, and whether they are retried. */
import { errorCode, errorMessage, errorName } from "../errors.ts";
import { toLLMError } from "../llm_errors.ts";
import { isObject, type JsonObject } from "../json.ts";
import type { Provider } from "../providers.ts";

/** Error codes with which a guard stops a call; the provider did not fail. */
const STOPS: ReadonlySet<string | undefined> = new Set(["limit_reached", "denied", "cancelled"]);

/** HTTP statuses after which the same request would fail again, even if the error says otherwise. */
const NEVER_AGAIN: ReadonlySet<unknown> = new Set([400, 401, 402, 403, 404, 413, 422]);

/** Returns the data of `provider:error`, or null when a guard stopped the call. */
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

/** Returns whether a call that failed with this error may be repeated, with the same or another provider. */
export function isPassing(error: unknown): boolean {
  if (STOPS.has(errorCode(error))) return false;
  const { retryable, status_code } = toLLMError(error);
  return retryable && !NEVER_AGAIN.has(status_code);
}

/** Returns whether a stream broke; such a call is repeated at most once. */
export function isBrokenStream(error: unknown): boolean {
  return errorName(error) === "StreamError";
}

/** Returns whether a provider retries itself, which it states with the capability `retries`. */
export function retriesItself(provider: Provider): boolean {
  return capabilitiesOf(provider).includes("retries");
}

/** Returns the capabilities of a provider; an empty list when it states none. */
export function capabilitiesOf(provider: Provider): readonly string[] {
  const capabilities = provider.getInfo?.().capabilities;
  return Array.isArray(capabilities) ? capabilities : [];
}
