/** Attributes of spans from data of log entries, as OpenTelemetry's semantic conventions for generative AI name them. */
import type { Attributes } from "@opentelemetry/api";
import { isObject, type JsonObject } from "../sdk/json.ts";
import { textOf } from "./bounded_label.ts";

/** Names of providers in the conventions, where they differ from ours. */
const PROVIDER_NAMES: Readonly<Record<string, string>> = { gemini: "gcp.gemini" };
/** Most characters of one attribute with content. */
const MAX_CONTENT_CHARS = 16 * 1024;

/** Returns the name of a provider in the conventions. */
export function providerName(name: unknown): string {
  const own = textOf(name);
  return Object.hasOwn(PROVIDER_NAMES, own) ? PROVIDER_NAMES[own]! : own; // checked
}

/** Returns the attributes of a model call's or a run's usage. The conventions count cache writes as input. */
export function usageAttributes(usage: unknown): Attributes {
  if (!isObject(usage)) return {};
  const count = (field: string) => typeof usage[field] === "number" ? usage[field] : 0;
  const optional = (name: string, field: string) => count(field) > 0 ? { [name]: count(field) } : {};
  return {
    "gen_ai.usage.input_tokens": count("input_tokens") + count("cache_write_tokens"),
    "gen_ai.usage.output_tokens": count("output_tokens"),
    ...optional("gen_ai.usage.cache_read.input_tokens", "cache_read_tokens"),
    ...optional("gen_ai.usage.cache_creation.input_tokens", "cache_write_tokens"),
    ...optional("gen_ai.usage.reasoning.output_tokens", "reasoning_tokens"),
    ...(typeof usage.cost_usd === "string" ? { "preamp.cost_usd": Number(usage.cost_usd) } : {}),
  };
}

/** Returns the attributes of a model's answer. `content`: whether they have its text. */
export function answerAttributes(response: unknown, content: boolean): Attributes {
  if (!isObject(response)) return {};
  const { finish_reason } = response;
  return {
    ...(typeof finish_reason === "string" ? { "gen_ai.response.finish_reasons": [finish_reason] } : {}),
    ...(content
      ? contentAttribute("gen_ai.output.messages", [{
        role: "assistant",
        parts: [...partsOf(response.content), ...callsOf(response.tool_calls)],
        finish_reason: finish_reason ?? "stop",
      }])
      : {}),
  };
}

/** Returns the attribute of a prompt. */
export function promptAttribute(prompt: unknown): Attributes {
  return contentAttribute("gen_ai.input.messages", [{ role: "user", parts: partsOf(prompt) }]);
}

/** Returns an attribute with JSON, cut to 16,384 characters. */
export function contentAttribute(name: string, value: unknown): Attributes {
  const text = typeof value === "string" ? value : JSON.stringify(value) ?? "";
  return { [name]: text.slice(0, MAX_CONTENT_CHARS) };
}

/** Returns the parts of a text or of content blocks; only the type of blocks that are not text. */
function partsOf(content: unknown): JsonObject[] {
  if (typeof content === "string") return [{ type: "text", content }];
  if (!Array.isArray(content)) return [];
  return content.filter(isObject).filter(({ type }) => type !== "tool_call").map((block) =>
    block.type === "text" ? { type: "text", content: textOf(block.text) } : { type: textOf(block.type) }
  );
}

function callsOf(calls: unknown): JsonObject[] {
  if (!Array.isArray(calls)) return [];
  return calls.filter(isObject).map(({ id, name, arguments: input }) => ({
    type: "tool_call",
    id: textOf(id),
    name: textOf(name),
    arguments: isObject(input) ? input : {},
  }));
}
