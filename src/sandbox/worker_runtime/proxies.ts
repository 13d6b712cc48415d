/**
 * What a guest has of its session: tools, providers, the conversation, hooks and state. Each call is a
 * request to the host's guarded handle; registered handlers stay in the guest.
 */
import { disposer, readRegistration, requireEventName } from "../../sdk/handler_list.ts";
import { hookResultData } from "../../sdk/hook_result.ts";
import { HookRegistryBase } from "../../sdk/hooks.ts";
import { isObject, type JsonObject, toPlain, toPlainObject } from "../../sdk/json.ts";
import { toChatResponse } from "../../sdk/messages.ts";
import type { ContextOverflow } from "../../sdk/context_overflow.ts";
import { withRequestId } from "../../sdk/request_ids.ts";
import { map, Object, Proxy, toText, WeakMap } from "../../sdk/primordials.ts";
import { withSnakeCase } from "../../sdk/snake_case_aliases.ts";
import {
  parseToolCall,
  type Tool,
  type ToolCall,
  ToolResult,
  type ToolResultFields,
} from "../../sdk/tools.ts";
import type {
  ChatRequest,
  ChatResponse,
  CompleteOptions,
  ContextManager,
  Disposer,
  Emission,
  HookHandler,
  HookOptions,
  HookRegistry,
  Message,
  ModelInfo,
  Provider,
  ProviderInfo,
  RequestOptions,
  StreamDelta,
} from "../../sdk/types.ts";
import type { NumberedEmission, ProviderView, ToolView } from "../protocol.ts";
import type { GuestObjects } from "./exported_objects.ts";
import type { GuestRpc } from "./rpc.ts";

/** Most bytes of a session's state as JSON. Checked here too, so that the assignment itself throws. */
const MAX_STATE_BYTES = 65_536;

export function toolProxy(rpc: GuestRpc, { key, ...view }: ToolView): Tool {
  return Object.freeze(
    {
      risk: "low",
      requires_approval: false,
      idempotent: false,
      ...view,
      execute: async (input, call) => {
        const args = [toPlainObject(input), call ? { id: call.id } : null];
        const onPiece = call && ((text: unknown) => call.progress(String(text)));
        const answer = await rpc.request(`tool/${key}`, "execute", args, { signal: call?.signal, onPiece });
        return ToolResult(answer as ToolResultFields); // from the host
      },
    } satisfies Tool,
  );
}

export class ProviderProxy implements Provider {
  readonly name: string;
  readonly priority: number;
  readonly #rpc: GuestRpc;
  readonly #objects: GuestObjects;
  readonly #view: ProviderView;
  declare readonly getModelInfo?: () => unknown;

  constructor(rpc: GuestRpc, objects: GuestObjects, view: ProviderView) {
    this.#rpc = rpc;
    this.#objects = objects;
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
    const { signal, onDelta, max_retries, shorten } = options;
    const onPiece = onDelta && ((delta: unknown) => onDelta(delta as StreamDelta)); // from the host
    const ref = shorten && this.#objects.add(async (overflow: ContextOverflow) => await shorten(overflow));
    const args = [toPlain(request), onDelta !== undefined, toPlain({ max_retries, shorten: ref })];
    const target = `provider/${this.#view.key}`;
    try {
      return toChatResponse(await this.#rpc.request(target, "complete", args, { signal, onPiece }));
    } finally {
      if (ref !== undefined) this.#objects.delete(ref);
    }
  }

  parseToolCalls(response: ChatResponse): ToolCall[] {
    return map(response.tool_calls ?? [], parseToolCall);
  }
}

withSnakeCase(ProviderProxy);

/** Proxy of the conversation. */
export class ContextProxy implements ContextManager {
  readonly #rpc: GuestRpc;
  readonly #objects: GuestObjects;
  readonly #nameOf: (provider: object) => string | undefined;

  /** @param nameOf Returns the name of a provider. */
  constructor(rpc: GuestRpc, objects: GuestObjects, nameOf: (provider: object) => string | undefined) {
    this.#rpc = rpc;
    this.#objects = objects;
    this.#nameOf = nameOf;
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

  /** The factory stays in the guest, and the host calls it. */
  setSystemPromptFactory(factory: (() => string | Promise<string>) | null): void {
    const ref = factory === null ? null : this.#objects.add(factory);
    this.#rpc.notify({ e: "system_prompt", ref }, "context.setSystemPromptFactory");
  }
}

withSnakeCase(ContextProxy);

/** Hook registry: handlers stay in the guest, events are sent to the host. */
export class HooksProxy extends HookRegistryBase implements HookRegistry {
  readonly #rpc: GuestRpc;
  readonly #objects: GuestObjects;
  readonly #handlers: () => Readonly<Record<string, string[]>>;
  /** Numbers of emissions in the host. */
  readonly #numbers = new WeakMap<object, number>();

