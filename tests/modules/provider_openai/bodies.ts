/** Requests of one call, without a server. */
import type { Degradation, JsonObject, Message } from "preamp";
import type { CallSettings, ProviderSettings } from "preamp/provider";
import { createBackend } from "../../../modules/ai-sdk/openai.ts";
import { callOf, type SentRequest, sentRequest, SETTINGS } from "../providers/sent_request.ts";
import { CHAT, RESPONSES } from "./vendors.ts";

/** Returns the settings of a plan's config. */
export function settingsOf(config: JsonObject): ProviderSettings {
  return { ...SETTINGS, model: "gpt-6.1-terra", api_key: "sk-test", ...config, config };
}

/** Resolves to the request of a call; the plan's config is `config`. */
export function requestOf(
  messages: Message[],
  call: Partial<CallSettings> = {},
  config: JsonObject = {},
): Promise<SentRequest> {
  const settings = settingsOf(config);
  const other = config.base_url !== undefined && !String(config.base_url).includes("api.openai.com");
  const { api = other ? "chat" : "responses" } = config;
  const backend = createBackend(settings, "ses_1");
  return sentRequest(
    backend,
    callOf({ model: settings.model, ...call }, messages, "openai"),
    api === "chat" ? CHAT : RESPONSES,
  );
}

/** Resolves to the body of a call's request. */
export async function bodyOf(...args: Parameters<typeof requestOf>): Promise<JsonObject> {
  return (await requestOf(...args)).body;
}

/** Resolves to what a call's request leaves out. */
export async function degradationOf(...args: Parameters<typeof requestOf>): Promise<Degradation | undefined> {
  return (await requestOf(...args)).degradation;
}

/** A question. */
export const QUESTION: Message[] = [{ role: "user", content: "Hi" }];

/** A PNG image of one pixel, in base64. */
export const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/**
 * A history with every kind of content: system, images, a PDF, thinking, calls, results with images,
 * injections.
 */
export const HISTORY: Message[] = [
  { role: "system", content: "Be brief." },
  { role: "developer", content: "Use tools." },
  {
    role: "user",
    content: [
      { type: "text", text: "What is this?" },
      { type: "image", source: { type: "base64", media_type: "image/png", data: PIXEL } },
      { type: "image", source: { type: "url", url: "https://e.com/a.jpg" } },
      {
        type: "document",
        source: { type: "base64", media_type: "application/pdf", data: "JVBERg==" },
        title: "a.pdf",
      },
    ],
  },
  {
    role: "assistant",
    content: [
      { type: "thinking", thinking: "Foreign", signature: "x", provider: "anthropic" },
      {
        type: "thinking",
        thinking: "Own",
        item: {
          type: "reasoning",
          id: "rs_1",
          summary: [{ type: "summary_text", text: "Own" }],
          encrypted_content: "gA",
        },
        provider: "openai",
      },
      { type: "text", text: "I look.", phase: "commentary", provider: "openai" },
      { type: "tool_call", id: "call_a", name: "look", input: { at: 1 } },
      { type: "tool_call", id: "call_b", name: "look", input: { at: 2 } },
    ],
    tool_calls: [
      { id: "call_a", name: "look", tool: "look", arguments: { at: 1 } },
      { id: "call_b", name: "look", tool: "look", arguments: { at: 2 } },
    ],
  },
  { role: "tool", tool_call_id: "call_b", name: "look", content: "a dot" },
  {
    role: "tool",
    tool_call_id: "call_a",
    name: "look",
    content: [
      { type: "text", text: "a picture" },
      { type: "image", source: { type: "base64", media_type: "image/png", data: PIXEL } },
    ],
  },
  { role: "system", content: "Hurry.", metadata: { source: "hook" } },
];
