/** `provider-mock`: a provider without a model. It answers from a script and needs no key and no network. */
import {
  type ChatRequest,
  type ChatResponse,
  type Clock,
  type CompleteOptions,
  type Coordinator,
  type JsonObject,
  LLMError,
  type ModuleInfo,
  parseToolCall,
  type Provider,
  ProviderInfo,
  type ToolCall,
} from "preamp/base";
import { CONFIG_SCHEMA, DEFAULT_TEXT, type MockConfig, readMockConfig, type ScriptEntry } from "./config.ts";
import { composeReply, defaultAnswer, promptOf, streamBlocks, usageOf } from "./reply.ts";

export const module: ModuleInfo = {
  id: "provider-mock",
  name: "Mock provider",
  version: "1.0.0",
  type: "provider",
  mount_point: "providers",
  description: "Answers from a script or by a fixed rule; deterministic, needs no key.",
  config_schema: CONFIG_SCHEMA,
};

/**
 * Mounts the provider as `mock`.
 *
 * @throws {PreampError} `module_invalid` when the config is wrong; `details` has all problems.
 */
export async function mount(coordinator: Coordinator, config: JsonObject = {}): Promise<void> {
  const settings = readMockConfig(config);
  const position = new Position(
    () => coordinator.session_state,
    claimStateKey(coordinator),
    settings.script ?? [],
  );
  const provider = createProvider(settings, coordinator.clock, position);
  await coordinator.mount("providers", provider, { name: "mock" });
}

/** Returns a provider that answers from its script, or by {@link defaultAnswer}. */
function createProvider(config: MockConfig, clock: Clock, position: Position): Provider {
  const { chunk_chars, context_window, max_output_tokens, models, prices, priority } = config;

  async function complete(request: ChatRequest, options: CompleteOptions = {}): Promise<ChatResponse> {
    const { signal, onDelta } = options;
    const check = () => throwIfAborted(signal);
    check();
    const { entry, firstId } = position.take(request, (index) => answerTo(config, index, request));
    if (entry.delay_ms) await wait(clock, entry.delay_ms, signal);
    const reply = composeReply(entry, firstId);
    if (onDelta) await streamBlocks(reply.content, { onDelta, chunk_chars, check });
    if (entry.error) {
      const { type, message, ...facts } = entry.error;
      throw new LLMError(type, message, { provider: "mock", ...facts });
    }
    const { content, tool_calls, finish_reason } = reply;
    const usage = usageOf(entry, reply, request, prices);
    return { content, ...(tool_calls.length > 0 ? { tool_calls } : {}), finish_reason, usage };
  }

  return {
    name: "mock",
    ...(priority === undefined ? {} : { priority }),
    getInfo: () =>
      ProviderInfo({
        id: "mock",
        display_name: "Mock provider",
        capabilities: ["streaming", "tools"],
        defaults: { context_window, max_output_tokens },
      }),
    listModels: () => Promise.resolve(structuredClone(models)),
    complete,
    parseToolCalls,
  };
}

/** Returns the answer to call number `index` (from 0) of the session. */
function answerTo({ script, after }: MockConfig, index: number, request: ChatRequest): ScriptEntry {
  if (!script) return defaultAnswer(request);
  const entry = script[index];
  if (entry) return entry;
  if (after === "echo") return { text: promptOf(request.messages) };
  if (after === "repeat") return { text: script.findLast(({ text }) => text)?.text ?? DEFAULT_TEXT };
  const fact = `the script has ${script.length} entries and after is "error"`;
  const message = `Cannot answer call ${index + 1}: ${fact}`;
  return { error: { type: "InvalidRequestError", message } };
}

async function wait(clock: Clock, ms: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await clock.after(ms, signal);
  } catch (error) {
    throwIfAborted(signal);
    throw error;
  }
}

function throwIfAborted(signal: AbortSignal | undefined): void {
  if (!signal?.aborted) return;
  throw new LLMError("AbortError", "Cannot finish the answer: the call was aborted", {
    provider: "mock",
    cause: signal.reason,
  });
}

