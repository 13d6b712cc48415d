/** Proxies of the session's tools, providers and conversation for a guest: each call is a request to the host's guarded handle. */
import { toPlain, toPlainObject } from "../../sdk/json.ts";
import { toChatResponse } from "../../sdk/messages.ts";
import { map, Object } from "../../sdk/primordials.ts";
import { withSnakeCase } from "../../sdk/snake_case_aliases.ts";
import {
  parseToolCall,
  type Tool,
  type ToolCall,
  type ToolCallContext,
  ToolResult,
} from "../../sdk/tools.ts";
import type {
  ChatRequest,
  ChatResponse,
  CompleteOptions,
  ContextManager,
  JsonObject,
  JsonSchema,
  Message,
  ModelInfo,
  Provider,
  ProviderInfo,
  RequestOptions,
  RiskLevel,
  StreamDelta,
} from "../../sdk/types.ts";
import type { ProviderView, ToolView } from "../protocol.ts";
import type { GuestRpc } from "./rpc.ts";

/** Proxy of a tool. */
export class ToolProxy implements Tool {
  readonly name: string;
  readonly description: string;
  readonly input_schema: JsonSchema;
  readonly risk: RiskLevel;
  readonly requires_approval: boolean;
  readonly idempotent: boolean;
  declare readonly native_specs?: Readonly<Record<string, JsonObject>>;
  readonly #rpc: GuestRpc;
  readonly #key: string;

  constructor(rpc: GuestRpc, view: ToolView) {
    this.#rpc = rpc;
    this.#key = view.key;
    this.name = view.name;
    this.description = view.description;
    this.input_schema = view.input_schema;
    this.risk = view.risk ?? "low";
    this.requires_approval = view.requires_approval === true;
    this.idempotent = view.idempotent === true;
    if (view.native_specs) this.native_specs = view.native_specs as Record<string, JsonObject>; // from the host
    Object.freeze(this);
  }

  async execute(input: JsonObject, call?: ToolCallContext): Promise<ToolResult> {
    const answer = await this.#rpc.request(
      `tool/${this.#key}`,
      "execute",
      [toPlainObject(input), call ? { id: call.id } : null],
      { signal: call?.signal, onPiece: call && ((text) => call.progress(String(text))) },
    );
    return ToolResult(answer as { success: boolean; output: unknown; error: JsonObject | null });
  }
}

/** Proxy of a provider. */
export class ProviderProxy implements Provider {
  readonly name: string;
  readonly priority: number;
  readonly #rpc: GuestRpc;
  readonly #view: ProviderView;
  declare readonly getModelInfo?: () => unknown;

  constructor(rpc: GuestRpc, view: ProviderView) {
    this.#rpc = rpc;
    this.#view = view;
    this.name = view.name;
    this.priority = view.priority;
    if (view.model_info !== undefined) this.getModelInfo = () => toPlain(view.model_info);
    Object.freeze(this);
  }

  getInfo(): ProviderInfo {
    return this.#view.info;
  }

  async listModels(): Promise<ModelInfo[]> {
    return await this.#rpc.request(`provider/${this.#view.key}`, "listModels", []) as ModelInfo[];
  }

  async complete(request: ChatRequest, options: CompleteOptions = {}): Promise<ChatResponse> {
    const { signal, onDelta } = options;
    const streams = onDelta !== undefined;
    const answer = await this.#rpc.request(
      `provider/${this.#view.key}`,
      "complete",
      [toPlain(request), streams],
      { signal, onPiece: streams ? (delta) => onDelta(delta as StreamDelta) : undefined },
    );
    return toChatResponse(answer);
  }

  parseToolCalls(response: ChatResponse): ToolCall[] {
    return map(response.tool_calls ?? [], parseToolCall);
  }
}

withSnakeCase(ProviderProxy);

/** Proxy of the conversation. */
export class ContextProxy implements ContextManager {
  readonly #rpc: GuestRpc;
  readonly #nameOf: (provider: object) => string | undefined;
  readonly #publish: (factory: (() => string | Promise<string>) | null) => void;

  /**
   * @param nameOf Returns the name of a provider.
   * @param publish Sends a system prompt factory to the host.
   */
  constructor(
    rpc: GuestRpc,
    nameOf: (provider: object) => string | undefined,
    publish: (factory: (() => string | Promise<string>) | null) => void,
  ) {
    this.#rpc = rpc;
    this.#nameOf = nameOf;
    this.#publish = publish;
  }

  async addMessage(message: Message): Promise<void> {
    await this.#rpc.request("context", "addMessage", [toPlain(message)]);
  }

  async getMessagesForRequest({ provider, ...options }: RequestOptions = {}): Promise<Message[]> {
    const name = provider && this.#nameOf(provider);
    const plain = { ...toPlainObject(options), ...(name === undefined ? {} : { provider: name }) };
    return await this.#rpc.request("context", "getMessagesForRequest", [plain]) as Message[];
  }

  async getMessages(): Promise<Message[]> {
    return await this.#rpc.request("context", "getMessages", []) as Message[];
  }

  async setMessages(messages: Message[]): Promise<void> {
    await this.#rpc.request("context", "setMessages", [toPlain(messages)]);
  }

  async clear(): Promise<void> {
    await this.#rpc.request("context", "clear", []);
  }

  setSystemPromptFactory(factory: (() => string | Promise<string>) | null): void {
    this.#publish(factory);
  }
}

withSnakeCase(ContextProxy);
