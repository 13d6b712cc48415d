/** The configuration of a loop, as `mount_loop.ts` reads it from a plan. */
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
