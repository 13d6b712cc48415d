/** What goes to a provider: tool specifications and injected texts (behaviour.md §7.3, §7.6). */
import type { Injection } from "../hooks.ts";
import { isObject, type JsonObject } from "../json.ts";
import type { Message, ToolSpec } from "../messages.ts";
import { inputSchemaOf } from "../snake_case_aliases.ts";
import type { Tool } from "../tools.ts";

/** Offers the mounted tools; the same array as long as the same tools go to the same provider, so that it is counted once. */
export class ToolListBuilder {
  #tools: Tool[] = [];
  #provider = "";
  #specs: ToolSpec[] = [];

  /**
   * Returns the specifications of the tools, in mount order. `provider` is the id of the provider they are for: what a tool
   * says for it in `native_specs` is laid over its specification (behaviour.md §7.4, row 20).
   */
  specs(tools: Record<string, Tool>, provider = ""): ToolSpec[] {
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
      ...withoutName(nativeSpec(tool, provider)),
    }));
    return this.#specs;
  }
}

/** The name stays ours: by it the call is found again. */
function withoutName({ name: _, ...spec }: JsonObject): JsonObject {
  return spec;
}

function nativeSpec({ native_specs }: Tool, provider: string): JsonObject {
  if (!isObject(native_specs) || !Object.hasOwn(native_specs, provider)) return {};
  const spec = native_specs[provider];
  return isObject(spec) ? spec : {};
}

/** Returns the message an ephemeral injection is shown as. */
export function injectionMessage(injection: Injection): Message {
  return {
    role: injection.role,
    content: injection.text,
    metadata: { source: "hook", hook_name: injection.hook_name, ephemeral: true },
  };
}

/**
 * Returns the view with injections at its tail, so that the prefix stays the same: joined to the last message when the
 * injection says so and that is a tool result, else as a message of its own (ORCH-10). Neither input is changed; without
 * injections the view itself is returned.
 */
export function placeInjections(view: Message[], injections: readonly Injection[]): Message[] {
  if (injections.length === 0) return view;
  const messages = view.slice();
  for (const injection of injections) {
    const last = messages.at(-1);
    if (injection.append_to_last_tool_result && last?.role === "tool" && typeof last.content === "string") {
      messages[messages.length - 1] = { ...last, content: `${last.content}\n\n${injection.text}` };
    } else messages.push(injectionMessage(injection));
  }
  return messages;
}
