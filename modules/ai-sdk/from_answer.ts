/** Reads the answers of the AI SDK's models, whole or streamed. */
import type {
  LanguageModelV4Content,
  LanguageModelV4FinishReason,
  LanguageModelV4ResponseMetadata,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
  SharedV4ProviderMetadata,
  SharedV4Warning,
} from "@ai-sdk/provider";
import { isObject, type JsonObject, LLMError } from "preamp/base";
import type { AnswerBlocks, AnswerUsage, BackendAnswer, Degradations } from "preamp/provider";
import { parsed } from "./names.ts";
import { CALL_BLOCK, type PromptContext, RESULT_BLOCK } from "./to_prompt.ts";
import type { ChunkFacts } from "./vendor.ts";

const FINISH_REASONS: Readonly<Record<string, string>> = {
  "stop": "stop",
  "length": "length",
  "content-filter": "content_filter",
  "tool-calls": "tool_calls",
};

/** The servers' own words, where the package knows less of them. */
const RAW_REASONS: Readonly<Record<string, string>> = {
  model_length: "length", // Mistral: the window is full
  max_tokens: "length",
  model_context_window_exceeded: "length", // Z.AI
  sensitive: "content_filter", // Z.AI
};

/** Words for the end of an answer that a model could not write. */
const BROKEN: ReadonlySet<string | undefined> = new Set([
  "insufficient_system_resource", // DeepSeek
  "network_error", // Z.AI
  "error",
]);

type Part = LanguageModelV4Content | LanguageModelV4StreamPart;

/** What the answer to one call depends on. */
export interface AnswerContext extends PromptContext {
  /** Model of the request. */
  readonly model: string;
  readonly blocks: AnswerBlocks;
}

/** Collects the parts of one answer. */
export class AnswerReader {
  readonly #context: AnswerContext;
  readonly #blocks: AnswerBlocks;
  readonly #vendor: AnswerContext["vendor"];
  readonly #names: AnswerContext["names"];
  readonly #degradations: Degradations;
  /** Keys of the blocks that arrive, by the ids of their parts: a call may repeat the id of another one. */
  readonly #keys = new Map<string, string>();
  #count = 0;
  #text_key = "";
  readonly #citations: JsonObject[] = [];
  #finish: LanguageModelV4FinishReason | undefined;
  #usage: LanguageModelV4Usage | undefined;
  #response: LanguageModelV4ResponseMetadata = {};
  #metadata: JsonObject = {};

  constructor(context: AnswerContext) {
    const { blocks, vendor, names, degradations } = this.#context = context;
    this.#blocks = blocks;
    this.#vendor = vendor;
    this.#names = names;
    this.#degradations = degradations;
  }

  /** Fields of the vendor about the whole answer. */
  get metadata(): JsonObject {
    return this.#metadata;
  }

  /** Vendor's own word for the end of the answer. */
  get raw_finish(): string | undefined {
    return this.#finish?.raw;
  }

