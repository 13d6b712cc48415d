/** What the adapter must know about a vendor's package. */
import type { LanguageModelV4, LanguageModelV4CallOptions } from "@ai-sdk/provider";
import type { JsonObject, LLMError, LLMErrorOptions } from "preamp/base";
import type {
  AnswerBlocks,
  AnswerUsage,
  CallIo,
  CallSettings,
  Degradations,
  ListedModel,
  ProviderSettings,
} from "preamp/provider";
import type { EventReader } from "./wire/event_reader.ts";

/** Type of a failure, and the seconds to wait. */
export type LLMErrorFacts =
  & { type?: LLMError["type"] | undefined }
  & Pick<LLMErrorOptions, "retry_after" | "limit_tokens" | "requested_tokens">;

/** Request of the models of an account. */
export interface ModelsRequest {
  readonly url: string;
  readonly headers: Record<string, string>;
}

/** What a chunk of a stream states. */
export interface ChunkFacts {
  /** Tokens so far: the usage of an answer that breaks off. */
  readonly usage?: AnswerUsage | undefined;
  /** A part of reasoning, with the id of its block. */
  readonly thought?: { readonly id: string; readonly text: string } | undefined;
  /** Model that answers. */
  readonly model?: string | undefined;
}

/** Facts about a complete answer. */
export interface AnswerFacts {
  /** Model of the request, and the one that answered. */
  readonly requested: string;
  readonly model: string | undefined;
  /** Fields of the vendor about the whole answer. */
  readonly metadata: JsonObject;
  /** The vendor's own word for the end. */
  readonly raw_finish: string | undefined;
  /** Names of the tools in the request. */
  readonly names: { has(valid: string): boolean; toolOf(valid: string): string };
  readonly degradations: Degradations;
}

/** A vendor's package, and what its models need. */
export interface Vendor {
  /** Name of its options and metadata, such as `anthropic`. */
  readonly key: string;
  /** Media types of images and files that its models read; others become a note. */
  readonly media: RegExp;
  /** Ids of its models that take no images; others that do not are found out. */
  readonly text_models?: RegExp;
  /** Media types by address; default: `media`. */
  readonly urls?: RegExp;
  /** Whether it takes ids of uploaded files; default false. */
  readonly takes_ids?: boolean;
  /**
   * Whether the API is Chat Completions, where results of tools are texts, so that their images follow as the
   * user's, and where the vendor runs no tools; default false.
   */
  readonly is_chat?: boolean;
  /** Whether a call is answered by the text of its result, which must have exactly one; default false. */
  readonly one_text_result?: boolean;
  /** Fields of a tool that name one of the vendor's, such as `googleSearch`. */
  readonly native_tools?: readonly string[];
  /** Names of properties in a tool's input that the API takes; default: all. */
  readonly property_names?: RegExp;
  /** Whether the API has JSON without a schema; default true. */
  readonly json_mode?: boolean;
  /** Fields of an answer's metadata that are kept, with their names in ours. */
  readonly facts?: Readonly<Record<string, string>>;
  /** Whether `usage.cost` is in US dollars, as OpenRouter states it; default false. */
  readonly states_cost?: boolean;
  /** Whether servers may leave reasoning in `<think>` tags at the beginning of a text; default false. */
  readonly think_tags?: boolean;
  /** Whether the model is asked in words for a format that the request cannot state; else the loop asks. */
  readonly instructs?: boolean;
  /**
   * Returns the option that marks the end of a cached prefix for a model; undefined where it has no such
   * option.
   */
  breakpoint?(model: string): JsonObject | undefined;
  /** Returns the model of a call. */
  model(id: string, io: Pick<CallIo, "fetch">): LanguageModelV4;
  /** Returns the options that replace the common ones. */
  options?(call: CallSettings, degradations: Degradations): Partial<LanguageModelV4CallOptions>;
  /** Returns a schema of a tool's input or of an answer in the form that the API takes. */
  schema?(schema: JsonObject): JsonObject;
  /** Returns the reader of one answer. */
  reader(): EventReader;
  /** Returns what the package leaves out of a chunk of a stream, or of a whole answer. */
  readChunk?(chunk: JsonObject): ChunkFacts;
  /** Returns what the package leaves out of the usage of a complete answer. */
  readUsage?(usage: JsonObject): Partial<AnswerUsage>;
  /** Returns options of the request that continues a paused answer, from the answer's metadata. */
  optionsToContinue?(metadata: JsonObject): JsonObject;
  /** Adds to a complete answer what the next request needs of it, or reports what is wrong with it. */
  finish?(blocks: AnswerBlocks, answer: AnswerFacts): void;
  /** Returns what the vendor's error means where status and words do not say it. */
  classify?(status: number, message: string, error: JsonObject): LLMErrorFacts | undefined;
  models(): ModelsRequest;
  /** Returns a model of the list; undefined for one that answers no messages. */
  listed(model: JsonObject): ListedModel | undefined;
}

/** Returns the headers that a plan adds to each request. */
export function headersOf({ config: { headers } }: ProviderSettings): Record<string, string> {
  return headers as Record<string, string> | undefined ?? {}; // checked by the module's schema
}
