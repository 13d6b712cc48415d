/** `provider-replay`: a provider for tests that returns the recorded answers of a run, in order, without a model or key. */
import { type Coordinator, type JsonObject, type ModuleInfo, PreampError } from "preamp";
import { createProvider } from "./provider.ts";
import { readAttempts } from "./recording.ts";

const NAME = "replay";

/** Describes the module. */
export const module: ModuleInfo = {
  id: "provider-replay",
  name: "Replay provider",
  version: "1.0.0",
  type: "provider",
  mount_point: "providers",
  description: "Returns the recorded answers of a run; deterministic, needs no key",
  config_schema: {
    type: "object",
    properties: {
      events: { type: "array", items: { type: "object" }, description: "Entries of a run's log" },
      recording: {
        type: "object",
        description: "Output of preamp run --output-format json-trace: {run, events, …}",
      },
      session_id: { type: "string", description: "Session to replay; default: the run's session" },
      provider: { type: "string", description: "Replay only the answers of this provider; default: all" },
      context_window: { type: "integer", minimum: 1, default: 100000 },
      max_output_tokens: { type: "integer", minimum: 1, default: 4096 },
    },
  },
};

/**
 * Mounts the provider as `replay`.
 *
 * @throws {PreampError} `module_invalid` when the config has no log, or the log has no answer.
 */
export async function mount(coordinator: Coordinator, config: JsonObject = {}): Promise<void> {
  const attempts = readAttempts(config);
  if (attempts.length === 0) {
    throw new PreampError(
      "module_invalid",
      "Cannot mount provider-replay: the log in its config has no model answer",
    );
  }
  await coordinator.mount("providers", createProvider(NAME, attempts, coordinator, config), { name: NAME });
}
