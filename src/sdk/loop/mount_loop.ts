/**
 * Mounts the loop: checks its configuration and registers the orchestrator and the capability
 * `session.steer`.
 */
import type { Coordinator } from "../contracts.ts";
import { readConfig } from "../config.ts";
import { errorMessage } from "../errors.ts";
import type { JsonObject } from "../json.ts";
import type { ResponseFormat } from "../messages.ts";
import {
  type LoopConfig,
  loopConfigSchema,
  type LoopSchemaDefaults,
  REQUEST_PROPERTIES,
} from "./loop_config.ts";
import { parseResponseFormat } from "./response_format.ts";
import { createLoop } from "./loop.ts";
import { SteeringQueue } from "./steering.ts";

/** Defaults of a built-in loop. */
export interface LoopDefaults extends LoopSchemaDefaults {
  /** Name in `orchestrator:complete`. */
  orchestrator: string;
  /** Whether hooks at `tool:selecting` may change or deny a call; default false. */
  selects_tools?: boolean;
}

/** A config that fits its schema, with its defaults. */
type LoopSettings = Omit<LoopConfig, "orchestrator" | "selects_tools" | "request">;

/** Frozen config → its loop config, because all runs of a plan share a frozen config. */
const parsed = new WeakMap<JsonObject, { defaults: LoopDefaults; loop: LoopConfig }>();

/**
 * Mounts the loop with `defaults` and the config of a plan.
 *
 * @throws {PreampError} `module_invalid` with all problems and their paths.
 */
export async function mountLoop(
  coordinator: Coordinator,
  config: JsonObject,
  defaults: LoopDefaults,
): Promise<void> {
  const known = parsed.get(config);
  const loop = known?.defaults === defaults ? known.loop : parseLoopConfig(config, defaults);
  if (Object.isFrozen(config)) parsed.set(config, { defaults, loop });
  const queue = new SteeringQueue();
  if (loop.steering) coordinator.registerCapability("session.steer", (text: string) => queue.push(text));
  await coordinator.mount("orchestrator", createLoop(loop, queue, coordinator));
}

function parseLoopConfig(config: JsonObject, defaults: LoopDefaults): LoopConfig {
  // null means the same as a missing key
  const given = Object.fromEntries(Object.entries(config).filter(([, value]) => (value ?? null) !== null));
  let format: ResponseFormat | undefined;
  const schema = loopConfigSchema(defaults);
  const { response_format: _, ...loop } = readConfig<LoopSettings>(schema, given, (fitting, refuse) => {
    try {
      format = parseResponseFormat(fitting.response_format);
    } catch (error) {
      refuse(["response_format"], errorMessage(error));
    }
  });
  const request_keys = Object.keys(REQUEST_PROPERTIES).filter((key) => key in given);
  return {
    ...loop,
    orchestrator: defaults.orchestrator,
    selects_tools: defaults.selects_tools === true,
    request: Object.fromEntries(request_keys.map((key) => [key, given[key]])),
    ...(format ? { response_format: format } : {}),
  };
}
