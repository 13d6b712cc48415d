/**
 * Mounts the loop: checks its configuration and registers the orchestrator and the capability
 * `session.steer`.
 */
import type { Coordinator } from "../contracts.ts";
import { errorMessage, PreampError } from "../errors.ts";
import type { JsonObject } from "../json.ts";
import type { ResponseFormat } from "../messages.ts";
import type { LoopSchemaDefaults } from "./config_schema.ts";
import { parseResponseFormat } from "./response_format.ts";
import { createLoop, type LoopConfig } from "./loop.ts";
import { SteeringQueue } from "./steering.ts";

/** Defaults of a built-in loop. */
export interface LoopDefaults extends LoopSchemaDefaults {
  /** Name in `orchestrator:complete`. */
  orchestrator: string;
  /** Whether hooks at `tool:selecting` may change or deny a call; default false. */
  selects_tools?: boolean;
}

/** Config keys that are copied to every request. */
const REQUEST_KEYS = [
  "model",
  "temperature",
  "top_p",
  "max_output_tokens",
  "reasoning_effort",
  "stop",
  "tool_choice",
];

/**
 * Mounts the loop with `defaults` and the config of a plan.
 *
 * @throws {PreampError} `module_invalid` when a value is invalid; unknown keys are ignored.
 */
export async function mountLoop(
  coordinator: Coordinator,
  config: JsonObject,
  defaults: LoopDefaults,
): Promise<void> {
  const loop: LoopConfig = {
    orchestrator: defaults.orchestrator,
    max_iterations: integer(defaults, config, "max_iterations", -1, -1),
    max_parallel_tools: integer(defaults, config, "max_parallel_tools", defaults.max_parallel_tools, 1),
    steering: boolean(defaults, config, "steering", defaults.steering),
    max_retries: integer(defaults, config, "max_retries", 2, 0),
    min_delay_between_calls_ms: integer(defaults, config, "min_delay_between_calls_ms", 0, 0),
    fallback: fallbackOf(defaults, config.fallback),
    selects_tools: defaults.selects_tools === true,
    request: Object.fromEntries(
      REQUEST_KEYS.filter((key) => config[key] !== undefined).map((key) => [key, config[key]]),
    ),
  };
  const { default_provider } = config;
  if (typeof default_provider === "string") loop.default_provider = default_provider;
  else if (default_provider !== undefined && default_provider !== null) {
    throw invalid(defaults, "default_provider", "must be the name of a provider", default_provider);
  }
  const format = formatOf(defaults, config.response_format);
  if (format) loop.response_format = format;
  const queue = new SteeringQueue();
  if (loop.steering) coordinator.registerCapability("session.steer", (text: string) => queue.push(text));
  await coordinator.mount("orchestrator", createLoop(loop, queue));
}

function fallbackOf(defaults: LoopDefaults, value: unknown): boolean | string[] {
  if (value === undefined || value === null) return false;
  if (typeof value === "boolean") return value;
  if (Array.isArray(value) && value.every((name) => typeof name === "string")) return value;
  throw invalid(defaults, "fallback", "must be true, false, or a list of names of providers", value);
}

function formatOf(defaults: LoopDefaults, value: unknown): ResponseFormat | undefined {
  try {
    return parseResponseFormat(value);
  } catch (error) {
    throw invalid(defaults, "response_format", errorMessage(error), value);
  }
}

function integer(
  defaults: LoopDefaults,
  config: JsonObject,
  key: string,
  fallback: number,
  least: number,
): number {
  const value = config[key] ?? fallback;
  if (typeof value === "number" && Number.isInteger(value) && value >= least) return value;
  throw invalid(defaults, key, `must be a whole number of at least ${least}`, value);
}

function boolean(defaults: LoopDefaults, config: JsonObject, key: string, fallback: boolean): boolean {
  const value = config[key] ?? fallback;
  if (typeof value === "boolean") return value;
  throw invalid(defaults, key, "must be true or false", value);
}

function invalid(defaults: LoopDefaults, key: string, rule: string, received: unknown): PreampError {
  return new PreampError(
    "module_invalid",
    `Cannot read config.${key} of ${defaults.orchestrator}: ${rule}: received ${JSON.stringify(received)}`,
  );
}
