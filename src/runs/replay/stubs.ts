/** Stubs of a recorded run's providers, tools and hooks: same names and schemas, recorded results. */
import type { Entry } from "../../kernel/host.ts";
import type { MountedDescriptors, ProviderDescriptor, ToolDescriptor } from "../../kernel/mounting/mounts.ts";
import { errorFromLog } from "../../kernel/session/interrupted_turn.ts";
import { PreampError } from "../../sdk/errors.ts";
import { LLMError, type LLMErrorType } from "../../sdk/llm_errors.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import { parseToolCall } from "../../sdk/tools.ts";
import type {
  ChatResponse,
  CompleteOptions,
  ContentBlock,
  Coordinator,
  Message,
  Module,
  Provider,
  StreamDelta,
  Tool,
} from "../../sdk/types.ts";
import { CALL_ENDS, type RecordedEvents } from "./recorded_events.ts";

/** Gives stubs access to the recording. */
export interface EventReader {
  readonly recorded: RecordedEvents;
  /** Tools and providers of the recorded session. */
  readonly surface: MountedDescriptors;
  /** Index of the next entry. */
  readonly position: number;
  /** Name of the limit that ended the turn, or null. */
  readonly limit: string | null;
  /** Resolves when an entry comes next, at its recorded time; at once when it has been reached. */
  reached(entry: Entry): Promise<void>;
  /** Repeats what ended a call without a recorded outcome, such as a limit. */
  endWithoutOutcome(): void;
}

/** Returns the stub of a mounted module. */
export function stubFor({ data }: Entry, session: EventReader): Module {
  const names = (data.names as unknown[]).map(String); // written by the kernel
  const { tools, providers } = session.surface;
  switch (data.type) {
    case "tool": {
      const own = names.flatMap((name) => tools.find(({ key }) => key === name) ?? []);
      return { mount: (coordinator) => mountStubs(coordinator, session, { tools: own, providers: [] }) };
    }
    case "provider": {
      const own = providers.filter(({ name }) => names.includes(name));
      return { mount: (coordinator) => mountStubs(coordinator, session, { tools: [], providers: own }) };
    }
    default:
      return {
        async mount(coordinator) {
          for (const event of names) coordinator.hooks.register(event, () => null, { name: "replay" });
          if (names.length > 0) return; // what it mounted besides follows after all other modules
          await mountRemaining(coordinator, session);
          // changes nothing, but a module that mounts nothing is skipped
          await coordinator.mount("orchestrator", coordinator.orchestrator!);
        },
        onSessionReady: (coordinator) => mountRemaining(coordinator, session),
      };
  }
}

/** Mounts a context manager in place of the one that a hook mounted: its views are not compared. */
export async function mountListContext(coordinator: Coordinator): Promise<void> {
  let messages: Message[] = [];
  const list = () => Promise.resolve([...messages]);
  const set = (all: readonly Message[]) => Promise.resolve(void (messages = [...all]));
  await coordinator.mount("context", {
    addMessage: (message: Message) => set([...messages, message]),
    getMessagesForRequest: list,
    getMessages: list,
    setMessages: set,
    clear: () => set([]),
  });
}

/** Mounts the tools and providers that modules of other types mounted. */
async function mountRemaining(coordinator: Coordinator, session: EventReader): Promise<void> {
  const { recorded, surface } = session;
  const modules = recorded.all(({ event, data }) => event === "module:mounted" && data.type !== "hook");
  const claimed = new Set(modules.flatMap(({ data }) => (data.names as unknown[]).map(String)));
  await mountStubs(coordinator, session, {
    tools: surface.tools.filter(({ key }) => !claimed.has(key) && !(key in coordinator.tools)),
    providers: surface.providers.filter(({ name }) => !claimed.has(name) && !(name in coordinator.providers)),
  });
}

async function mountStubs(
  coordinator: Coordinator,
  session: EventReader,
  { tools, providers }: Pick<MountedDescriptors, "tools" | "providers">,
): Promise<void> {
  for (const tool of tools) await coordinator.mount("tools", toolOf(tool, session), { name: tool.key });
  for (const provider of providers) {
    await coordinator.mount("providers", providerOf(provider, session), { name: provider.name });
  }
}

function toolOf({ key: _, ...surface }: ToolDescriptor, session: EventReader): Tool {
  return {
    ...surface as Omit<ToolDescriptor, "key" | "native_specs">,
    ...(surface.native_specs ? { native_specs: surface.native_specs as Record<string, JsonObject> } : {}),
    execute(_input, call) {
      const outcome = session.recorded.find(
        session.position, // a model may give calls of other answers the same id
        ({ event, data }) =>
          (event === "tool:post" || event === "tool:error") && data.tool_call_id === call?.id,
      );
      if (!outcome) {
        session.endWithoutOutcome();
        return new Promise(() => {}); // the call never ended: cancellation or a limit ends the wait
      }
      if (outcome.event === "tool:error") throw errorOf(outcome.data.error, session.limit);
      return outcome.data.result;
    },
  };
}

/** Errors of stubs → recorded source locations in the module's files. */
const locations = new WeakMap<Error, string>();

/** Returns the recorded source location of an error. */
export function placeOf(error: unknown): string | undefined {
  return error instanceof Error ? locations.get(error) : undefined;
}

/**
 * Returns a recorded error. Keeps its code where the recorded type is one, so that it is recorded the same
 * way again.
 */
