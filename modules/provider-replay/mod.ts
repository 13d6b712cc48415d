/** `provider-replay`: a provider for tests that returns the recorded answers of a run, in order, without a model or key. */
import {
  type Coordinator,
  type JsonObject,
  type JsonSchema,
  type ModuleInfo,
  PreampError,
  readConfig,
} from "preamp";
import { createProvider } from "./provider.ts";
import { readAttempts, type ReplayConfig } from "./recording.ts";

const NAME = "replay";

const CONFIG_SCHEMA: JsonSchema = {
  type: "object",
  properties: {
    events: { type: "array", items: { type: "object" }, description: "Entries of a run's log" },
    recording: {
      type: "object",
      required: ["events"],
      description: "Output of preamp run --output-format json-trace: {run, events, …}",
    },
    session_id: { type: "string", description: "Session to replay; default: the run's session" },
    provider: { type: "string", description: "Replay only the answers of this provider; default: all" },
    context_window: { type: "integer", minimum: 1, default: 100000 },
    max_output_tokens: { type: "integer", minimum: 1, default: 4096 },
  },
};

/** Describes the module. */
export const module: ModuleInfo = {
  id: "provider-replay",
  name: "Replay provider",
  version: "1.0.0",
  type: "provider",
  mount_point: "providers",
  description: "Returns the recorded answers of a run; deterministic, needs no key",
  config_schema: CONFIG_SCHEMA,
};

/**
 * Mounts the provider as `replay`.
 *
 * @throws {PreampError} `module_invalid` when the config has no log, or the log has no answer.
 */
export async function mount(coordinator: Coordinator, config: JsonObject = {}): Promise<void> {
  const settings = readConfig<ReplayConfig>(CONFIG_SCHEMA, config);
  const attempts = readAttempts(settings);
  if (attempts.length === 0) {
    throw new PreampError(
      "module_invalid",
      "Cannot mount provider-replay: the log in its config has no model answer",
    );
  }
  await coordinator.mount("providers", createProvider(NAME, attempts, coordinator, settings), { name: NAME });
}