/** Returns the calls of a response: its `tool_calls`, else those of its blocks. */
function parseToolCalls(response: ChatResponse): ToolCall[] {
  const calls = response.tool_calls ?? response.content.filter((block) => block.type === "tool_call");
  return calls.map(parseToolCall);
}

const INSTANCES = "provider-mock.instances";

/**
 * Counts the instance that is being mounted and returns its state key: `provider-mock`, and for the second
 * instance in mount order `provider-mock:2`, and so on. Mount order is the order of the plan, which is the
 * same in every run of a session. An instance does not know its `instance_id`.
 */
function claimStateKey(coordinator: Coordinator): string {
  const before = coordinator.getCapability(INSTANCES);
  const instance = (typeof before === "number" ? before : 0) + 1;
  coordinator.registerCapability(INSTANCES, instance);
  return instance === 1 ? "provider-mock" : `provider-mock:${instance}`;
}

/**
 * The position of one instance in the script: how many calls it has answered and how many tool calls it has
 * made. It is saved in `coordinator.session_state`, so that a continued or resumed session continues at the
 * same entry.
 */
class Position {
  readonly #state: () => JsonObject;
  readonly #key: string;
  /** At index n: the number of tool calls in the first n entries of the script. */
  readonly #scripted: readonly number[];
  /** Highest `call_N` in the history. Searched once, because later ids of the run are created here. */
  #seen: number | undefined;

  /** Creates the position of an instance; `state` is called for each access. */
  constructor(state: () => JsonObject, key: string, script: readonly ScriptEntry[]) {
    this.#state = state;
    this.#key = key;
    let sum = 0;
    this.#scripted = [0, ...script.map((entry) => sum += entry.tool_calls?.length ?? 0)];
  }

  /**
   * Returns the entry of the next call and saves the new position. It is synchronous, so overlapping calls
   * get different entries.
   *
   * @param answer Returns the entry of call number `index`, counted from 0.
   * @returns The entry, and the number of its first `call_N`.
   */
  take(
    request: ChatRequest,
    answer: (index: number) => ScriptEntry,
  ): { entry: ScriptEntry; firstId: number } {
    const { calls, tool_calls } = this.#read();
    this.#seen ??= highestCallId(request);
    const used = Math.max(tool_calls ?? this.#scriptedBefore(calls), this.#seen);
    const entry = answer(calls);
    let total = used + (entry.tool_calls?.length ?? 0);
    for (const call of entry.tool_calls ?? []) total = Math.max(total, callNumber(call.id));
    this.#seen = total;
    // Not saved if it follows from the script.
    const derived = total === this.#scriptedBefore(calls + 1);
    this.#state()[this.#key] = derived ? { calls: calls + 1 } : { calls: calls + 1, tool_calls: total };
    return { entry, firstId: used + 1 };
  }

  #scriptedBefore(calls: number): number {
    return this.#scripted[Math.min(calls, this.#scripted.length - 1)] ?? 0;
  }

  #read(): { calls: number; tool_calls: number | undefined } {
    const saved = this.#state()[this.#key] as JsonObject | undefined;
    return { calls: count(saved?.calls) ?? 0, tool_calls: count(saved?.tool_calls) };
  }
}

function count(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

/**
 * Returns the highest N of the ids `call_N` in a history, or 0. Ids stay unique when the plan changes in
 * mid-session.
 */
function highestCallId(request: ChatRequest): number {
  let highest = 0;
  for (const message of request.messages) {
    for (const call of message.tool_calls ?? []) highest = Math.max(highest, callNumber(call.id));
  }
  return highest;
}

/** Returns the N of an id `call_N`, or 0 for any other id. */
function callNumber(id: string | undefined): number {
  const number = id?.startsWith("call_") ? Number(id.slice("call_".length)) : 0;
  return Number.isSafeInteger(number) ? number : 0;
}