  /** @param handlers Returns the names of all handlers by event. */
  constructor(rpc: GuestRpc, objects: GuestObjects, handlers: () => Readonly<Record<string, string[]>>) {
    super();
    this.#rpc = rpc;
    this.#objects = objects;
    this.#handlers = handlers;
  }

  register(event: string, handler: HookHandler, options?: number | HookOptions, name?: string): Disposer {
    const { options: settings } = readRegistration(event, handler, options, name);
    const plain = toPlainObject(settings);
    const label = plain.name ?? (handler.name || undefined);
    // a separate function for each registration, so that disposing of one leaves the others
    const ref = this.#objects.add(async (name: string, data: JsonObject) =>
      hookResultData(await handler(name, data))
    );
    const named = typeof label === "string" ? { ...plain, name: label } : plain;
    this.#rpc.notify({ e: "register", ref, event, options: named }, "hooks.register");
    return disposer(() => this.#rpc.notify({ e: "dispose", ref }, "a disposer"));
  }

  unregister(name: string): void {
    this.#rpc.notify({ e: "unregister", name: String(name) }, "hooks.unregister");
  }

  async emit(event: string, data: JsonObject | null = null): Promise<Emission> {
    requireEventName("emit an event", event);
    const plain = withRequestId(event, toPlainObject(data)); // the host does not know the module's contexts
    const answer = await this.#rpc.request("hooks", "emit", [event, plain]);
    const { number, emission } = answer as NumberedEmission; // from the host
    this.#numbers.set(emission, number);
    return emission;
  }

  /** Returns the number of an emission in the host; null if the host did not emit it. */
  numberOf(emission: unknown): number | null {
    return isObject(emission) ? this.#numbers.get(emission) ?? null : null;
  }

  async emitAndCollect(
    event: string,
    data: JsonObject | null = null,
    timeout_s?: number,
  ): Promise<JsonObject[]> {
    requireEventName("emit an event", event);
    const args = [event, toPlain(data), timeout_s];
    return await this.#rpc.request("hooks", "emitAndCollect", args) as JsonObject[];
  }

  setDefaultFields(fields: JsonObject): void {
    this.#rpc.notify({ e: "default_fields", fields: toPlainObject(fields) }, "hooks.setDefaultFields");
  }

  listHandlers(event?: string): Record<string, string[]> {
    const all = this.#handlers();
    if (event === undefined) return { ...all };
    return { [event]: [...Object.hasOwn(all, event) ? all[event] ?? [] : []] };
  }
}

withSnakeCase(HooksProxy);

/** `session_state`: reads use the latest session data, writes are notifications. */
export class StateProxy {
  /** The module's object; an assignment of a top-level key is sent to the host. */
  readonly view: JsonObject;
  readonly #rpc: GuestRpc;
  readonly #values: JsonObject = Object.create(null);

  constructor(rpc: GuestRpc) {
    this.#rpc = rpc;
    this.view = new Proxy(this.#values, {
      set: (_, key, value) => typeof key === "string" && this.#assign(key, value),
      defineProperty: (_, key, descriptor) =>
        typeof key === "string" && "value" in descriptor && this.#assign(key, descriptor.value),
      preventExtensions: () => false,
      deleteProperty: (_, key) => typeof key === "string" && this.#assign(key, undefined),
    });
  }

  /** Replaces the state by the host's. */
  update(state: JsonObject): void {
    for (const key in this.#values) delete this.#values[key]; // no prototype
    Object.assign(this.#values, state);
  }

  #assign(key: string, value: unknown): boolean {
    if (key === "__proto__") throw new TypeError("Cannot set session_state.__proto__: choose another key");
    if (value === undefined) {
      this.#rpc.notify({ e: "deleted", key }, "session_state");
      delete this.#values[key];
      return true;
    }
    const plain = toPlain(value);
    const bytes = toText({ ...this.#values, [key]: plain }).length;
    if (bytes > MAX_STATE_BYTES) {
      throw new RangeError(
        `Cannot set session_state.${key}: a session keeps at most ${MAX_STATE_BYTES} bytes: received ${bytes}`,
      );
    }
    this.#rpc.notify({ e: "state", key, value: plain }, "session_state");
    this.#values[key] = plain;
    return true;
  }
}
