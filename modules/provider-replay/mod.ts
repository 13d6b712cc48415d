/** `provider-replay`: a recorded run as a provider: its answers again, in order, without a model and without a key. For tests. */
import { type Coordinator, type JsonObject, type ModuleInfo, PreampError } from "preamp";
import { createProvider } from "./provider.ts";
import { readAttempts } from "./recording.ts";

const NAME = "replay";

/** What the module says of itself. */
export const module: ModuleInfo = {
  id: "provider-replay",
  name: "Replay provider",
  version: "1.0.0",
  type: "provider",
  mount_point: "providers",
  description: "Answers as the models of a recorded run did; deterministic, needs no key",
  config_schema: {
    type: "object",
    properties: {
      events: { type: "array", items: { type: "object" }, description: "Entries of a run's log" },
      recording: {
        type: "object",
        description: "What preamp run --output-format json-trace prints: {run, events, …}",
      },
      session_id: { type: "string", description: "Whose answers; default: the session that the run is of" },
      provider: { type: "string", description: "Answers of this provider alone; default: of every one" },
      context_window: { type: "integer", minimum: 1, default: 100000 },
      max_output_tokens: { type: "integer", minimum: 1, default: 4096 },
    },
  },
};

/**
 * Mounts the provider as `replay`.
 *
 * @throws {PreampError} `module_invalid` when there is no log in the config, or no answer in the log.
 */
export async function mount(coordinator: Coordinator, config: JsonObject = {}): Promise<void> {
  const attempts = readAttempts(config);
  if (attempts.length === 0) {
    throw new PreampError(
      "module_invalid",
      "Cannot mount provider-replay: no model has answered in the log of its config",
    );
  }
  await coordinator.mount("providers", createProvider(NAME, attempts, coordinator, config), { name: NAME });
}
