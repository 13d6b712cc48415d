/** The tool's input: its schema, which lists the plan's agents, and its checks. */
import { isObject, type JsonObject, type JsonSchema, type ProviderPreference } from "preamp/base";
import { CONTEXTS, type InheritContext, MAX_TURNS, type TaskConfig } from "./config.ts";

/** A checked input with all defaults. */
export interface TaskInput {
  instruction: string;
  agent?: string;
  session_id?: string;
  inherit_context: InheritContext;
  inherit_context_turns: number;
  provider_preferences?: ProviderPreference[];
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

/** Returns the input with the config's defaults, or a description of what is wrong with it. */
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
    const found = CONTEXTS.find((context) => context === inherit_context);
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

/** Reads a list of providers and models. Other keys are refused: the plan alone defines how a provider is reached. */
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
      return `provider_preferences may have provider and model only: received ${JSON.stringify(extra)}`;
    }
    read.push(model === undefined ? { provider } : { provider, model });
  }
  return read;
}

function isTurns(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= MAX_TURNS;
}
