/**
 * The JSON Schema of plans, for editors, and the keys of a plan and of an agent's overlay, which the check
 * knows from here. It describes the form; `check` judges a plan.
 */
import { isObject, type JsonObject, type JsonSchema } from "../sdk/json.ts";
import { suppliedFields } from "./check/check_config.ts";
import { PERMISSIONS_SCHEMA } from "./check/check_permissions.ts";
import { SESSION_SETTINGS } from "./check/check_session.ts";
import { LIST_SECTIONS, SPEC_PROPERTIES } from "./check/check_spec.ts";
import { LIMITS_SCHEMA } from "./check/field_checks.ts";
import { MODE_PROPERTIES } from "./modes.ts";

const TEXT: JsonSchema = { type: "string" };
const TEXTS: JsonSchema = { type: "array", items: TEXT };
const ref = (name: string): JsonSchema => ({ $ref: `#/$defs/${name}` });
const listOf = (name: string, description: string): JsonSchema => ({
  type: "array",
  items: ref(name),
  description,
});

/** Keys that a plan and an agent's overlay have in common. */
const COMMON: Readonly<Record<string, JsonSchema>> = {
  description: { ...TEXT, description: "One line about the agent" },
  session: {
    type: "object",
    description: "The loop, the context, and what belongs to both",
    properties: {
      orchestrator: { ...ref("orchestrator"), description: "The loop: calls the model and its tools" },
      orchestrator_source: { ...TEXT, description: "Where the loop's code is, beside its id" },
      context: { ...ref("context"), description: "Keeps the conversation, and makes it fit the model" },
      context_source: { ...TEXT, description: "Where the context's code is, beside its id" },
      ...SESSION_SETTINGS,
    },
    additionalProperties: false,
  },
  system: {
    description: "The first system message: text, {instruction} or {file}",
    anyOf: [TEXT, {
      type: "object",
      properties: {
        instruction: { ...TEXT, description: "The text" },
        file: { ...TEXT, description: "File with the text; only in a plan that is read from disk" },
      },
      additionalProperties: false,
    }],
  },
  instructions: {
    enum: ["project", "none"],
    default: "none",
    description: "project adds AGENTS.md and facts about the workspace to the system message",
  },
  providers: listOf("provider", "The models: modules that call them"),
  tools: listOf("tool", "The tools of the model"),
  hooks: listOf("hook", "Modules that watch events, and may deny or ask"),
  orchestrator: {
    type: "object",
    description: "Config of the loop that session.orchestrator names by its id",
    properties: { config: SPEC_PROPERTIES.config },
  },
  context: {
    type: "object",
    description: "Config of the context that session.context names by its id",
    properties: { config: SPEC_PROPERTIES.config },
  },
  spawn: {
    type: "object",
    description: "Which tools sub-agents inherit",
    properties: {
      tools: { ...TEXTS, description: "Ids of the tools that they inherit" },
      exclude_tools: { ...TEXTS, description: "Ids of the tools that they do not inherit" },
    },
  },
  limits: {
    ...LIMITS_SCHEMA,
    description: "Limits of a run; the smallest of plan, request and policy applies",
  },
  permissions: { ...PERMISSIONS_SCHEMA, description: "Default grant of tools that state none" },
};

/** Schemas of the keys of a plan. */
export const PLAN_PROPERTIES: Readonly<Record<string, JsonSchema>> = {
  ...COMMON,
  agents: {
    type: "object",
    description: "Agents by name: overlays over this plan, for sub-agents",
    additionalProperties: ref("overlay"),
  },
  roles: {
    type: "object",
    description: "PROVIDER/MODEL by role, or a list, best first: the model of agents with that model_role",
    additionalProperties: { anyOf: [TEXT, TEXTS] },
  },
  modes: {
    type: "object",
    description: "Modes by name: gates before tool calls, and texts for the model",
    additionalProperties: ref("mode"),
  },
  mode: { ...TEXT, default: "none", description: "Name of the mode that the plan is in" },
  model: {
    ...TEXT,
    description: "PROVIDER/MODEL that the plan runs on, such as anthropic/claude-sonnet-5-5",
  },
  preamp: { const: 1, description: "Version of the format" },
};

