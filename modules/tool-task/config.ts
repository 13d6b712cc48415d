/** The module's config: checked whole at mount, then trusted. */
import { isObject, type JsonObject, type JsonSchema, PreampError } from "preamp";

/** How much of the conversation an agent is told. */
export const CONTEXTS = ["none", "recent", "all"] as const;

/** One of {@link CONTEXTS}. */
export type InheritContext = (typeof CONTEXTS)[number];

/** Turns that `recent` takes unless told otherwise (behaviour.md §7.11). */
export const DEFAULT_TURNS = 5;

/** Most turns that may be asked for; our choice. */
export const MAX_TURNS = 100;

/** A config in which everything is present and right. */
export interface TaskConfig {
  inherit_context: InheritContext;
  inherit_context_turns: number;
  exclude_tools?: string[];
  inherit_tools?: string[];
}

/** The config as JSON Schema. */
export const CONFIG_SCHEMA: JsonSchema = {
  type: "object",
  properties: {
    inherit_context: {
      enum: [...CONTEXTS],
      default: "none",
      description: "What an agent is told of the conversation when the call does not say.",
    },
    inherit_context_turns: { type: "integer", minimum: 1, maximum: MAX_TURNS, default: DEFAULT_TURNS },
    exclude_tools: {
      type: "array",
      items: { type: "string" },
      description: "Module ids of tools that agents do not inherit; an agent's own tools stay.",
    },
    inherit_tools: {
      type: "array",
      items: { type: "string" },
      description: "The only tools that agents inherit. Excludes exclude_tools.",
    },
  },
};

/** Returns the config with its defaults. @throws {PreampError} `module_invalid`, naming the key. */
export function readConfig(config: JsonObject): TaskConfig {
  const read: TaskConfig = {
    inherit_context: readContext(config.inherit_context) ?? "none",
    inherit_context_turns: readTurns(config.inherit_context_turns) ?? DEFAULT_TURNS,
  };
  for (const key of ["exclude_tools", "inherit_tools"] as const) {
    const value = config[key];
    if (value === undefined) continue;
    if (!Array.isArray(value) || !value.every((name) => typeof name === "string")) {
      throw invalid(key, "must be a list of module ids", value);
    }
    read[key] = value;
  }
  if (read.exclude_tools && read.inherit_tools) {
    throw invalid("inherit_tools", "excludes exclude_tools", read.inherit_tools);
  }
  return read;
}

function readContext(value: unknown): InheritContext | undefined {
  const found = CONTEXTS.find((one) => one === value);
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

/** Returns true for a number of turns that may be asked for. */
export function isTurns(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= MAX_TURNS;
}

function invalid(key: string, fact: string, value: unknown): PreampError {
  const shown = isObject(value) || Array.isArray(value)
    ? JSON.stringify(value).slice(0, 80)
    : JSON.stringify(value);
  return new PreampError(
    "module_invalid",
    `Cannot mount tool-task: config.${key} ${fact}: received ${shown}`,
  );
}
