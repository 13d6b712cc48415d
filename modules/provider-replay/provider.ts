/** The provider: the next attempt of the recording for each call. Where it stands is kept with the session. */
import {
  type ChatRequest,
  type ChatResponse,
  type CompleteOptions,
  type Coordinator,
  type JsonObject,
  LLMError,
  type LLMErrorType,
  type Provider,
  ProviderInfo,
  toChatResponse,
} from "preamp";
import type { Attempt } from "./recording.ts";

const STATE_KEY = "provider-replay";

/** Returns a provider that plays attempts. */
export function createProvider(
  name: string,
  attempts: readonly Attempt[],
  coordinator: Coordinator,
  config: JsonObject,
): Provider {
  /** Takes the next attempt; a session that is continued goes on where it was. */
  function take(): Attempt {
    const state = coordinator.session_state[STATE_KEY] as { calls?: unknown } | undefined; // only we write it
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

  async function complete(_request: ChatRequest, options: CompleteOptions = {}): Promise<ChatResponse> {
    const { signal, onDelta } = options;
    throwIfAborted(name, signal);
    const { pieces, outcome } = take();
    for (const piece of pieces) {
      onDelta?.(piece);
      await null; // others get a turn, as with a model that sends
      throwIfAborted(name, signal);
    }
    if ("failure" in outcome) throw failureOf(name, outcome.failure);
    return toChatResponse(structuredClone(outcome.response));
  }

  const number = (value: unknown, fallback: number) => typeof value === "number" ? value : fallback;
  return {
    name,
    getInfo: () =>
      ProviderInfo({
        id: name,
        display_name: "Replay provider",
        capabilities: ["streaming", "tools", "structured_output"],
        defaults: {
          context_window: number(config.context_window, 100_000),
          max_output_tokens: number(config.max_output_tokens, 4096),
        },
      }),
    listModels: () => Promise.resolve([]),
    complete,
    parseToolCalls: (response) => toChatResponse(response).tool_calls ?? [],
  };
}

function throwIfAborted(provider: string, signal: AbortSignal | undefined): void {
  if (!signal?.aborted) return;
  throw new LLMError("AbortError", "Cannot finish the answer: the call was aborted", {
    provider,
    cause: signal.reason,
  });
}

function failureOf(provider: string, failure: JsonObject): LLMError {
  const { status_code, retry_after, retryable } = failure;
  return new LLMError(String(failure.type ?? "LLMError") as LLMErrorType, String(failure.message ?? ""), {
    provider,
    retryable: retryable === true,
    ...(typeof status_code === "number" ? { status_code } : {}),
    ...(typeof retry_after === "number" ? { retry_after } : {}),
  });
}
