/**
 * Descriptions of the mounted tools and providers as data. They are stored with a run, so that a replay needs
 * no modules.
 */
import { methodOf } from "../../sdk/snake_case_aliases.ts";
import { toPlainObject } from "../../sdk/json.ts";
import type { JsonObject, ProviderInfo, Tool } from "../../sdk/types.ts";
import type { Mounts } from "./mounts.ts";

/** Description of a mounted tool. */
export interface ToolDescriptor extends Required<Omit<Tool, "native_specs" | "checkInput" | "execute">> {
  /** Name that the tool is mounted under. */
  key: string;
  native_specs?: JsonObject;
}

/** Description of a mounted provider. */
export interface ProviderDescriptor {
  name: string;
  priority: number;
  info: ProviderInfo;
  /** Result of `getModelInfo`, for providers that have it. */
  model_info?: JsonObject;
}

/** Tools and providers, in mount order. */
export interface MountedDescriptors {
  tools: ToolDescriptor[];
  providers: ProviderDescriptor[];
}

/** Returns the descriptions of the mounted tools and providers. */
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
    const descriptor: ProviderDescriptor = {
      name,
      priority: provider.priority ?? 100,
      info: provider.getInfo(),
    };
    try {
      if (modelInfo) descriptor.model_info = toPlainObject(modelInfo());
    } catch {
      // as a provider without getModelInfo
    }
    return descriptor;
  });
  return { tools, providers };
}
