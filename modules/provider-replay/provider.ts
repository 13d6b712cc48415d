/** Providers that play answers: of a log in order, or of a recording by the request. The session's state has the position. */
import {
  type ChatResponse,
  type CompleteOptions,
  type Coordinator,
  type JsonObject,
  LLMError,
  type LLMErrorType,
  type Provider,
  ProviderInfo,
  toChatResponse,
} from "preamp/base";
import { redactorOf } from "./recorder.ts";
import type { Attempt, ReplayConfig } from "./recording.ts";
import { type Recording, shapeOf } from "./recording_file.ts";

const STATE_KEY = "provider-replay";

/** Returns a provider that replays attempts in order. */
export function createProvider(
  name: string,
  attempts: readonly Attempt[],
  coordinator: Coordinator,
  { context_window, max_output_tokens }: ReplayConfig,
): Provider {
  const info = ProviderInfo({
    id: name,
    display_name: "Replay provider",
    capabilities: ["streaming", "tools", "structured_output"],
    defaults: { context_window, max_output_tokens },
  });
  return providerOf(name, info, async (_request, options = {}) => {
    throwIfAborted(name, options.signal);
    const state = coordinator.session_state[STATE_KEY] as { calls?: unknown } | undefined; // only this module writes it
    const calls = typeof state?.calls === "number" ? state.calls : 0;
    const attempt = attempts[calls];
    if (!attempt) {
      const message = `Cannot answer call ${calls + 1}: the recording has ${attempts.length} answers`;
      throw new LLMError("InvalidRequestError", message, { provider: name });
    }
    coordinator.session_state[STATE_KEY] = { calls: calls + 1 }; // a continued session continues with the next one
    return await answerWith(name, attempt, options);
  });
}

/** Returns a provider that plays a recording; `label` is its name in messages. */
export function playingProvider(
  name: string,
  recording: Recording,
  coordinator: Coordinator,
  label: string,
): Provider {
  const info = recording.info ?? ProviderInfo({ id: name, display_name: "Replay provider" });
  const provider = providerOf(name, info, async (request, options = {}) => {
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
  });
  return { ...provider, priority: 0 };
}

/** Returns the calls that this session has played; another run of the session continues behind them. */
function usedOf({ session_state }: Coordinator): ReadonlySet<number> {
  const state = session_state[STATE_KEY] as { played?: unknown } | undefined; // only this module writes it
  return new Set(Array.isArray(state?.played) ? state.played.filter(Number.isSafeInteger) : []);
}

/** Returns a provider with this info and these answers. */
function providerOf(
  name: string,
  info: ProviderInfo,
  complete: Provider["complete"],
): Provider {
  return {
    name,
    getInfo: () => info,
    listModels: () => Promise.resolve([]),
    complete,
    parseToolCalls: (response) => toChatResponse(response).tool_calls ?? [],
  };
}

/** Resolves to a recorded answer after its deltas. @throws {LLMError} a recorded failure. */
async function answerWith(
  name: string,
  { deltas, outcome }: Attempt,
  { signal, onDelta }: CompleteOptions,
): Promise<ChatResponse> {
  throwIfAborted(name, signal);
  for (const delta of deltas) {
    onDelta?.(delta);
    await null; // lets other code run, as between the deltas of a model
    throwIfAborted(name, signal);
  }
  if ("failure" in outcome) throw failureOf(name, outcome.failure);
  return toChatResponse(structuredClone(outcome.response));
}

function throwIfAborted(provider: string, signal: AbortSignal | undefined): void {
  if (!signal?.aborted) return;
  throw new LLMError("AbortError", "Cannot finish the answer: the call was aborted", {
    provider,
    cause: signal.reason,
  });
}

function failureOf(provider: string, failure: JsonObject): LLMError {
  const { status_code, retry_after, retryable, limit_tokens, requested_tokens } = failure;
  return new LLMError(String(failure.type ?? "LLMError") as LLMErrorType, String(failure.message ?? ""), {
    provider,
    retryable: retryable === true,
    ...(typeof status_code === "number" ? { status_code } : {}),
    ...(typeof retry_after === "number" ? { retry_after } : {}),
    ...(typeof limit_tokens === "number" ? { limit_tokens } : {}),
    ...(typeof requested_tokens === "number" ? { requested_tokens } : {}),
  });
}
