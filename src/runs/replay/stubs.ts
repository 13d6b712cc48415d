/** Modules that stand in for the providers, tools and hooks of a recorded run: the same names, answers from the recorded. */
import type { Entry } from "../../kernel/host.ts";
import type {
  MountedDescriptors,
  ProviderDescriptor,
  ToolDescriptor,
} from "../../kernel/mounting/mount_descriptors.ts";
import { LLMError, type LLMErrorType, PreampError } from "../../sdk/errors.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import { parseToolCall } from "../../sdk/tools.ts";
import type {
  ChatResponse,
  CompleteOptions,
  ContentBlock,
  Coordinator,
  Module,
  Provider,
  StreamDelta,
  Tool,
} from "../../sdk/types.ts";
import type { RecordedEvents } from "./recorded_events.ts";

/** What stand-ins ask. */
export interface EventReader {
  readonly recorded: RecordedEvents;
  /** Index of the entry that comes next. */
  readonly position: number;
  /** Name of the ceiling that ended the turn, or null. */
  readonly limit: string | null;
  /** Resolves when an entry comes next, at the time when it came; at once when that was before. */
  reached(entry: Entry): Promise<void> | void;
  /** Makes happen what ended a call that has no outcome on the recorded, such as a ceiling. */
  endWithoutOutcome(): void;
}

/** Returns the module that stands in for one that was mounted. */
export function stubFor(mounted: Entry, surface: MountedDescriptors, reader: EventReader): Module {
  const names = (mounted.data.names as unknown[]).map(String); // written by the kernel
  switch (mounted.data.type) {
    case "tool":
      return moduleOf((coordinator) =>
        mountAll(coordinator, "tools", names, (name) => {
          const found = surface.tools.find(({ key }) => key === name);
          return found && toolOf(found, reader);
        })
      );
    case "provider":
      return moduleOf((coordinator) =>
        mountAll(coordinator, "providers", names, (name) => {
          const found = surface.providers.find((provider) => provider.name === name);
          return found && providerOf(found, reader);
        })
      );
    default:
      return {
        ...moduleOf(async (coordinator) => {
          for (const event of names) coordinator.hooks.register(event, () => null, { name: "replay" });
          // a hook that listens to nothing has mounted something: that follows when everyone else is there
          if (names.length === 0) await mountRemainingTools(coordinator, surface, reader);
        }),
        onSessionReady: (coordinator) => mountRemainingTools(coordinator, surface, reader),
      };
  }
}

function moduleOf(mount: (coordinator: Coordinator) => Promise<void>): Module {
  return { mount };
}

async function mountAll(
  coordinator: Coordinator,
  point: string,
  names: readonly string[],
  make: (name: string) => object | undefined,
): Promise<void> {
  for (const name of names) {
    const made = make(name);
    if (made) await coordinator.mount(point, made, { name });
  }
}

/** Mounts what modules mounted beside their own kind. */
async function mountRemainingTools(
  coordinator: Coordinator,
  surface: MountedDescriptors,
  reader: EventReader,
): Promise<void> {
  const claimed = namesClaimed(reader.recorded);
  for (const tool of surface.tools) {
    if (claimed.has(tool.key) || tool.key in coordinator.tools) continue;
    await coordinator.mount("tools", toolOf(tool, reader), { name: tool.key });
  }
}

function namesClaimed(recorded: RecordedEvents): Set<string> {
  const mounted = recorded.all(({ event, data }) => event === "module:mounted" && data.type === "tool");
  return new Set(mounted.flatMap(({ data }) => (data.names as unknown[]).map(String)));
}

function toolOf({ key: _, ...surface }: ToolDescriptor, reader: EventReader): Tool {
  return {
    ...surface as Omit<ToolDescriptor, "key" | "native_specs">,
    ...(surface.native_specs ? { native_specs: surface.native_specs as Record<string, JsonObject> } : {}),
    execute(_input, call) {
      const outcome = reader.recorded.find(
        0,
        ({ event, data }) =>
          (event === "tool:post" || event === "tool:error") && data.tool_call_id === call?.id,
      );
      if (!outcome) {
        reader.endWithoutOutcome();
        return new Promise(() => {}); // it never came to an end: cancellation or a ceiling ends the wait
      }
      if (outcome.event === "tool:error") throw errorOf(outcome.data.error, reader.limit);
      return outcome.data.result;
    },
  };
}

/** Places in the authors' files, as the log has them, of the errors that stand-ins throw. */
const locations = new WeakMap<Error, string>();

/** Returns where in the author's files the recorded error was thrown. */
export function placeOf(error: unknown): string | undefined {
  return error instanceof Error ? locations.get(error) : undefined;
}

/** The error as the log tells it: a code where the type is one, so that it is outcome the same again. */
function errorOf(outcome: unknown, limit: string | null): Error {
  const error = errorOfType(isObject(outcome) ? outcome : {}, limit);
  if (isObject(outcome) && typeof outcome.at === "string") locations.set(error, outcome.at);
  return error;
}

function errorOfType({ type = "Error", msg = "" }: JsonObject, limit: string | null): Error {
  const error = new Error(String(msg));
  if (type === "limit_reached") {
    return new PreampError("limit_reached", error.message, { facts: { limit: limit ?? "limit" } });
  }
  if (type === "interrupted" || String(type).startsWith("tool_")) return Object.assign(error, { code: type });
  error.name = String(type);
  return error;
}

