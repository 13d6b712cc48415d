/** A model that streams on a clock: each delta says its number and the time at which it was made. */
import type { ChatResponse, CompleteOptions, Coordinator, JsonObject, ModuleInfo, Provider } from "preamp";

/** Describes the module. */
export const module: ModuleInfo = { id: "provider-clock", type: "provider", version: "1.0.0" };

/**
 * Mounts the model. Config: `deltas` of the answer, `interval_ms` between them, `padding` in each: a text, or
 * a number of characters, default 0.
 */
export async function mount(coordinator: Coordinator, config: JsonObject): Promise<void> {
  const provider = {
    name: "clock",
    getInfo: () => ({
      id: "clock",
      display_name: "Clock",
      credential_env_vars: [],
      capabilities: ["streaming"],
      config_fields: [],
      defaults: { context_window: 100_000_000, max_output_tokens: 1_000_000 },
    }),
    listModels: () => Promise.resolve([]),
    parseToolCalls: (response: ChatResponse) => response.tool_calls ?? [],
    complete: (_request: unknown, options?: CompleteOptions) =>
      answer(Number(config.deltas), Number(config.interval_ms), paddingOf(config), options),
  } as unknown as Provider;
  await coordinator.mount("providers", provider, "clock");
}

function paddingOf({ padding = 0 }: JsonObject): string {
  return typeof padding === "string" ? padding : ".".repeat(Number(padding));
}

async function answer(
  deltas: number,
  interval_ms: number,
  padding: string,
  options?: CompleteOptions,
): Promise<ChatResponse> {
  const start = performance.now();
  let text = "";
  for (let index = 0; index < deltas; index++) {
    const wait = start + index * interval_ms - performance.now();
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
    const delta = markOf(index) + padding;
    text += delta;
    options?.onDelta?.({ block_index: 0, block_type: "text", delta });
  }
  return {
    content: [{ type: "text", text }],
    usage: { input_tokens: 10, output_tokens: deltas, total_tokens: 10 + deltas, cost_usd: null },
    finish_reason: "stop",
  } as unknown as ChatResponse;
}

/**
 * Returns the text of a delta: its number and the microseconds of the machine's clock, such as
 * `17@1764000000000123;`.
 */
export function markOf(index: number): string {
  return `${index}@${Math.round((performance.timeOrigin + performance.now()) * 1_000)};`;
}
