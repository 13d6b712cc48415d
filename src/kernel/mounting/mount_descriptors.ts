/** What the mounted tools and providers of a session say of themselves, as data: kept with a run, so that it can be replayed without them. */
import { methodOf } from "../../sdk/snake_case_aliases.ts";
import { toPlainObject } from "../../sdk/json.ts";
import type { JsonObject, JsonSchema, ProviderInfo, RiskLevel } from "../../sdk/types.ts";
import type { Mounts } from "./mounts.ts";

/** A tool as it was mounted. */
export interface ToolDescriptor {
  /** Name it is mounted under. */
  key: string;
  name: string;
  description: string;
  input_schema: JsonSchema;
  risk: RiskLevel;
  requires_approval: boolean;
  idempotent: boolean;
  native_specs?: JsonObject;
}

/** A provider as it was mounted. */
export interface ProviderDescriptor {
  name: string;
  priority: number;
  info: ProviderInfo;
  /** What `getModelInfo` said, for providers that have it. */
  model_info?: JsonObject;
}

/** Tools and providers, in mount order. */
export interface MountedDescriptors {
  tools: ToolDescriptor[];
  providers: ProviderDescriptor[];
}

/** Returns what the mounted tools and providers say of themselves. */
export function describeMounted(mounts: Mounts): MountedDescriptors {
  const tools = mounts.tools.names.map((key) => {
    const tool = mounts.tools.get(key)!; // it is mounted under that name
    const { name, description, input_schema = {}, risk = "low" } = tool;
    return {
      key,
      name,
      description,
      input_schema,
      risk,
      requires_approval: tool.requires_approval === true,
      idempotent: tool.idempotent === true,
      ...(tool.native_specs ? { native_specs: { ...tool.native_specs } } : {}),
    };
  });
  const providers = mounts.providers.names.map((name) => {
    const provider = mounts.providers.get(name)!; // as above
    const modelInfo = methodOf(provider, "getModelInfo");
    return {
      name,
      priority: provider.priority ?? 100,
      info: provider.getInfo(),
      ...(modelInfo ? modelInfoOf(modelInfo) : {}),
    };
  });
  return { tools, providers };
}

/** A module's own code: what it throws is no reason to lose the rest. */
function modelInfoOf(modelInfo: () => unknown): { model_info?: JsonObject } {
  try {
    return { model_info: toPlainObject(modelInfo()) };
  } catch {
    return {}; // as a provider that has none
  }
}
