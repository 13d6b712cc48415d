/**
 * Runs a plan on another model: `anthropic/claude-sonnet-5-5` of `preamp run -m`, of a request's `model`, or of
 * the setting `model` (src/docs/plan.md#another-model).
 */
import { documentError } from "./check/findings.ts";
import { MODEL_FORM, readModelName } from "./check/field_checks.ts";
import { promoteProvider } from "./provider_preferences.ts";
import { didYouMean } from "../sdk/findings.ts";
import { PreampError } from "../sdk/errors.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";
import { describe } from "../sdk/value_path.ts";

/** A provider and one of its models. */
export interface ModelChoice {
  /** Provider as written, such as `anthropic`. */
  readonly provider: string;
  /** Id of the module, such as `provider-anthropic`. */
  readonly module: string;
  /** Id of the model, which may contain slashes and colons; absent: the provider's default. */
  readonly model?: string;
}

const PREFIX = "provider-";

/**
 * Returns the choice that a text names.
 *
 * @param modules Ids of the modules that a plan can name.
 * @throws {PreampError} `request_invalid` for another form, or a provider that is not among the modules.
 */
export function readModelChoice(text: string, modules: ReadonlySet<string>): ModelChoice {
  const name = readModelName(text);
  if (name === null) throw invalid(`Cannot read model: must be ${MODEL_FORM}: received ${describe(text)}`);
  const { provider } = name;
  const module = `${PREFIX}${provider}`;
  if (modules.has(module)) return { ...name, module };
  const known = providerNames(modules);
  const meant = didYouMean(provider, known);
  throw invalid(
    `Cannot use model ${describe(text)}: there is no provider ${describe(provider)}`,
    `${meant === undefined ? "" : `did you mean ${meant}? `}the providers are ${
      known.join(", ")
    }; write ${MODEL_FORM}`,
  );
}

function invalid(message: string, hint?: string): PreampError {
  return documentError("request_invalid", "the request", [
    { path: "model", message, ...(hint === undefined ? {} : { hint }) },
  ]);
}

/** Returns the names of the providers among modules, sorted: `anthropic` for `provider-anthropic`. */
export function providerNames(modules: Iterable<string>): string[] {
  return [...modules].filter((id) => id.startsWith(PREFIX)).map((id) => id.slice(PREFIX.length)).sort();
}

/** Returns the error for a caller that chooses the model of an operator's plan. */
export function modelRefused(label: string): PreampError {
  return new PreampError(
    "policy_refused",
    `Cannot choose the model of ${label}: it is the operator's, who chose its model: leave model out, or send a plan`,
  );
}

/** Settings of a provider that hold for its configured model only. */
const OF_ONE_MODEL = ["prices", "context_window"] as const;

/**
 * Returns a plan that prefers the chosen provider and requires it, so that a missing key does not lead to
 * another model. A provider that the plan has keeps its settings; any other replaces the plan's first one.
 */
export function withModel(plan: JsonObject, { module, model }: ModelChoice): JsonObject {
  const providers: readonly unknown[] = Array.isArray(plan.providers) ? plan.providers : [];
  const own = providers.find((spec) => (isObject(spec) ? spec.module : spec) === module);
  const chosen = entryFor(own ?? module, model);
  const others = own === undefined ? providers.slice(1) : providers.filter((spec) => spec !== own);
  // 0: a module may have a priority of its own, which its config does not state
  return promoteProvider({ ...plan, providers: [chosen, ...others] }, chosen, {}, 0);
}

function entryFor(spec: unknown, model: string | undefined): JsonObject {
  const entry: JsonObject = isObject(spec) ? spec : { module: spec };
  const { priority: _, ...config }: JsonObject = isObject(entry.config) ? entry.config : {}; // it gets a new one
  if (model !== undefined && model !== config.model) {
    for (const key of OF_ONE_MODEL) delete config[key];
    config.model = model;
  }
  return { ...entry, ...(Object.keys(config).length > 0 ? { config } : {}), required: true };
}