function providerOf({ name, priority, info, model_info }: ProviderDescriptor, reader: EventReader): Provider {
  return {
    name,
    priority,
    getInfo: () => info,
    listModels: () => Promise.resolve([]),
    ...(model_info ? { getModelInfo: () => model_info } : {}),
    complete: (_request, options) => answerFrom(reader, name, options),
    parseToolCalls: (response) => response.tool_calls ?? [],
  };
}

/** Plays the next attempt of a provider: its deltas as they came, then its answer or its failure. */
async function answerFrom(
  reader: EventReader,
  name: string,
  options: CompleteOptions = {},
): Promise<ChatResponse> {
  const { recorded, position } = reader;
  const outcome = recorded.find(position, (entry) => isOutcome(entry, name));
  const until = outcome?.seq ?? Infinity;
  const deltas = outcome?.data.inner === true ? [] : deltasOf(recorded, position, until);
  for (const delta of deltas) options.onDelta?.(delta);
  if (!outcome) {
    const aborted = recorded.find(position, ({ event }) => event === "llm:stream_aborted");
    if (aborted) throw stopOf(aborted, reader.limit);
    const partial = recorded.is_cut ? partialResponse(recorded, position) : null;
    if (partial !== null) return partial;
    reader.endWithoutOutcome();
    return await new Promise(() => {}); // as for tools
  }
  // what the session tells first beside the deltas may have needed the answer: then it was there, and not before
  const next = recorded.find(
    position,
    (entry) => recorded.sourceOf(entry) !== "recording" && (deltas.length === 0 || !isDelta(entry)),
  );
  await reader.reached(next ?? outcome);
  if (outcome.event !== "provider:response") throw failureOf(outcome);
  return responseOf(outcome.data);
}

/** A stream that ended without an outcome: a limit stopped it, or its process ended. */
function stopOf(aborted: Entry, limit: string | null): Error {
  const { error } = aborted.data;
  if (limit === null || !isObject(error) || error.type !== "PreampError") return failureOf(aborted);
  return errorOfType({ ...error, type: "limit_reached" }, limit);
}

function isDelta({ event }: Entry): boolean {
  return event === "content_block:start" || event === "content_block:delta";
}

function isOutcome({ event, data }: Entry, name: string): boolean {
  if (data.provider !== name) return false;
  return event === "provider:response" || event === "provider:error" ||
    (event === "provider:retry" && data.request_id !== undefined);
}

/** The deltas that came before the first block was whole: what follows is outcome from the answer itself. */
function deltasOf(recorded: RecordedEvents, from: number, until: number): StreamDelta[] {
  const deltas: StreamDelta[] = [];
  const types = new Map<unknown, StreamDelta["block_type"]>();
  recorded.find(from, ({ event, data, seq }) => {
    if (seq >= until || event === "content_block:end" || event === "llm:stream_aborted") return true;
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
    return false;
  });
  return deltas;
}

/** An answer of which blocks were outcome whole when the process ended: those, and what is known of the others; null: none was. */
function partialResponse(recorded: RecordedEvents, from: number): ChatResponse | null {
  const ends: JsonObject[] = [];
  const types = new Map<unknown, JsonObject>();
  const texts = new Map<unknown, string>();
  recorded.find(from, ({ event, data }) => {
    const { block_index: index } = data;
    if (event === "content_block:start") types.set(index, data);
    else if (event === "content_block:delta") texts.set(index, (texts.get(index) ?? "") + String(data.delta));
    else if (event === "content_block:end") ends.push(data);
    return false;
  });
  const [first] = ends;
  if (!first) return null;
  const content = Array.from({ length: Number(first.total_blocks) }, (_, index): ContentBlock => {
    const whole = ends.find(({ block_index }) => block_index === index);
    if (whole) return whole.block as ContentBlock; // written by the loop
    const { block_type: type = "text", name } = types.get(index) ?? {};
    const text = texts.get(index) ?? "";
    if (type === "tool_call") {
      return { type: "tool_call", id: `call_${index}`, name: String(name), input: {} };
    }
    return type === "thinking" ? { type: "thinking", thinking: text } : { type: "text", text };
  });
  const calls = content.filter(({ type }) => type === "tool_call")
    .map(({ id, name, input }) => parseToolCall({ id, name, arguments: input }));
  return calls.length > 0 ? { content, tool_calls: calls } : { content };
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

function failureOf({ event, data }: Entry): Error {
  const error = isObject(data.error) ? data.error : {};
  const type = String((event === "provider:retry" ? data.error_type : error.type) ?? "Error");
  const message = String((event === "provider:retry" ? data.error_message : error.msg) ?? "");
  const number = (value: unknown) => typeof value === "number" ? value : undefined;
  const facts = {
    provider: typeof data.provider === "string" ? data.provider : undefined,
    retryable: event === "provider:retry" || data.retryable === true,
    status_code: number(data.status_code),
    retry_after: number(data.retry_after),
    delay_multiplier: number(data.delay_multiplier),
  };
  const known = Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined));
  // any name may stand there; an LLMError carries it as it is
  return new LLMError(type as LLMErrorType, message, known);
}