  /** Reads a part of a stream, or of the content of a whole answer. */
  read(part: Part): void {
    const blocks = this.#blocks;
    switch (part.type) {
      case "text":
      case "reasoning": {
        const type = part.type === "text" ? "text" : "thinking";
        const key = this.#start();
        blocks.append(key, type, part.text);
        if (type === "text") this.#text_key = key;
        return this.#keep(key, type, part.providerMetadata);
      }
      case "text-start":
      case "reasoning-start":
        return this.#keep(this.#start(part.id), kindOf(part.type), part.providerMetadata);
      case "text-delta":
      case "reasoning-delta":
        blocks.append(this.#keyOf(part.id), kindOf(part.type), part.delta);
        if (part.type === "text-delta") this.#text_key = this.#keyOf(part.id);
        return this.#keep(this.#keyOf(part.id), kindOf(part.type), part.providerMetadata);
      case "text-end":
      case "reasoning-end":
        return this.#keep(this.#keyOf(part.id), kindOf(part.type), part.providerMetadata);
      case "tool-input-start":
        if (part.providerExecuted) return;
        return blocks.startCall(this.#start(`call ${part.id}`), part.id, this.#names.toolOf(part.toolName));
      case "tool-input-delta":
        return blocks.appendArguments(this.#keys.get(`call ${part.id}`) ?? "", part.delta);
      case "tool-call": {
        const { toolCallId: id, toolName, providerExecuted } = part;
        const name = this.#names.toolOf(toolName);
        const input = this.#names.inputOf(name, part.input);
        if (providerExecuted) {
          const fields = { id, name, input: parsed(input) ?? input, ...this.#own(part.providerMetadata) };
          return blocks.add(this.#start(), CALL_BLOCK, fields);
        }
        const begun = this.#keys.get(`call ${id}`);
        this.#keys.delete(`call ${id}`);
        const key = begun ?? this.#start();
        if (begun === undefined) blocks.startCall(key, id, name, input);
        else blocks.completeArguments(key, input);
        const { itemId: _, ...own } = this.#own(part.providerMetadata);
        return blocks.addFields(key, "tool_call", own);
      }
      case "tool-result": {
        const { toolCallId: id, toolName: name, result } = part;
        return blocks.add(this.#start(), RESULT_BLOCK, {
          id,
          name,
          result,
          ...this.#own(part.providerMetadata),
        });
      }
      case "file":
        if (part.data.type !== "data") return;
        return blocks.add(this.#start(), part.mediaType.startsWith("image/") ? "image" : "file", {
          source: { type: "base64", media_type: part.mediaType, data: base64(part.data.data) },
        });
      case "source":
        if (part.sourceType === "url") this.#citations.push({ url: part.url, title: part.title ?? part.url });
        return;
      case "stream-start":
        return this.warn(part.warnings);
      case "response-metadata":
        return this.respond(part);
      case "finish":
        return this.end(part.finishReason, part.usage, part.providerMetadata);
      case "error":
        if (isUnknownEvent(part.error)) return; // of tomorrow
        throw part.error;
    }
  }

  /** Adds what the package leaves out of a chunk. */
  add({ thought, model }: ChunkFacts): void {
    if (thought) this.#blocks.append(this.#keyOf(thought.id), "thinking", thought.text);
    if (model !== undefined) this.#response = { ...this.#response, modelId: model };
  }

  /** Notes what the package left out. */
  warn(warnings: readonly SharedV4Warning[]): void {
    for (const warning of warnings) {
      if (warning.type !== "unsupported" && warning.type !== "compatibility") continue;
      if (warning.feature === "reasoningSummary") continue; // our default
      this.#degradations.add(warning.feature, warning.details ?? "the model does not support it");
    }
  }

  respond({ id, modelId }: LanguageModelV4ResponseMetadata): void {
    this.#response = { ...this.#response, ...(id ? { id } : {}), ...(modelId ? { modelId } : {}) };
  }

  /** Sums the usage of answers that continue each other. */
  end(
    finish: LanguageModelV4FinishReason,
    usage: LanguageModelV4Usage,
    metadata?: SharedV4ProviderMetadata,
  ): void {
    this.#finish = finish;
    this.#metadata = { ...this.#metadata, ...this.#own(metadata) };
    this.#usage = this.#usage ? sumOf(this.#usage, usage) : usage;
  }

  /** @throws {LLMError} `StreamError` when the answer broke off. */
  answer(): BackendAnswer {
    const finish = this.#finish;
    const is_broken = finish?.unified === "other" && finish.raw === undefined; // of older packages
    if (!finish || is_broken || finish.unified === "interrupted") {
      throw new LLMError("StreamError", "Cannot finish the answer: it broke off before its end");
    }
    if (BROKEN.has(finish.raw)) {
      throw new LLMError("ProviderUnavailableError", `The server could not finish the answer: ${finish.raw}`);
    }
    if (this.#citations.length > 0 && this.#text_key !== "") {
      this.#blocks.addFields(this.#text_key, "text", { citations: this.#citations });
    }
    const { id, modelId } = this.#response;
    const { vendor, model, names, degradations } = this.#context;
    const metadata = this.#metadata;
    const { raw: raw_finish = "" } = finish;
    vendor.finish?.(this.#blocks, {
      requested: model,
      model: modelId,
      metadata,
      raw_finish,
      names,
      degradations,
    });
    const content = this.#blocks.content();
    const tool_calls = this.#blocks.calls();
    const has_output = content.some(({ type }) => type !== "thinking");
    const why = `${finish.raw ?? finish.unified}${suffix(metadata.finishMessage)}`;
    if (!has_output && finish.unified === "content-filter") {
      throw new LLMError("ContentFilterError", `Cannot get an answer: the API blocked it (${why})`);
    }
    if (!has_output && (finish.unified === "error" || finish.unified === "other")) {
      throw new LLMError("StreamError", `Cannot get an answer: the model ended without one (${why})`);
    }
    const reason = reasonOf(finish);
    const facts = { ...(id ? { response_id: id } : {}), ...factsOf(metadata, vendor) };
    const is_call = tool_calls.length > 0 && reason !== "length" && reason !== "content_filter";
    return {
      content,
      tool_calls,
      finish_reason: is_call ? "tool_calls" : reason,
      usage: this.#usage && usageOf(this.#usage, vendor),
      model: modelId,
      degradation: this.#degradations.merged(),
      ...(Object.keys(facts).length > 0 ? { metadata: facts } : {}),
    };
  }

  #start(id?: string): string {
    const key = String(this.#count++);
    if (id !== undefined) this.#keys.set(id, key);
    return key;
  }

  #keyOf(id: string): string {
    return this.#keys.get(id) ?? this.#start(id);
  }

  /** Adds what the vendor wants back; ids of its items only of reasoning, which consists of several parts. */
  #keep(key: string, type: "text" | "thinking", metadata: SharedV4ProviderMetadata | undefined): void {
    const { signature, redactedData, itemId, ...own } = this.#own(metadata);
    if (redactedData) return this.#blocks.add(key, "redacted_thinking", { data: redactedData });
    const fields = {
      ...own,
      ...(signature ? { signature } : {}),
      ...(itemId && type === "thinking" ? { itemId } : {}),
    };
    if (Object.keys(fields).length > 0) this.#blocks.addFields(key, type, fields);
  }

