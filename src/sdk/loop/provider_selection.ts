/** Selects the provider of a call. */
import { PreampError } from "../errors.ts";
import type { Provider } from "../providers.ts";

/** A provider and the name it is mounted under. */
export interface ChosenProvider {
  /** Mount name. */
  name: string;
  /** The provider. */
  provider: Provider;
}

/**
 * Returns the providers in order of preference: `default_provider` first if it is mounted, then by priority
 * (lowest first, default 100), equal ones in mount order.
 */
export function rankProviders(
  providers: Record<string, Provider>,
  default_provider?: string,
): ChosenProvider[] {
  const names = Object.keys(providers); // perf: `providers` is a live view, whose entries cost three times as much as its keys
  const ranked = names.map((name) => ({ name, provider: providers[name]! })); // a key of the same object
  if (ranked.length < 2) return ranked;
  ranked.sort((a, b) => priority(a.provider) - priority(b.provider));
  const preferred = ranked.findIndex(({ name }) => name === default_provider);
  if (preferred > 0) ranked.unshift(...ranked.splice(preferred, 1));
  return ranked;
}

/**
 * Returns the provider to call.
 *
 * @throws {PreampError} `internal` "No provider available" when no provider is mounted.
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
 * Returns the next provider after a failure, or null: the first in order that was not tried. `fallback` lists
 * the candidates; true: all, in order of preference; false: no fallback.
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
