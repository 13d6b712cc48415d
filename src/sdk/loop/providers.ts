/** Which provider answers (behaviour.md §7.2). */
import { errorCode, errorMessage, errorName, PreampError } from "../errors.ts";
import { isObject, type JsonObject } from "../json.ts";
import type { Provider } from "../providers.ts";

/** A provider and the name it is mounted under. */
export interface ChosenProvider {
  /** Name it is mounted under. */
  name: string;
  /** The provider. */
  provider: Provider;
}

/**
 * Returns the providers in the order they are preferred: `default_provider` first when it is mounted, then by priority
 * (lowest first; unset is 100), equal ones in mount order (ORCH-14).
 */
export function rankProviders(
  providers: Record<string, Provider>,
  default_provider?: string,
): ChosenProvider[] {
  const ranked = Object.entries(providers).map(([name, provider]) => ({ name, provider }));
  ranked.sort((a, b) => priority(a.provider) - priority(b.provider));
  const preferred = ranked.findIndex(({ name }) => name === default_provider);
  if (preferred > 0) ranked.unshift(...ranked.splice(preferred, 1));
  return ranked;
}

/**
 * Returns the provider to call.
 * @throws {PreampError} `internal` "No provider available" when none is mounted (ORCH-15).
 */
export function chooseProvider(
  providers: Record<string, Provider>,
  default_provider?: string,
): ChosenProvider {
  const [first] = rankProviders(providers, default_provider);
  if (!first) throw new PreampError("internal", "No provider available: the plan must mount one");
  return first;
}

function priority(provider: Provider): number {
  return typeof provider.priority === "number" ? provider.priority : 100;
}

/** Codes with which a guard stops a call: no failure of the provider's. */
const STOPS: ReadonlySet<string | undefined> = new Set(["limit_reached", "denied", "cancelled"]);

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
