/** Providers: LLM backends (behaviour.md §4.4). */
import type { JsonObject } from "./json.ts";
import type { ChatRequest, ChatResponse, StreamDelta } from "./messages.ts";
import type { ToolCall } from "./tools.ts";

/** One field of a provider's configuration, for set-up screens. */
export interface ConfigField {
  id: string;
  display_name: string;
  field_type: "text" | "secret" | "choice" | "boolean";
  prompt: string;
  env_var?: string | null;
  choices?: string[] | null;
  required: boolean;
  default?: string | null;
  show_when?: JsonObject | null;
  requires_model: boolean;
}

/** Metadata of a provider. Budgets come from `defaults.context_window` and `defaults.max_output_tokens`, in tokens. */
export interface ProviderInfo {
  id: string;
  display_name: string;
  credential_env_vars: string[];
  capabilities: string[];
  defaults: JsonObject;
  config_fields: ConfigField[];
}

/** Metadata of a model. */
export interface ModelInfo {
  id: string;
  display_name: string;
  /** Tokens of request and answer together. */
  context_window: number;
  /** Tokens of an answer at the most. */
  max_output_tokens: number;
  capabilities: string[];
  defaults: JsonObject;
  [key: string]: unknown;
}

/** What `complete` is given beside the request. */
export interface CompleteOptions {
  /** Aborts on immediate cancellation and at the run's deadline. */
  signal?: AbortSignal;
  /** Told each piece of the answer as it arrives; must not throw and returns at once. */
  onDelta?: (delta: StreamDelta) => void;
}

/** An LLM backend. */
export interface Provider {
  readonly name: string;
  /** Lower is preferred; default 100. */
  readonly priority?: number;
  getInfo(): ProviderInfo;
  listModels(): Promise<ModelInfo[]>;
  /** Answers one request. Rejects with an `LLMError` (or anything; it is classified). */
  complete(request: ChatRequest, options?: CompleteOptions): Promise<ChatResponse>;
  parseToolCalls(response: ChatResponse): ToolCall[];
}

/** Returns a ProviderInfo with every default filled in; the requirements' constructor. */
export function ProviderInfo(fields: { id: string } & Partial<ProviderInfo>): ProviderInfo {
  return {
    display_name: fields.id,
    credential_env_vars: [],
    capabilities: [],
    defaults: {},
    config_fields: [],
    ...fields,
  };
}

/** Returns a ModelInfo with every default filled in; the requirements' constructor. */
export function ModelInfo(
  fields: { id: string; context_window: number; max_output_tokens: number } & Partial<ModelInfo>,
): ModelInfo {
  return { display_name: fields.id, capabilities: [], defaults: {}, ...fields };
}
