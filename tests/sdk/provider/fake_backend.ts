/** A backend in memory, and a coordinator with a provider on it. */
import type { JsonObject, Provider } from "preamp";
import {
  type Backend,
  type BackendAnswer,
  type CallIo,
  mountProvider,
  type ProviderDefinition,
} from "preamp/provider";
import { LLMError, toLLMError } from "preamp";
import { FakeClock, TestCoordinator } from "preamp/testing";

/** Sends one attempt; `count` is its number, from 0. */
export type Send = (io: CallIo, count: number) => Promise<BackendAnswer> | BackendAnswer;

/** A definition whose backend answers with `send`. */
export function definitionOf(send: Send, fields: Partial<ProviderDefinition> = {}): ProviderDefinition {
  let count = 0;
  const backend: Backend = {
    toRequest: ({ conversation: _, ...call }) => ({ body: call as unknown as JsonObject }),
    send: async (_request, io) => await send(io, count++),
    toError: (error) => error instanceof LLMError ? error : toLLMError(error),
    listModels: () => Promise.resolve([{ id: "small", context_window: 9000 }, { id: "unknown-7" }]),
  };
  return {
    id: "fake",
    display_name: "Fake",
    credential: { env_vars: ["FAKE_KEY", "FAKE_TOKEN"], url: "https://example.com/keys" },
    defaults: { model: "small", context_window: 5000, max_output_tokens: 1000 },
    models: [{
      id: "small",
      context_window: 8000,
      max_output_tokens: 2000,
      prices: { input: "1", output: "2", cache_read: "0.1", cache_write: "1.25" },
      long_prices: { above_tokens: 100, prices: { input: "10", output: "20" } },
    }],
    load: () => backend,
    ...fields,
  };
}

/** A mounted provider and what belongs to it. */
export interface Mounted {
  provider: Provider;
  coordinator: TestCoordinator;
  clock: FakeClock;
}

/** Mounts a provider that answers with `send`. */
export async function mountFake(
  send: Send,
  config: JsonObject = {},
  fields: Partial<ProviderDefinition> = {},
): Promise<Mounted> {
  const clock = new FakeClock();
  const coordinator = new TestCoordinator({ clock });
  await mountProvider(coordinator, { api_key: "sk-0123456789", ...config }, definitionOf(send, fields));
  return { provider: coordinator.providers.fake!, coordinator, clock };
}

/** Returns an answer with one text. */
export function textAnswer(text: string, fields: Partial<BackendAnswer> = {}): BackendAnswer {
  return { content: [{ type: "text", text }], finish_reason: "stop", ...fields };
}
