/** What the model asks for: the tool's input, and its schema with the agents of the plan in it. */
import { isObject, type JsonObject, type JsonSchema, type ProviderPreference } from "preamp";
import { CONTEXTS, type InheritContext, isTurns, MAX_TURNS, type TaskConfig } from "./config.ts";

/** A task in which everything is present and right. */
export interface TaskInput {
  instruction: string;
  agent?: string;
  session_id?: string;
  inherit_context: InheritContext;
  inherit_context_turns: number;
  provider_preferences?: ProviderPreference[];
}

/** Characters of an agent's description that the model is shown. */
const MAX_DESCRIPTION = 300;

/** Returns the names and descriptions of a plan's agents, as one text. */
export function describeAgents(plan: JsonObject): string {
  const agents = isObject(plan.agents) ? plan.agents : {};
  const lines = Object.entries(agents).map(([name, overlay]) => {
    const told = isObject(overlay) && typeof overlay.description === "string" ? overlay.description : "";
    return told === "" ? `- ${name}` : `- ${name}: ${told.slice(0, MAX_DESCRIPTION)}`;
  });
  return [...lines, "- self: you again, with an empty conversation (the default)"].join("\n");
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
        description: "The whole task in words: the agent knows nothing else unless it inherits context",
      },
      agent: { type: "string", enum: names, description: "Which agent; absent: self" },
      session_id: {
        type: "string",
        description:
          "Instead of agent: goes on with an agent you spawned before, by the session_id in its result",
      },
      inherit_context: {
        type: "string",
        enum: [...CONTEXTS],
        description: "What the agent is told of this conversation: nothing, the recent turns, or all of it",
      },
      inherit_context_turns: {
        type: "integer",
        minimum: 1,
        maximum: MAX_TURNS,
        description: "Turns that are recent",
      },
      provider_preferences: {
        type: "array",
        description: "Providers for the agent, best first; the first that is there is used",
        items: {
          type: "object",
          properties: {
            provider: { type: "string", description: "Name of a provider" },
            model: { type: "string", description: "Name of a model; * stands for any characters" },
          },
          required: ["provider"],
          additionalProperties: false,
        },
      },
    },
    required: ["instruction"],
  };
}

/** Returns the input with the config's defaults, or the fact that is wrong with it. */
export function readInput(input: JsonObject, defaults: TaskConfig): TaskInput | string {
  const { instruction, inherit_context, inherit_context_turns, provider_preferences } = input;
  if (typeof instruction !== "string" || instruction.trim() === "") return "instruction must be text";
  const task: TaskInput = {
    instruction,
    inherit_context: defaults.inherit_context,
    inherit_context_turns: defaults.inherit_context_turns,
  };
  for (const key of ["agent", "session_id"] as const) {
    const value = input[key];
    if (value === undefined || value === null || value === "") continue;
    if (typeof value !== "string") return `${key} must be text`;
    task[key] = value;
  }
  if (task.agent !== undefined && task.session_id !== undefined) return "give agent or session_id, not both";
  if (inherit_context !== undefined) {
    const found = CONTEXTS.find((one) => one === inherit_context);
    if (found === undefined) return `inherit_context must be one of ${CONTEXTS.join(", ")}`;
    task.inherit_context = found;
  }
  if (inherit_context_turns !== undefined) {
    if (!isTurns(inherit_context_turns)) {
      return `inherit_context_turns must be a whole number from 1 to ${MAX_TURNS}`;
    }
    task.inherit_context_turns = inherit_context_turns;
  }
  if (provider_preferences !== undefined) {
    const read = readPreferences(provider_preferences);
    if (typeof read === "string") return read;
    task.provider_preferences = read;
  }
  return task;
}

/** A model names a provider and a model and nothing else: how they are reached is the plan's. */
function readPreferences(value: unknown): ProviderPreference[] | string {
  if (!Array.isArray(value)) return "provider_preferences must be a list of {provider, model}";
  const read: ProviderPreference[] = [];
  for (const item of value) {
    const { provider, model, ...rest } = isObject(item) ? item : {};
    if (typeof provider !== "string" || (model !== undefined && typeof model !== "string")) {
      return "provider_preferences must be a list of {provider, model}";
    }
    const [extra] = Object.keys(rest);
    if (extra !== undefined) {
      return `provider_preferences take provider and model only: received ${JSON.stringify(extra)}`;
    }
    read.push(model === undefined ? { provider } : { provider, model });
  }
  return read;
}