/** Schemas of the keys of an agent's overlay. */
export const OVERLAY_PROPERTIES: Readonly<Record<string, JsonSchema>> = {
  ...COMMON,
  agents: {
    description: "Which agents it may start",
    default: "all",
    anyOf: [{ enum: ["all", "none"] }, TEXTS],
  },
  instruction: { ...TEXT, description: "Its system message, the same as system" },
  provider_preferences: {
    type: "array",
    description: "Its model, best first",
    items: {
      type: "object",
      required: ["provider"],
      properties: {
        provider: { ...TEXT, description: "Name of a provider of the plan" },
        model: { ...TEXT, description: "Id of a model, or a pattern with *" },
        config: { type: "object", description: "Settings for it, no keys and addresses" },
      },
    },
  },
  model_role: { anyOf: [TEXT, TEXTS], description: "Role of the plan's roles, or a list, best first" },
};

/** A module that plans can name by its id. */
export interface DescribedModule {
  readonly id: string;
  readonly type: string;
  readonly description: string;
  readonly config_schema?: unknown;
}

/**
 * Returns the JSON Schema (2020-12) of plans, with the ids and configs of modules. A module with a source
 * may have any id; a value may be `${VAR}`, which a strict validator reports where it wants no text.
 */
export function planJsonSchema(modules: readonly DescribedModule[]): JsonObject {
  const types = ["orchestrator", "context", ...Object.values(LIST_SECTIONS)];
  const entries = types.map((type) => [type, entrySchema(modules.filter((module) => module.type === type))]);
  const rules = modules.find(({ id }) => id === "hooks-approval")?.config_schema;
  const ofRules = isObject(rules) && isObject(rules.properties) ? rules.properties.rules : {};
  const conditions = modules.flatMap(({ id, type, ...module }) => {
    if (type !== "orchestrator" && type !== "context") return [];
    const named = { properties: { session: { properties: { [type]: { const: id } }, required: [type] } } };
    return [{
      if: { ...named, required: ["session"] },
      then: { properties: { [type]: { properties: { config: configOf(module) } } } },
    }];
  });
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Preamp plan",
    type: "object",
    required: ["session"],
    properties: PLAN_PROPERTIES,
    allOf: conditions,
    $defs: {
      ...Object.fromEntries(entries),
      overlay: { type: "object", properties: OVERLAY_PROPERTIES },
      mode: {
        type: "object",
        properties: { ...MODE_PROPERTIES, rules: { ...ofRules as JsonSchema, ...MODE_PROPERTIES.rules } },
        additionalProperties: false,
      },
    },
  };
}

/** Returns the schema of an entry: an id, or an object whose config is that of its module. */
function entrySchema(modules: readonly DescribedModule[]): JsonSchema {
  const ids = { anyOf: [...modules.map(({ id, description }) => ({ const: id, description })), TEXT] };
  return {
    anyOf: [ids, {
      type: "object",
      required: ["module"],
      properties: { ...SPEC_PROPERTIES, module: { ...SPEC_PROPERTIES.module, ...ids } },
      allOf: modules.map((module) => ({
        if: { properties: { module: { const: module.id } }, required: ["module"] },
        then: { properties: { config: configOf(module) } },
      })),
    }],
  };
}

/** Returns the schema of a module's config, without the fields that the host fills in. */
function configOf({ config_schema }: Pick<DescribedModule, "config_schema">): JsonSchema {
  if (!isObject(config_schema)) return { type: "object" };
  const supplied = new Set(suppliedFields(config_schema).map(({ key }) => key));
  const properties = Object.entries(isObject(config_schema.properties) ? config_schema.properties : {});
  return {
    description: "Settings of the module",
    ...config_schema,
    properties: Object.fromEntries(properties.filter(([key]) => !supplied.has(key))),
  };
}
