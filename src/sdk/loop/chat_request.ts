/** Builds the tool specifications and injected messages of a request. */
import type { Injection } from "../hooks.ts";
import { isObject, type JsonObject } from "../json.ts";
import { versionOf } from "../live_view.ts";
import type { ChatRequest, Message, ToolSpec } from "../messages.ts";
import { inputSchemaOf } from "../snake_case_aliases.ts";
import type { Tool } from "../tools.ts";
import type { LoopConfig } from "./loop_config.ts";

/**
 * Builds the specifications of the mounted tools. Returns the same array while tools and provider are the
 * same, so that it is counted once.
 */
export class ToolListBuilder {
  #tools: Tool[] = [];
  /** The last record of tools, and its version if it is a live view. */
  #record: Record<string, Tool> | null = null;
  #version: number | null = null;
  #provider = "";
  #specs: ToolSpec[] = [];

  /**
   * Returns the specifications of the tools in mount order. The fields of `native_specs` for the provider id
   * `provider` replace those of the specification.
   */
  specs(tools: Record<string, Tool>, provider = ""): ToolSpec[] {
    const version = versionOf(tools);
    const unchanged = version !== null && version === this.#version && tools === this.#record;
    if (unchanged && provider === this.#provider) return this.#specs;
    this.#record = tools;
    this.#version = version;
    const mounted = Object.values(tools);
    const same = provider === this.#provider && mounted.length === this.#tools.length &&
      mounted.every((tool, index) => tool === this.#tools[index]);
    if (same) return this.#specs;
    this.#tools = mounted;
    this.#provider = provider;
    this.#specs = mounted.map((tool) => ({
      name: tool.name,
      description: tool.description,
      parameters: inputSchemaOf(tool),
      ...nativeSpec(tool, provider),
    }));
    return this.#specs;
  }
}

/** Returns the tool's own fields for a provider without the name, by which a call is matched to its tool. */
function nativeSpec({ native_specs }: Tool, provider: string): JsonObject {
  const own = isObject(native_specs) && Object.hasOwn(native_specs, provider) ? native_specs[provider] : {};
  const { name: _, ...spec } = isObject(own) ? own : {};
  return spec;
}

/** Returns the message of an ephemeral injection. */
export function injectionMessage(injection: Injection): Message {
  return {
    role: injection.role,
    content: injection.text,
    metadata: { source: "hook", hook_name: injection.hook_name, ephemeral: true },
  };
}

/**
 * Returns the view with injections at its end, so that its prefix stays cached. An injection is appended to
 * the last message if it asks for that and the message is a tool result; otherwise it is a message of its
 * own. Neither argument is changed; without injections the view itself is returned.
 */
export function placeInjections(view: Message[], injections: readonly Injection[]): Message[] {
  if (injections.length === 0) return view;
  const messages = view.slice();
  for (const injection of injections) {
    const last = messages.at(-1);
    if (injection.append_to_last_tool_result && last?.role === "tool") {
      const content = typeof last.content === "string"
        ? `${last.content}\n\n${injection.text}`
        : [...last.content, { type: "text", text: injection.text }];
      messages[messages.length - 1] = { ...last, content };
    } else messages.push(injectionMessage(injection));
  }
  return messages;
}

/** Returns the request of a loop with this configuration. `tail`: messages after the view. */
export function buildRequest(
  config: LoopConfig,
  view: Message[],
  tools: ToolSpec[],
  tail: readonly Message[],
): ChatRequest {
  const messages = tail.length > 0 ? [...view, ...tail] : view;
  const request: ChatRequest = { ...config.request, messages };
  if (config.response_format) request.response_format = config.response_format;
  if (tools.length > 0) request.tools = tools;
  return request;
}
