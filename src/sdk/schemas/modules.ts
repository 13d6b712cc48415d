/** zod schemas of what modules, providers and models say of themselves (behaviour.md §4.4). */
import * as z from "zod";
import type { ModuleInfo, Permissions } from "../contracts.ts";
import type { ConfigField, ModelInfo, ProviderInfo } from "../providers.ts";
import { model, object, text, texts } from "./model.ts";

const grant = z.union([z.boolean(), z.array(text)]).exactOptional();

/** Deno permissions. A kind that Deno does not know is an error: a typing slip must not grant or withhold silently. */
export const permissionsSchema: z.ZodType<Permissions> = z.strictObject({
  net: grant,
  read: grant,
  write: grant,
  env: grant,
  run: grant,
  sys: grant,
  ffi: grant,
  import: grant,
});

/** What a module says of itself; only `id` is required. */
export const moduleInfoSchema: z.ZodType<ModuleInfo> = model({
  id: text,
  name: text.exactOptional(),
  version: text.exactOptional(),
  type: z.enum(["orchestrator", "context", "provider", "tool", "hook", "resolver"]).exactOptional(),
  mount_point: text.exactOptional(),
  description: z.string().exactOptional(),
  config_schema: object.nullable().exactOptional(),
  permissions: permissionsSchema.exactOptional(),
  contract: z.number().int().min(1).exactOptional(),
});

/** One field of a provider's configuration; a choice must name its choices. */
export const configFieldSchema: z.ZodType<ConfigField> = model({
  id: text,
  display_name: z.string(),
  field_type: z.enum(["text", "secret", "choice", "boolean"]).default("text"),
  prompt: z.string(),
  env_var: z.string().nullable().default(null),
  choices: texts.nullable().default(null),
  required: z.boolean().default(true),
  default: z.string().nullable().default(null),
  show_when: object.nullable().default(null),
  requires_model: z.boolean().default(false),
}).refine((field) => field.field_type !== "choice" || (field.choices?.length ?? 0) > 0, {
  path: ["choices"],
  message: "a choice must name what can be chosen",
});

/** Metadata of a provider. */
export const providerInfoSchema: z.ZodType<ProviderInfo> = model({
  id: text,
  display_name: text,
  credential_env_vars: texts.default([]),
  capabilities: texts.default([]),
  defaults: object.default({}),
  config_fields: z.array(configFieldSchema).default([]),
});

/** Metadata of a model. */
export const modelInfoSchema: z.ZodType<ModelInfo> = model({
  id: text,
  display_name: text,
  context_window: z.number().int().min(1),
  max_output_tokens: z.number().int().min(1),
  capabilities: texts.default([]),
  defaults: object.default({}),
});
