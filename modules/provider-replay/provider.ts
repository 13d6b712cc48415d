/** The provider: each call replays the next recorded attempt. The position is saved in the session's state. */
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
import type { Attempt, ReplayConfig } from "./recording.ts";

const STATE_KEY = "provider-replay";

/** Returns a provider that replays attempts in order. */
export function createProvider(
  name: string,
  attempts: readonly Attempt[],
  coordinator: Coordinator,
  { context_window, max_output_tokens }: ReplayConfig,
): Provider {
  /** Returns the next attempt and saves the position, so that a continued session continues with the next one. */
  function take(): Attempt {
    const state = coordinator.session_state[STATE_KEY] as { calls?: unknown } | undefined; // only this module writes it
    const calls = typeof state?.calls === "number" ? state.calls : 0;
    const attempt = attempts[calls];
    if (!attempt) {
      const fact = `the recording has ${attempts.length} answers`;
      throw new LLMError("InvalidRequestError", `Cannot answer call ${calls + 1}: ${fact}`, {
        provider: name,
      });
    }
    coordinator.session_state[STATE_KEY] = { calls: calls + 1 };
    return attempt;
  }

  const info = ProviderInfo({
    id: name,
    display_name: "Replay provider",
    capabilities: ["streaming", "tools", "structured_output"],
    defaults: { context_window, max_output_tokens },
  });
  return providerOf(name, info, async (_request, options = {}) => {
    throwIfAborted(name, options.signal);
    return await answerWith(name, take(), options);
  });
}

/** Returns a provider with this info and these answers. */
export function providerOf(
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
export async function answerWith(
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