  /** Fields of the vendor that it wants back; without nulls. */
  #own(metadata: SharedV4ProviderMetadata | undefined): JsonObject {
    const own = metadata?.[this.#vendor.key] ?? {};
    return Object.fromEntries(
      Object.entries(own).filter(([, value]) => value !== null && value !== undefined),
    );
  }
}

/** Types of events with a part of the answer, or with its end. */
const OF_ANSWER =
  /^(?:response\.(?:output_text|refusal|function_call|completed|incomplete|failed)|content_block|message_|error)/;

/** Returns whether a package could not read an event that has no part of the answer, or one of tomorrow. */
function isUnknownEvent(error: unknown): boolean {
  const { type, item } = isObject(error) && isObject(error.value) ? error.value : {};
  const is_of_answer = isObject(item)
    ? item.type === "message" || item.type === "function_call"
    : typeof type !== "string" || OF_ANSWER.test(type);
  if (!is_of_answer) return true;
  const issues = isObject(error) || error instanceof Error
    ? (error.cause as { issues?: JsonObject[] } | undefined)?.issues
    : [];
  return issues?.[0]?.note === "No matching discriminator";
}

function kindOf(type: string): "text" | "thinking" {
  return type.startsWith("text") ? "text" : "thinking";
}

function base64(data: string | Uint8Array): string {
  return typeof data === "string" ? data : data.toBase64();
}

function reasonOf({ raw = "", unified }: LanguageModelV4FinishReason): string {
  const stated = Object.hasOwn(RAW_REASONS, raw) ? RAW_REASONS[raw] : FINISH_REASONS[unified];
  return stated ?? (raw.toLowerCase() || "stop");
}

function factsOf(metadata: JsonObject, { facts = {} }: AnswerContext["vendor"]): JsonObject {
  const kept = Object.entries(facts).filter(([name]) =>
    metadata[name] !== undefined && metadata[name] !== null
  );
  return Object.fromEntries(kept.map(([name, own]) => [own, metadata[name]]));
}

function suffix(message: unknown): string {
  return typeof message === "string" ? `: ${message.slice(0, 300)}` : "";
}

/** Returns usage by our convention: cache reads and writes are within the tokens of the request. */
function usageOf(
  { inputTokens, outputTokens, raw }: LanguageModelV4Usage,
  { states_cost, readUsage }: AnswerContext["vendor"],
): AnswerUsage | undefined {
  const { total, cacheRead, cacheWrite } = inputTokens;
  if (total === undefined && outputTokens.total === undefined) return undefined;
  const { reasoning } = outputTokens;
  const cost_usd = states_cost && raw ? statedCost(raw) : undefined;
  return {
    input_tokens: total ?? 0,
    output_tokens: outputTokens.total ?? 0,
    ...(cacheRead === undefined ? {} : { cache_read_tokens: cacheRead }),
    ...(cacheWrite === undefined ? {} : { cache_write_tokens: cacheWrite }),
    ...(reasoning ? { reasoning_tokens: reasoning } : {}),
    ...(cost_usd === undefined ? {} : { cost_usd }),
    ...(raw ? readUsage?.(raw) : {}),
  };
}

/** Dollars; a larger number is not the cost of one answer. */
const MAX_COST = 1e6;

/**
 * Returns the cost that OpenRouter states in US dollars; undefined without one. With the user's own key of
 * the model's vendor, `cost` is OpenRouter's fee alone, and the vendor's price is stated apart.
 */
function statedCost({ cost, is_byok, cost_details }: JsonObject): string | undefined {
  const vendor = isObject(cost_details) ? cost_details.upstream_inference_cost : undefined;
  const parts = is_byok === true ? [cost, vendor] : [cost];
  if (!parts.every((part) => typeof part === "number" && part >= 0)) return undefined;
  const sum = (parts as number[]).reduce((total, part) => total + part, 0);
  return sum < MAX_COST ? sum.toFixed(12).replace(/\.?0+$/, "") : undefined;
}

function sumOf(first: LanguageModelV4Usage, second: LanguageModelV4Usage): LanguageModelV4Usage {
  const sum = <T extends object>(one: T, other: T) =>
    Object.fromEntries(
      Object.keys({ ...one, ...other }).map((key) => {
        const [a, b] = [one, other].map((values) => (values as Record<string, number | undefined>)[key]);
        return [key, a === undefined && b === undefined ? undefined : (a ?? 0) + (b ?? 0)];
      }),
    ) as T;
  return {
    inputTokens: sum(first.inputTokens, second.inputTokens),
    outputTokens: sum(first.outputTokens, second.outputTokens),
  };
}
