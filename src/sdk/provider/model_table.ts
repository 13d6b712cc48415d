/** Facts about models: from the plan's config, else from the module's table, else its defaults. */
import type { ModelInfo } from "../providers.ts";
import type { Usage } from "../messages.ts";
import { costOf } from "../money.ts";
import type { ListedModel } from "./backend.ts";
import type { KnownModel, ProviderDefinition, ProviderSettings } from "./settings.ts";

/** Facts about one model; `max_output_tokens` is the model's own maximum, undefined for unknown models. */
export type ModelFacts =
  & Required<Pick<KnownModel, "display_name" | "context_window" | "capabilities">>
  & { readonly [Field in "max_output_tokens" | "prices" | "long_prices"]: KnownModel[Field] | undefined };

/** Looks up the facts about models of one provider. */
export class ModelTable {
  readonly #settings: ProviderSettings;
  readonly #definition: ProviderDefinition;
  readonly capabilities: readonly string[];

  /** Creates a table; facts of the config win. */
  constructor(settings: ProviderSettings, definition: ProviderDefinition) {
    this.#settings = settings;
    this.#definition = definition;
    this.capabilities = ["streaming", "tools", ...(definition.capabilities ?? [])];
  }

  /** Returns the facts about a model. `context_window` and `prices` of the config are those of its `model`. */
  factsOf(model: string): ModelFacts {
    const { context_window, prices, models } = this.#settings;
    const { defaults } = this.#definition;
    const own = model === this.#settings.model;
    const configured = models.find(({ id }) => id === model);
    const known = findKnown(this.#definition.models, model);
    const stated = configured?.prices ?? (own ? prices : undefined);
    // prices of the table are the vendor's; another server has its own
    const listed = stated === undefined && this.#settings.base_url === undefined ? known : undefined;
    return {
      display_name: configured?.display_name ?? (known?.id === model ? known.display_name : undefined) ??
        model,
      context_window: configured?.context_window ?? (own ? context_window : undefined) ??
        known?.context_window ??
        context_window ?? defaults.context_window,
      max_output_tokens: configured?.max_output_tokens ?? known?.max_output_tokens,
      prices: stated ?? listed?.prices,
      long_prices: listed?.long_prices,
      capabilities: [...this.capabilities, ...(known?.capabilities ?? [])],
    };
  }

  /** Returns the maximum tokens of an answer for a request that asks for `requested`, or for no number. */
  outputLimit(model: string, requested: number | undefined): number {
    const { max_output_tokens: configured } = this.#settings;
    const wanted = requested ?? configured ?? this.#definition.defaults.max_output_tokens;
    return Math.min(wanted, this.factsOf(model).max_output_tokens ?? Infinity);
  }

  /** Returns a listed model with its sizes and capabilities. */
  infoOf(model: ListedModel): ModelInfo {
    const facts = this.factsOf(model.id);
    const prices = facts.prices ? { prices: facts.prices } : {};
    return {
      ...prices,
      ...model,
      display_name: model.display_name || facts.display_name,
      context_window: model.context_window || facts.context_window,
      max_output_tokens: model.max_output_tokens || this.outputLimit(model.id, undefined),
      capabilities: model.capabilities ?? [...facts.capabilities],
      defaults: model.defaults ?? {},
    };
  }

  /** Returns the cost of a call as a decimal string; null when the price is unknown. */
  costOf(model: string, usage: Omit<Usage, "cost_usd">): string | null {
    const { prices, long_prices } = this.factsOf(model);
    const { input_tokens, cache_write_tokens = 0 } = usage;
    if (long_prices && input_tokens + cache_write_tokens > long_prices.above_tokens) {
      return costOf(usage, long_prices.prices);
    }
    return prices ? costOf(usage, prices) : null;
  }
}

/** Suffixes of one version of a model: a date, a number, `latest`. Previews and other models have other prices. */
const VERSION = /^[-@](latest|\d{3}|\d{8}|\d{4}-\d{2}-\d{2})$/;

function findKnown(models: readonly KnownModel[], id: string): KnownModel | undefined {
  return models.find((model) => model.id === id) ??
    models.find((model) => id.startsWith(model.id) && VERSION.test(id.slice(model.id.length)));
}
