/** The config and the input of the tool; the input's schema lists the plan's agents. */
import { isObject, type JsonObject, type JsonSchema, type ProviderPreference, readConfig } from "preamp/base";

/** Parts of the conversation that an agent can inherit. */
const CONTEXTS = ["none", "recent", "all"] as const;

/** Maximum number of turns for `recent`. */
const MAX_TURNS = 100;

/** A checked config with all defaults. */
export interface TaskConfig {
  inherit_context: (typeof CONTEXTS)[number];
  inherit_context_turns: number;
  exclude_tools?: string[];
  inherit_tools?: string[];
}

export interface TaskInput extends Partial<Pick<TaskConfig, "inherit_context" | "inherit_context_turns">> {
  instruction: string;
  agent?: string;
  session_id?: string;
  provider_preferences?: ProviderPreference[];
}

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

/** Maximum characters of an agent's description in the tool's description. */
const MAX_DESCRIPTION = 300;

/** Returns the names and descriptions of a plan's agents, one on each line. */
export function describeAgents(plan: JsonObject): string {
  const agents = isObject(plan.agents) ? plan.agents : {};
  const lines = Object.entries(agents).map(([name, overlay]) => {
    const description = isObject(overlay) && typeof overlay.description === "string"
      ? overlay.description
      : "";
    return description === "" ? `- ${name}` : `- ${name}: ${description.slice(0, MAX_DESCRIPTION)}`;
  });
  return [...lines, "- self: the same agent as you, with an empty conversation (the default)"].join("\n");
}

/** Returns the schema of the tool's input for a plan. */
export function inputSchema(plan: JsonObject): JsonSchema {
  const names = [...Object.keys(isObject(plan.agents) ? plan.agents : {}), "self"];
  return {
    type: "object",
    properties: {
      instruction: {
        type: "string",
        minLength: 1,
        description: "The complete task: the agent knows nothing else unless it inherits context",
      },
      agent: { type: "string", enum: names, description: "Name of the agent; default: self" },
      session_id: {
        type: "string",
        description:
          "Instead of agent: continues an agent that you spawned before, by the session_id of its result",
      },
      inherit_context: {
        type: "string",
        enum: [...CONTEXTS],
        description:
          "The part of this conversation that the agent gets: none, the recent turns, or all of it",
      },
      inherit_context_turns: {
        type: "integer",
        minimum: 1,
        maximum: MAX_TURNS,
        description: "Number of turns for recent",
      },
      provider_preferences: {
        type: "array",
        description: "Providers for the agent, best first; the first available one is used",
        items: {
          type: "object",
          properties: {
            provider: { type: "string", description: "Name of a provider" },
            model: { type: "string", description: "Name of a model; * matches any characters" },
          },
          required: ["provider"],
          additionalProperties: false,
        },
      },
    },
    required: ["instruction"],
  };
}
