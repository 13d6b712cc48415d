/** A backend over a model of the AI SDK (LanguageModel specification, version 4). */
import type { LanguageModelV4, LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { isObject, type JsonObject, LLMError } from "preamp/base";
import {
  AnswerBlocks,
  type AssistantPart,
  type Backend,
  type BackendAnswer,
  type CallIo,
  type CallSettings,
  Degradations,
  type ListedModel,
} from "preamp/provider";
import { toError } from "./errors.ts";
import { type AnswerContext, AnswerReader } from "./from_answer.ts";
import { Names } from "./names.ts";
import { Refusals } from "./refusals.ts";
import { assistantMessages, toOptions } from "./to_prompt.ts";
import type { Vendor } from "./vendor.ts";
import { Wire } from "./wire/wire.ts";

/** Requests for one answer: a vendor may pause a long turn with tools of its own. */
const MAX_CONTINUATIONS = 5;
/** Requests of one attempt without what the server refused. */
const MAX_CORRECTIONS = 5;

/** Returns the backend of a vendor. */
export function aiSdkBackend(vendor: Vendor): Backend {
  const refusals = new Refusals(vendor.text_models);
  return {
    toRequest: (call) => ({
      get body() { // needed for `raw: true` only
        const names = new Names(call.tools, vendor);
        return { model: call.model, ...toOptions(call, { vendor, names, degradations: new Degradations() }) };
      },
      context: call,
    }),
    send: (request, io) => send(vendor, refusals, request.context as CallSettings, io), // set by toRequest
    toError: (error) => toError(error, vendor),
    listModels: (io) => listModels(vendor, io),
  };
}

async function send(
  vendor: Vendor,
  refusals: Refusals,
  requested: CallSettings,
  io: CallIo,
): Promise<BackendAnswer> {
  const names = new Names(requested.tools, vendor);
  let call = requested;
  for (let count = 0;; count++) {
    const degradations = new Degradations();
    const known = refusals.count;
    const wire = new Wire(io, vendor, refusals.changeFor(call));
    const allowed = refusals.without(call, degradations);
    const format = refusals.formatFor(allowed, vendor, degradations);
    const blocks = new AnswerBlocks(callIds(call), { onDelta: io.onDelta, think_tags: vendor.think_tags });
    const context = { vendor, names, degradations, blocks, model: call.model };
    const options = toOptions(allowed, context, format);
    try {
      return await answerTo(vendor.model(call.model, wire), options, context, io, wire);
    } catch (error) {
      // each tool may be reduced and then left out
      const corrected = count < MAX_CORRECTIONS + 2 * call.tools.length
        ? refusals.learn(error, call, { body: wire.body, names, sent: allowed.tools, known })
        : undefined;
      if (!corrected) throw error;
      await io.onRefusal?.(error);
      for (const warning of refusals.tools.takeWarnings()) await io.onWarning?.(warning);
      call = corrected;
    }
  }
}

async function answerTo(
  model: LanguageModelV4,
  options: LanguageModelV4CallOptions,
  context: AnswerContext,
  io: CallIo,
  wire: Wire,
): Promise<BackendAnswer> {
  const reader = new AnswerReader(context);
  const { key, optionsToContinue } = context.vendor;
  for (let count = 0;; count++) {
    const own = { ...options.providerOptions?.[key], ...optionsToContinue?.(reader.metadata) as object };
    const current = { ...options, providerOptions: { [key]: own }, abortSignal: io.signal };
    if (count > 0) current.prompt = [...options.prompt, ...continued(context)];
    const raw = await ask(model, current, reader, context, io, wire);
    io.signal.throwIfAborted(); // a package may end an aborted stream as if it were complete
    if (reader.raw_finish === "pause_turn" && count < MAX_CONTINUATIONS) continue;
    return {
      ...reader.answer(),
      get raw() { // needed for `raw: true` only
        return { request: wire.body, response: raw ?? null };
      },
    };
  }
}

/** Makes one request and reads its answer. Resolves to the answer's body where there is one. */
async function ask(
  model: LanguageModelV4,
  options: LanguageModelV4CallOptions,
  reader: AnswerReader,
  { vendor }: AnswerContext,
  { onDelta, onUsage }: CallIo,
  wire: Wire,
): Promise<unknown> {
  if (onDelta) {
    const includeRawChunks = vendor.readChunk !== undefined;
    const { stream } = await model.doStream({ ...options, includeRawChunks });
    for await (const part of wire.partsOf(stream)) {
      if (part.type !== "raw") reader.read(part);
      else if (isObject(part.rawValue)) {
        const facts = vendor.readChunk?.(part.rawValue) ?? {};
        if (facts.usage) onUsage?.(facts.usage);
        reader.add(facts);
      }
    }
  }
  if (onDelta && !wire.answered_whole) return undefined;
  const { content, finishReason, usage, warnings, response, providerMetadata } = await model.doGenerate(
    options,
  );
  const body = isObject(response?.body) ? response.body : {};
  if (body.error) throw body; // with status 200
  reader.warn(warnings);
  if (response) reader.respond(response);
  reader.add(vendor.readChunk?.(body) ?? {});
  for (const part of content) reader.read(part);
  reader.end(finishReason, usage, providerMetadata);
  return response?.body;
}

/** Returns the message to continue a paused answer: what arrived of it. */
function continued(context: AnswerContext): LanguageModelV4CallOptions["prompt"] {
  const parts = context.blocks.content().map((block): AssistantPart =>
    block.type === "text"
      ? { type: "text", text: String(block.text), block }
      : { type: "native", block: block as JsonObject }
  ).filter((part) => part.type !== "text" || part.text.trim() !== "");
  return assistantMessages(parts, { ...context, mark: undefined });
}

function callIds({ conversation }: CallSettings): string[] {
  return conversation.turns.flatMap(({ parts }) =>
    (parts as readonly AssistantPart[]).flatMap((part) => part.type === "tool_call" ? [part.id] : [])
  );
}

/** The AI SDK has no list of models. */
async function listModels(vendor: Vendor, io: CallIo): Promise<ListedModel[]> {
  const { url, headers } = vendor.models();
  const response = await io.fetch(url, { headers, signal: io.signal });
  const body: unknown = await response.json().catch(() => undefined);
  if (!response.ok) {
    throw toError({
      statusCode: response.status,
      data: body ?? {},
      message: response.statusText,
      responseHeaders: Object.fromEntries(response.headers),
    }, vendor);
  }
  const list = Array.isArray(body) ? body : isObject(body) ? body.data ?? body.models ?? [] : undefined;
  if (!Array.isArray(list)) {
    throw new LLMError("LLMError", "Cannot read the models: the answer has no list of them; check base_url");
  }
  return list.filter(isObject).flatMap((model) => vendor.listed(model) ?? []);
}
