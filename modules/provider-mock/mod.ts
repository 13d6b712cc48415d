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
 * The position of one instance in the script: how many calls it has answered. It is saved in
 * `coordinator.session_state`, so that a continued or resumed session continues at the same entry.
 */
class Position {
  readonly #state: () => JsonObject;
  readonly #key: string;
  /** At index n: the number of tool calls in the first n entries of the script. */
  readonly #scripted: readonly number[];

  /** Creates the position of an instance; `state` is called for each access. */
  constructor(state: () => JsonObject, key: string, script: readonly ScriptEntry[]) {
    this.#state = state;
    this.#key = key;
    let sum = 0;
    this.#scripted = [0, ...script.map((entry) => sum += entry.tool_calls?.length ?? 0)];
  }

  /**
   * Returns the entry of the next call, with the number of its first `call_N`, and saves the new position. It
   * is synchronous, so overlapping calls get different entries.
   *
   * @param answer Returns the entry of call number `index`, counted from 0.
   */
  take(
    request: ChatRequest,
    answer: (index: number) => ScriptEntry,
  ): { entry: ScriptEntry; firstId: number } {
    const saved = (this.#state()[this.#key] as JsonObject | undefined)?.calls;
    const calls = Number.isSafeInteger(saved) && Number(saved) >= 0 ? Number(saved) : 0;
    this.#state()[this.#key] = { calls: calls + 1 };
    const scripted = this.#scripted[Math.min(calls, this.#scripted.length - 1)]!; // it has at least one
    return { entry: answer(calls), firstId: Math.max(scripted, highestCallId(request)) + 1 };
  }
}

/**
 * Returns the highest N of the ids `call_N` in a history, or 0. Ids stay unique when the plan changes in
 * mid-session.
 */
function highestCallId({ messages }: ChatRequest): number {
  const ids = messages.flatMap(({ tool_calls = [] }) => tool_calls.map(({ id }) => id));
  return ids.reduce((highest, id) => Math.max(highest, Number(/^call_(\d{1,9})$/.exec(id)?.[1] ?? 0)), 0);
}
