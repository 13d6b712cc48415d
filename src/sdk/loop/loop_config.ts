/** The configuration of a loop: its JSON Schema in a plan, and the form that `mount_loop.ts` reads it to. */
import type { JsonObject } from "../json.ts";
import type { ResponseFormat } from "../messages.ts";

/** Configuration of a loop. */
export interface LoopConfig {
  /** Name in `orchestrator:complete`. */
  orchestrator: string;
  /** Model calls of a turn before the wrap-up; −1 = one less than the run's limit. */
  max_iterations: number;
  /** Maximum of concurrent tool calls. */
  max_parallel_tools: number;
  /** Whether steering texts may join a running turn. */
  steering: boolean;
  /** Name of the provider to prefer. */
  default_provider?: string;
  /**
   * Fallbacks for a provider that fails with a retryable failure: names in order, true for every other
   * provider; default none.
   */
  fallback?: boolean | readonly string[];
  /** Attempts after the first one, for providers that do not retry themselves; default 2. */
  max_retries?: number;
  /** Milliseconds from the end of a model call to the next; default 0. */
  min_delay_between_calls_ms?: number;
  /** Required form of the final answer. The loop checks it and asks for a correction at most twice. */
  response_format?: ResponseFormat;
  /** Whether hooks at `tool:selecting` may change or deny a call. */
  selects_tools?: boolean;
  /** Fields of every request: `temperature`, `reasoning_effort`, `max_output_tokens`, … */
  request: JsonObject;
}

/** Defaults of one loop's configuration. */
export interface LoopSchemaDefaults {
  /** Maximum of concurrent tool calls. */
  max_parallel_tools: number;
  /** Whether steering texts may join a running turn. */
  steering: boolean;
}

/** Returns the JSON Schema of a built-in loop's configuration. `null` is the same as a missing key. */
export function loopConfigSchema({ max_parallel_tools, steering }: LoopSchemaDefaults): JsonObject {
  return {
    type: "object",
    properties: {
      ...PROPERTIES,
      ...REQUEST_PROPERTIES,
      max_parallel_tools: { type: ["integer", "null"], minimum: 1, default: max_parallel_tools },
      steering: { type: ["boolean", "null"], default: steering },
    },
  };
}

const PROPERTIES: Readonly<Record<string, JsonObject>> = {
  max_iterations: {
    type: ["integer", "null"],
    minimum: -1,
    default: -1,
    description: "Model calls of a turn; -1 = one less than the run's limit.",
  },
  default_provider: { type: ["string", "null"], description: "Name of the provider to prefer." },
  fallback: {
    description:
      "Fallbacks for a provider that fails with a retryable failure: true = every other provider by priority, " +
      "or names in order.",
    anyOf: [{ type: ["boolean", "null"] }, { type: "array", items: { type: "string" } }],
    default: false,
  },
  max_retries: {
    type: ["integer", "null"],
    minimum: 0,
    default: 2,
    description: "Attempts after the first one, for providers that do not retry themselves.",
  },
  min_delay_between_calls_ms: {
    type: ["integer", "null"],
    minimum: 0,
    default: 0,
    description: "Milliseconds from the end of a model call to the next.",
  },
  response_format: {
    type: ["object", "null"],
    required: ["type"],
    properties: {
      type: { enum: ["text", "json", "json_schema"] },
      schema: { type: "object" },
      json_schema: { type: "object" },
      strict: { type: "boolean" },
    },
    description:
      'Form of the final answer: {type: "json"}, or {type: "json_schema", schema: {…}}; checked and, if wrong, asked for again.',
  },
};

/** Config keys that are copied to every request. */
export const REQUEST_PROPERTIES: Readonly<Record<string, JsonObject>> = {
  model: { type: ["string", "null"], description: "Model of every request." },
  temperature: { type: ["number", "null"], minimum: 0 },
  top_p: { type: ["number", "null"], minimum: 0, maximum: 1 },
  max_output_tokens: { type: ["integer", "null"], minimum: 1 },
  reasoning_effort: { type: ["string", "null"] },
  stop: { type: ["array", "null"], items: { type: "string" } },
  tool_choice: { description: "auto, none, required, or the provider's own form." },
};
