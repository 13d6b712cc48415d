/** Which provider answers (behaviour.md §7.2). */
import { PreampError } from "../errors.ts";
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
  const names = Object.keys(providers); // of a live view: its entries cost three times as much
  const ranked = names.map((name) => ({ name, provider: providers[name]! })); // it was just named
  if (ranked.length < 2) return ranked;
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

/**
 * Returns the provider that follows when `failed` has failed for good, or null: the next of the order that was not tried
 * yet. `fallback` names who may follow; true: everyone, in order of preference; false: nobody.
 */
export function nextProvider(
  providers: Record<string, Provider>,
  fallback: boolean | readonly string[],
  tried: ReadonlySet<string>,
): ChosenProvider | null {
  if (fallback === false) return null;
  const order = fallback === true ? rankProviders(providers) : fallback.flatMap((name) => {
    const provider = Object.hasOwn(providers, name) ? providers[name] : undefined;
    return provider ? [{ name, provider }] : [];
  });
  return order.find(({ name }) => !tried.has(name)) ?? null;
}

function priority(provider: Provider): number {
  return typeof provider.priority === "number" ? provider.priority : 100;
}
