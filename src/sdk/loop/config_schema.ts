/** The configuration of the loop as JSON Schema, for modules that are this loop; {@link mountLoop} checks it. */
import type { JsonObject } from "../json.ts";

/** Properties that every built-in loop takes, beside `max_parallel_tools` and `steering`, whose defaults are its own. */
export const LOOP_CONFIG_PROPERTIES: Readonly<Record<string, JsonObject>> = {
  max_iterations: {
    type: "integer",
    minimum: -1,
    default: -1,
    description: "Model calls of a turn; -1 = one less than the run's ceiling.",
  },
  default_provider: { type: "string", description: "Name of the provider to prefer." },
  fallback: {
    description:
      "Who answers when a provider fails for good with a failure that may pass: true = every other one in " +
      "order of priority, or names in order.",
    anyOf: [{ type: "boolean" }, { type: "array", items: { type: "string" } }],
    default: false,
  },
  max_retries: {
    type: "integer",
    minimum: 0,
    default: 2,
    description: "Attempts after the first, for providers that do not try again by themselves.",
  },
  min_delay_between_calls_ms: {
    type: "integer",
    minimum: 0,
    default: 0,
    description: "Milliseconds from the end of a model call to the next.",
  },
  response_format: {
    type: "object",
    description:
      'Form of the final answer: {type: "json"}, or {type: "json_schema", schema: {…}}; checked and mended.',
  },
  model: { type: "string", description: "Model of every request." },
  temperature: { type: "number", minimum: 0 },
  top_p: { type: "number", minimum: 0, maximum: 1 },
  max_output_tokens: { type: "integer", minimum: 1 },
  reasoning_effort: { type: "string" },
  stop: { type: "array", items: { type: "string" } },
  tool_choice: { description: "auto, none, required, or the provider's own form." },
};
