/** The module's config. */
import { type JsonObject, type JsonSchema, readConfig } from "preamp/base";

/** Parts of the conversation that an agent can inherit. */
export const CONTEXTS = ["none", "recent", "all"] as const;

/** One of {@link CONTEXTS}. */
export type InheritContext = (typeof CONTEXTS)[number];

/** Maximum number of turns for `recent`. */
export const MAX_TURNS = 100;

/** A checked config with all defaults. */
export interface TaskConfig {
  inherit_context: InheritContext;
  inherit_context_turns: number;
  exclude_tools?: string[];
  inherit_tools?: string[];
}

/** JSON Schema of the config. */
export const CONFIG_SCHEMA: JsonSchema = {
  type: "object",
  properties: {
    inherit_context: {
      enum: [...CONTEXTS],
      default: "none",
      description: "The part of the conversation that an agent inherits by default.",
    },
    inherit_context_turns: { type: "integer", minimum: 1, maximum: MAX_TURNS, default: 5 },
    exclude_tools: {
      type: "array",
      items: { type: "string" },
      description: "Ids of tool modules that agents do not inherit; an agent's own tools stay.",
    },
    inherit_tools: {
      type: "array",
      items: { type: "string" },
      description: "Ids of the only tool modules that agents inherit. Cannot be combined with exclude_tools.",
    },
  },
};

/** Returns the config with its defaults. @throws {PreampError} `module_invalid` with all problems. */
export function readTaskConfig(config: JsonObject): TaskConfig {
  return readConfig<TaskConfig>(CONFIG_SCHEMA, config, ({ exclude_tools, inherit_tools }, refuse) => {
    if (exclude_tools && inherit_tools) refuse(["inherit_tools"], "cannot be combined with exclude_tools");
  });
}
