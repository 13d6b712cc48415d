/** Finds a model to talk to: of a provider whose key is in the environment, else of a running Ollama. */
import { createModuleTable } from "../../app/module_table.ts";
import { modelsOf, type ProviderDeps, realProviders } from "../../app/provider_service.ts";
import { errorMessage } from "../../sdk/errors.ts";

/** A model, and why it was chosen. */
export interface ModelAtHand {
  /** As `PROVIDER/MODEL`. */
  readonly model: string;
  /** Such as `ANTHROPIC_API_KEY is set`. */
  readonly reason: string;
}

/** Where a model was looked for. */
export interface NoModel {
  /** Variables of keys that are not set, in the order of `preamp provider list`. */
  readonly variables: readonly string[];
  /** Why no local server has a model, one sentence for each. */
  readonly local: readonly string[];
}

/** Resolves to the model at hand; without one, to where it was looked for. */
export async function findModel(env: ProviderDeps["env"]): Promise<ModelAtHand | NoModel> {
  const deps: ProviderDeps = { modules: createModuleTable(), env };
  const providers = await realProviders(deps);
  for (const { provider, set_variable, default_model } of providers) {
    if (set_variable === null || default_model === null) continue;
    return { model: `${provider}/${default_model}`, reason: `${set_variable} is set` };
  }
  const variables = providers.filter(({ needs_key }) => needs_key).flatMap(({ variables }) => variables);
  const local: string[] = [];
  for (const { provider } of providers.filter(({ needs_key }) => !needs_key)) {
    try {
      const [first] = await modelsOf(provider, deps);
      if (first !== undefined) return { model: first.model, reason: `${provider} is running` };
      local.push(`${provider} is running and has no model; get one with \`ollama pull qwen3:8b\``);
    } catch (error) {
      const message = errorMessage(error);
      const at = /^Cannot .*?: Cannot reach .*? at (\S+):/.exec(message)?.[1];
      local.push(at === undefined ? `${provider}: ${message}` : `no ${provider} answers at ${at}`);
    }
  }
  return { variables, local };
}
