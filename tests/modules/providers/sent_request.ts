/** The request that a backend sends for a call. */
import type { Degradation, JsonObject, Message } from "preamp";
import { type Backend, type CallSettings, type ProviderSettings, toConversation } from "preamp/provider";
import type { Vendor } from "./faults.ts";

/** A request and what it leaves out. */
export interface SentRequest {
  readonly url: string;
  readonly headers: Headers;
  readonly body: JsonObject;
  readonly degradation: Degradation | undefined;
}

/** Settings of a provider without any of the plan. */
export const SETTINGS: ProviderSettings = {
  model: "model",
  models: [],
  api_key: "k",
  max_retries: 0,
  timeout_s: 60,
  first_byte_timeout_s: 60,
  idle_timeout_s: 60,
  max_concurrent: 0,
  min_delay_ms: 0,
  raw: false,
  config: {},
};

/** Settings of a call without those of the test. */
export function callOf(
  fields: Partial<CallSettings>,
  messages: readonly Message[],
  provider: string,
): CallSettings {
  const { conversation } = toConversation(messages, provider);
  return { model: "model", conversation, tools: [], max_output_tokens: 1000, stream: false, ...fields };
}

/** Resolves to the request of a call, which the vendor answers with a text. */
export async function sentRequest(
  backend: Backend,
  call: CallSettings,
  vendor: Pick<Vendor, "whole">,
): Promise<SentRequest> {
  let sent: Omit<SentRequest, "degradation"> | undefined;
  const wire = backend.toRequest(call);
  const answer = await backend.send(wire, {
    signal: new AbortController().signal,
    fetch: (input, init) => {
      const headers = new Headers(init?.headers);
      sent = { url: String(input), headers, body: JSON.parse(String(init?.body)) };
      return Promise.resolve(Response.json(vendor.whole({ text: ["Hello"] })));
    },
  });
  return { ...sent!, degradation: answer.degradation ?? wire.degradation }; // the answer came to a request
}
