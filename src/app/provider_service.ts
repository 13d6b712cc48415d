/** The providers that a plan can name: their keys, default models, and the models of the account. */
import { defaultVariables, expandConfig } from "./plan_configs.ts";
import type { ModuleTable } from "./module_table.ts";
import { SandboxCoordinator } from "./validation/contract_check.ts";
import { classifyMountReturn } from "../kernel/mount_diagnosis.ts";
import { providerNames } from "../plan/model_choice.ts";
import { isEndpoint } from "../plan/endpoints.ts";
import { Redactor } from "../policy/redact.ts";
import { within } from "../process/system_clock.ts";
import { errorMessage, PreampError } from "../sdk/errors.ts";
import { explainedMessage, providerErrorCode, toLLMError } from "../sdk/llm_errors.ts";
import type { ListedModel, UsableModels } from "./types.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";
import type { ModelInfo, ModuleSpec, Provider } from "../sdk/types.ts";

/** A provider in `preamp provider list`. */
export interface KnownProvider {
  /** Name in `PROVIDER/MODEL`. */
  readonly provider: string;
  readonly module: string;
  readonly display_name: string;
  /** Variables of its key, in order of preference. */
  readonly variables: readonly string[];
  /** The variable that is set; null if none is. */
  readonly set_variable: string | null;
  /** Whether it works only with a key. */
  readonly needs_key: boolean;
  readonly default_model: string | null;
}

/** Collaborators of this file's functions. */
export interface ProviderDeps {
  readonly modules: ModuleTable;
  /** Environment variables of the process. */
  readonly env: (name: string) => string | undefined;
}

/** Given as the key to read the facts of a provider whose key is not set. */
const PLACEHOLDER = "no-key";

/**
 * Resolves to the providers that need no settings but a key, sorted by name. Calls no backend, and imports no
 * vendor's client.
 */
export async function listProviders({ modules, env }: ProviderDeps): Promise<KnownProvider[]> {
  const known: KnownProvider[] = [];
  for (const provider of providerNames(modules.ids)) {
    const found = await mountProvider(modules, provider, { api_key: PLACEHOLDER }).catch(() => null); // needs more settings
    if (found === null || "skipped" in found) continue;
    const { display_name, credential_env_vars, defaults } = found.provider.getInfo();
    await found.close();
    const without_key = await mountProvider(modules, provider, {});
    if (!("skipped" in without_key)) await without_key.close();
    known.push({
      provider,
      module: `provider-${provider}`,
      display_name,
      variables: credential_env_vars,
      set_variable: credential_env_vars.find((name) => env(name)?.trim()) ?? null,
      needs_key: "skipped" in without_key,
      default_model: typeof defaults.model === "string" ? defaults.model : null,
    });
  }
  return known;
}

/** Variables of a provider that a plan need not name. */
export interface ProviderVariables {
  /** Name in `PROVIDER/MODEL`. */
  readonly provider: string;
  /** Variables of its key, in order of preference. */
  readonly keys: readonly string[];
  /** Variables with the address that prompts go to. */
  readonly addresses: readonly string[];
}

/** Resolves to the variables that the built-in providers read when a plan states no value. */
export async function providerVariables(modules: ModuleTable): Promise<ProviderVariables[]> {
  return await Promise.all(
    providerNames(modules.ids).map(async (provider) => {
      const id = `provider-${provider}`;
      const { module } = await modules.module(id);
      const all = defaultVariables({}, module?.config_schema ?? {});
      const variablesOf = (is_address: boolean) =>
        all.filter(([setting]) => isEndpoint({ module: id, type: "provider" }, setting) === is_address)
          .flatMap(([, names]) => names);
      return { provider, keys: variablesOf(false), addresses: variablesOf(true) };
    }),
  );
}

/**
 * Resolves to the models of the provider's account.
 *
 * @throws {PreampError} `module_load_failed` without a key; `provider_…` when the backend fails.
 */
export async function listModels(provider: string, { modules, env }: ProviderDeps): Promise<ModelInfo[]> {
  const redactor = new Redactor();
  const module = await modules.module(`provider-${provider}`);
  const spec: ModuleSpec = {
    module: `provider-${provider}`,
    type: "provider",
    source: { kind: "builtin" },
    config: {},
    path: "providers[0]",
  };
  const schema = module.module?.config_schema ?? undefined;
  const config = expandConfig(spec, schema, { plan: env, keys: env }, redactor);
  const found = await mountProvider(modules, provider, config);
  if ("skipped" in found) throw new PreampError("module_load_failed", found.skipped);
  try {
    return await found.provider.listModels();
  } catch (error) {
    const failure = toLLMError(error);
    throw new PreampError(
      providerErrorCode(failure.type),
      `Cannot list the models of ${provider}: ${redactor.redactValues(explainedMessage(failure))}`,
      { cause: error },
    );
  } finally {
    await found.close();
  }
}

/** Milliseconds that the list of a provider's models may take. */
const MAX_LIST_MS = 3_000;

/** Resolves to the models of every provider whose key is set, and of local servers that answer. */
export async function usableModels(deps: ProviderDeps): Promise<UsableModels> {
  const usable = (await realProviders(deps)).filter(({ set_variable, needs_key }) =>
    set_variable !== null || !needs_key
  );
  const data: ListedModel[] = [];
  const errors: { provider: string; message: string }[] = [];
  const lists = await Promise.allSettled(usable.map(({ provider }) => modelsOf(provider, deps)));
  for (const [index, list] of lists.entries()) {
    if (list.status === "fulfilled") data.push(...list.value);
    else errors.push({ provider: usable[index]!.provider, message: errorMessage(list.reason) });
  }
  return { data, errors };
}

/** Resolves to the providers that call a model. */
export async function realProviders(deps: ProviderDeps): Promise<KnownProvider[]> {
  const SCRIPTED = ["mock", "replay"];
  return (await listProviders(deps)).filter(({ provider }) => !SCRIPTED.includes(provider));
}

/** Resolves to the models of a provider. @throws {Error} as `listModels`, or when it takes over 3 s. */
export async function modelsOf(provider: string, deps: ProviderDeps): Promise<ListedModel[]> {
  const late = `no answer within ${MAX_LIST_MS / 1000} s`;
  const models = await within(MAX_LIST_MS, listModels(provider, deps), late);
  return models.map((info) => ({ model: `${provider}/${info.id}`, provider, ...info }));
}

type Mounted = { provider: Provider; close(): Promise<unknown> } | { skipped: string };

async function mountProvider(modules: ModuleTable, name: string, config: JsonObject): Promise<Mounted> {
  const module = await modules.module(`provider-${name}`);
  const coordinator = new SandboxCoordinator();
  const returned = classifyMountReturn(await module.mount(coordinator, config), "provider");
  const provider = Object.values(coordinator.providers)[0] ??
    (returned.kind === "instance" && isObject(returned.instance) ? returned.instance : undefined);
  if (provider === undefined) {
    const reason = returned.kind === "skipped" ? returned.reason : "it is not configured";
    return { skipped: reason };
  }
  return { provider: provider as unknown as Provider, close: () => coordinator.cleanup() }; // mounted as a provider
}
