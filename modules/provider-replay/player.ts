/** Plays the calls of a recording: each request gets the answer that was recorded for it. */
import {
  type ChatRequest,
  type ChatResponse,
  type CompleteOptions,
  type Coordinator,
  LLMError,
  type Provider,
  ProviderInfo,
} from "preamp/base";
import { answerWith, providerOf } from "./provider.ts";
import { redactorOf } from "./recorder.ts";
import type { Recording } from "./recording_file.ts";
import { shapeOf } from "./request_shape.ts";

const STATE_KEY = "provider-replay";

/** Returns a provider that plays a recording; `label` is its name in messages. */
export function playingProvider(
  name: string,
  recording: Recording,
  coordinator: Coordinator,
  label: string,
): Provider {
  async function complete(request: ChatRequest, options: CompleteOptions = {}): Promise<ChatResponse> {
    const shape = await redactorOf(coordinator)(shapeOf(request));
    const used = usedOf(coordinator);
    const index = recording.find(shape, used);
    if (index === null) {
      const message = `Cannot play ${JSON.stringify(label)}: ${recording.explain(shape, used)}; ` +
        "delete the file, and run once with the provider's key, to record again";
      throw new LLMError("InvalidRequestError", message, { provider: name });
    }
    coordinator.session_state[STATE_KEY] = { played: [...used, index].sort((a, b) => a - b) };
    return await answerWith(name, recording.calls[index]!, options); // find() returns an index of it
  }

  const info = recording.info ?? ProviderInfo({ id: name, display_name: "Replay provider" });
  return { ...providerOf(name, info, complete), priority: 0 };
}

/** Returns the calls that this session has played; another run of the session continues behind them. */
function usedOf({ session_state }: Coordinator): ReadonlySet<number> {
  const state = session_state[STATE_KEY] as { played?: unknown } | undefined; // only this module writes it
  return new Set(Array.isArray(state?.played) ? state.played.filter(Number.isSafeInteger) : []);
}
