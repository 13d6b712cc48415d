/** Checks the module's config. */
import { isObject, type JsonObject, type JsonSchema, PreampError } from "preamp";

/** Parts of the conversation that an agent can inherit. */
export const CONTEXTS = ["none", "recent", "all"] as const;

/** One of {@link CONTEXTS}. */
export type InheritContext = (typeof CONTEXTS)[number];

/** Default number of turns for `recent`. */
export const DEFAULT_TURNS = 5;

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
    inherit_context_turns: { type: "integer", minimum: 1, maximum: MAX_TURNS, default: DEFAULT_TURNS },
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

/** Returns the config with its defaults. @throws {PreampError} `module_invalid` with the name of the wrong key. */
export function readConfig(config: JsonObject): TaskConfig {
  const settings: TaskConfig = {
    inherit_context: readContext(config.inherit_context) ?? "none",
    inherit_context_turns: readTurns(config.inherit_context_turns) ?? DEFAULT_TURNS,
  };
  for (const key of ["exclude_tools", "inherit_tools"] as const) {
    const value = config[key];
    if (value === undefined) continue;
    if (!Array.isArray(value) || !value.every((name) => typeof name === "string")) {
      throw invalid(key, "must be a list of module ids", value);
    }
    settings[key] = value;
  }
  if (settings.exclude_tools && settings.inherit_tools) {
    throw invalid("inherit_tools", "cannot be combined with exclude_tools", settings.inherit_tools);
  }
  return settings;
}

function readContext(value: unknown): InheritContext | undefined {
  const found = CONTEXTS.find((context) => context === value);
  if (value !== undefined && found === undefined) {
    throw invalid("inherit_context", `must be one of ${CONTEXTS.join(", ")}`, value);
  }
  return found;
}

function readTurns(value: unknown): number | undefined {
  if (value === undefined) return undefined;
  if (isTurns(value)) return value;
  throw invalid("inherit_context_turns", `must be a whole number from 1 to ${MAX_TURNS}`, value);
}

/** Returns whether a value is a valid number of turns. */
export function isTurns(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= MAX_TURNS;
}

function invalid(key: string, rule: string, value: unknown): PreampError {
  const received = isObject(value) || Array.isArray(value)
    ? JSON.stringify(value).slice(0, 80)
    : JSON.stringify(value);
  return new PreampError(
    "module_invalid",
    `Cannot mount tool-task: config.${key} ${rule}: received ${received}`,
  );
}
