/** Classifies failures of model calls: their event data, and whether they are retried. */
import { errorCode, errorMessage, errorName, hasCode, PreampError } from "../errors.ts";
import { overflowOf, toLLMError, usageOfFailure } from "../llm_errors.ts";
import { isObject, type JsonObject } from "../json.ts";
import type { ChatRequest } from "../messages.ts";
import type { Provider } from "../providers.ts";
import { requestTokens, toolTokens } from "../token_estimate.ts";

/** Error codes with which a guard stops a call; the provider did not fail. */
const STOPS: ReadonlySet<string | undefined> = new Set(["limit_reached", "denied", "cancelled"]);

/** HTTP statuses after which the same request would fail again, even if the error says otherwise. */
const NEVER_AGAIN: ReadonlySet<unknown> = new Set([400, 401, 402, 403, 404, 413, 422]);

/** Returns the data of `provider:error`, or null when a guard stopped the call. */
export function providerFailure(name: string, error: unknown): JsonObject | null {
  if (STOPS.has(errorCode(error))) return null;
  const fields = isObject(error) ? error : {};
  const usage = usageOfFailure(error);
  return {
    provider: name,
    error: { type: errorName(error), msg: errorMessage(error) },
    retryable: fields.retryable === true,
    status_code: typeof fields.status_code === "number" ? fields.status_code : null,
    ...tokensOf(error),
    ...(usage ? { usage } : {}),
  };
}

/** Returns the fields of an error that a replay needs to fail in the same way. */
export function factsOf(error: unknown): JsonObject {
  if (!isObject(error)) return {};
  const { status_code, retry_after } = error;
  const delay_multiplier = error.delay_multiplier === 1 ? null : error.delay_multiplier;
  return { ...numbersOf({ status_code, retry_after, delay_multiplier }), ...tokensOf(error) };
}

/** Returns the numbers of a request that was too long; an empty object for any other failure. */
function tokensOf(error: unknown): JsonObject {
  const { limit_tokens, requested_tokens } = overflowOf(error) ?? {};
  return numbersOf({ limit_tokens, requested_tokens });
}

function numbersOf(fields: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => typeof value === "number"));
}

/** Returns whether a call that failed with this error may be repeated, with the same or another provider. */
export function isPassing(error: unknown): boolean {
  if (STOPS.has(errorCode(error)) || overflowOf(error)) return false;
  const { retryable, status_code } = toLLMError(error);
  return retryable && !NEVER_AGAIN.has(status_code);
}

/** Returns the error of a request that the provider refused as too long also after a compaction. */
export function overflowError(name: string, error: unknown, request: ChatRequest): PreampError {
  const { limit_tokens = null, requested_tokens = null } = overflowOf(error) ?? {};
  const size = requestTokens(request.messages) + toolTokens(request.tools);
  const counted = requested_tokens === null ? "" : `, counted as ${requested_tokens}`;
  const limit = limit_tokens === null ? "" : ` (it takes ${limit_tokens} tokens)`;
  return new PreampError(
    "context_overflow",
    `Cannot fit the request: provider "${name}" refused it twice as too long${limit}: received about ${size} tokens${counted}, after a compaction: ${
      errorMessage(error)
    }; shorten the system prompt or the prompt, offer fewer tools, or use a model with a larger window`,
    { cause: error, facts: { tokens: requested_tokens ?? size, budget: limit_tokens } },
  );
}

/** Adds what the provider said to the error of a view that cannot fit; returns any other error as it is. */
export function unfitError(error: unknown, refusal: unknown): unknown {
  if (!hasCode(error, "context_overflow")) return error;
  const message = `${errorMessage(error)}; the provider refused the whole request: ${errorMessage(refusal)}`;
  const { limit_tokens = null, requested_tokens = null } = overflowOf(refusal) ?? {};
  return new PreampError("context_overflow", message, {
    cause: error,
    facts: { tokens: requested_tokens, budget: limit_tokens },
  });
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