function errorOf(outcome: unknown, limit: string | null): Error {
  const error = errorOfType(isObject(outcome) ? outcome : {}, limit);
  if (isObject(outcome) && typeof outcome.at === "string") locations.set(error, outcome.at);
  return error;
}

function errorOfType({ type = "Error", msg = "" }: JsonObject, limit: string | null): Error {
  return type === "limit_reached"
    ? new PreampError("limit_reached", String(msg), { facts: { limit: limit ?? "limit" } })
    : errorFromLog({ type, msg });
}

function providerOf(
  { name, priority, info, model_info }: ProviderDescriptor,
  session: EventReader,
): Provider {
  return {
    name,
    priority,
    getInfo: () => info,
    listModels: () => Promise.resolve([]),
    ...(model_info ? { getModelInfo: () => model_info } : {}),
    complete: (_request, options) => answerFrom(session, name, options),
    parseToolCalls: (response) => response.tool_calls ?? [],
  };
}

/** Replays the next attempt of a provider: its deltas, then its response or failure. */
async function answerFrom(
  session: EventReader,
  name: string,
  options: CompleteOptions = {},
): Promise<ChatResponse> {
  const { recorded, position } = session;
  const isOfLoop = (entry: Entry) => recorded.sourceOf(entry) !== "recording";
  const outcome = recorded.find(
    position,
    (entry) => CALL_ENDS.has(entry.event) && entry.data.provider === name && isOfLoop(entry),
  );
  const until = outcome?.seq ?? Infinity;
  const deltas = outcome?.data.inner === true ? [] : deltasOf(recorded, position, until);
  for (const delta of deltas) options.onDelta?.(delta);
  if (!outcome) {
    const aborted = recorded.find(
      position,
      (entry) => entry.event === "llm:stream_aborted" && isOfLoop(entry),
    );
    if (aborted) throw stopOf(aborted, session.limit);
    session.endWithoutOutcome();
    return await new Promise(() => {}); // as in toolOf()
  }
  // the session's next own entry may have needed the response: deliver it exactly there
  const next = abortCause(outcome, session) ?? recorded.find(
    position,
    (entry) => isOfLoop(entry) && (deltas.length === 0 || !isDelta(entry)),
  );
  await session.reached(next ?? outcome);
  if (outcome.event !== "provider:response") throw failureOf(outcome);
  return responseOf(outcome.data);
}

/**
 * Returns the last answer of another provider that the loop received before its call was aborted: it may be
 * why. Null without one, and for a call that was not aborted.
 */
function abortCause({ data: { error }, seq }: Entry, { recorded, position }: EventReader): Entry | null {
  if (!isObject(error) || error.type !== "AbortError") return null;
  const answers = recorded.from(position, seq - 1)
    .filter(({ event, data }) => event === "provider:response" && data.inner !== true);
  return answers.toArray().at(-1) ?? null;
}

/** Returns the error of a stream without an outcome: a limit stopped it, or its process ended. */
function stopOf(aborted: Entry, limit: string | null): Error {
  const { error } = aborted.data;
  if (limit === null || !isObject(error) || error.type !== "PreampError") return failureOf(aborted);
  return errorOfType({ ...error, type: "limit_reached" }, limit);
}

function isDelta({ event }: Entry): boolean {
  return event === "content_block:start" || event === "content_block:delta";
}

/** Returns the deltas before the first complete block; later ones are made from the response itself. */
function deltasOf(recorded: RecordedEvents, from: number, until: number): StreamDelta[] {
  const deltas: StreamDelta[] = [];
  const types = new Map<unknown, StreamDelta["block_type"]>();
  for (const { event, data, seq } of recorded.from(from)) {
    if (seq >= until || event === "content_block:end" || event === "llm:stream_aborted") break;
    const block_index = Number(data.block_index);
    if (event === "content_block:start") {
      const block_type = data.block_type as StreamDelta["block_type"];
      types.set(block_index, block_type);
      deltas.push({
        block_index,
        block_type,
        delta: "",
        ...(typeof data.name === "string" ? { name: data.name } : {}),
      });
    } else if (event === "content_block:delta") {
      deltas.push({ block_index, block_type: types.get(block_index) ?? "text", delta: String(data.delta) });
    }
  }
  return deltas;
}

function responseOf({ response, usage }: JsonObject): ChatResponse {
  const outcome = isObject(response) ? response : {};
  const { tool_calls, ...rest } = outcome;
  return {
    ...rest,
    content: (outcome.content ?? []) as ContentBlock[], // written by the loop
    ...(Array.isArray(tool_calls) ? { tool_calls: tool_calls.map(parseToolCall) } : {}),
    ...(isObject(usage) ? { usage: usage as unknown as NonNullable<ChatResponse["usage"]> } : {}),
  };
}

/** Fields of an event of a failed call that its error has too. */
const ERROR_FIELDS = [
  "provider",
  "status_code",
  "retry_after",
  "delay_multiplier",
  "limit_tokens",
  "requested_tokens",
  "usage",
];

function failureOf({ event, data }: Entry): Error {
  const is_retry = event === "provider:retry";
  const { type, msg } = is_retry
    ? { type: data.error_type, msg: data.error_message }
    : isObject(data.error)
    ? data.error
    : {};
  const facts = ERROR_FIELDS.flatMap((name) => (data[name] ?? null) === null ? [] : [[name, data[name]]]);
  // the recorded name may be any string; an LLMError carries it unchanged
  return new LLMError(String(type ?? "Error") as LLMErrorType, String(msg ?? ""), {
    retryable: is_retry || data.retryable === true,
    ...Object.fromEntries(facts),
  });
}
