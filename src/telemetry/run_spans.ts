/**
 * Reads the log entries of a run as they are stored, and makes its spans: `invoke_agent` for the run and
 * its sub-agents, `chat` for model calls, `execute_tool` for tool calls. Times are those of the entries;
 * attributes are named as OpenTelemetry's semantic conventions for generative AI name them.
 */
import {
  type Attributes,
  type Context,
  context,
  type Link,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  trace,
  type Tracer,
} from "@opentelemetry/api";
import type { Entry } from "../kernel/host.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";
import { OpenModelCalls } from "./open_model_calls.ts";
import { textOf } from "./run_observers.ts";

/** Options of {@link RunSpans}. */
interface RunSpansOptions {
  readonly tracer: Tracer;
  readonly run_id: string;
  readonly session_id: string;
  readonly links: Link[];
  /** Whether spans have prompts, answers, and inputs and outputs of tools. */
  readonly content: boolean;
}

/** A model call that has not ended. */
interface OpenChat {
  readonly span: Span;
  /** Usage of its attempts that failed. */
  usage: Attributes;
}

export class RunSpans {
  readonly #options: RunSpansOptions;
  readonly #root: Span;
  /** Open spans of sessions and tool calls by {@link sessionKey} and {@link callKey}. */
  readonly #open = new Map<string, Span>();
  readonly #chats = new OpenModelCalls<OpenChat>();

  /** Starts the span of the run, as a child of the active one. */
  constructor(options: RunSpansOptions) {
    this.#options = options;
    const { tracer, run_id, session_id, links } = options;
    const attributes = { ...agentAttributes(session_id), "preamp.run.id": run_id };
    this.#root = tracer.startSpan("invoke_agent", { kind: SpanKind.INTERNAL, attributes, links });
    this.#open.set(sessionKey(session_id), this.#root);
  }

  /** The span of the run. */
  get span(): Span {
    return this.#root;
  }

  /** The context of the span of the run. */
  get context(): SpanContext {
    return this.#root.spanContext();
  }

  /** Reads entries in the order of the log. */
  read(entries: readonly Entry[]): void {
    for (const entry of entries) this.#read(entry);
  }

  /** Ends all spans that are still open. */
  end(): void {
    for (const { span } of this.#chats.takeAll()) endSpan(span, new Date(), {}, "interrupted");
    for (const key of [...this.#open.keys()].reverse()) this.#end(key, new Date(), {}, "interrupted");
  }

  #read(entry: Entry): void {
    const { event, data, session_id } = entry;
    const { content } = this.#options;
    switch (event) {
      case "execution:start":
        if (content) this.#open.get(sessionKey(session_id))?.setAttributes(promptAttribute(data.prompt));
        break;
      case "run:end":
        return this.#endRun(entry);
      case "provider:request":
        this.#chats.add(entry, this.#createChat(entry));
        break;
      case "llm:request":
        return this.#nameModel(entry, "gen_ai.request.model");
      case "llm:response":
        return this.#nameModel(entry, "gen_ai.response.model");
      case "provider:retry":
        return this.#retryChat(entry);
      case "provider:response":
        return this.#endChat(entry, answerAttributes(data.response, content));
      case "provider:error":
        return this.#endChat(entry, {}, typeOf(data.error));
      case "tool:pre":
        return this.#startTool(entry);
      case "tool:post":
        return this.#endAt(
          entry,
          callKey(entry),
          content ? contentAttribute("gen_ai.tool.call.result", data.result) : {},
          isObject(data.result) && data.result.success === false ? "tool_failed" : undefined,
        );
      case "tool:error":
        return this.#endAt(entry, callKey(entry), {}, typeOf(data.error));
      case "approval:required":
      case "approval:granted":
        this.#open.get(callKey(entry))?.addEvent(event, {}, timeOf(entry));
        break;
      case "approval:denied":
        return this.#endAt(entry, callKey(entry), {}, "denied");
      case "task:agent_spawned":
      case "task:agent_resumed":
        return this.#startAgent(entry);
      case "task:agent_completed": {
        const failure = data.status === "failed" && isObject(data.error)
          ? textOf(data.error.code)
          : undefined;
        const attributes = { "preamp.run.status": textOf(data.status) };
        return this.#endAt(entry, sessionKey(data.sub_session_id), attributes, failure);
      }
    }
  }

  /** Starts a span below the span of a call, else of a session, else of the run. */
  #start(entry: Entry, key: string, name: string, kind: SpanKind, attributes: Attributes): void {
    const parent = key.startsWith("session") ? this.#open.get(callKey(entry)) : undefined;
    this.#endAt(entry, key, {});
    this.#open.set(key, this.#create(entry, name, kind, attributes, parent));
  }

  /** Creates a span below another one; default: that of the session, else of the run. */
  #create(
    entry: Entry,
    name: string,
    kind: SpanKind,
    attributes: Attributes,
    parent: Span = this.#open.get(sessionKey(entry.session_id)) ?? this.#root,
  ): Span {
    const below: Context = trace.setSpan(context.active(), parent);
    return this.#options.tracer.startSpan(name, { kind, attributes, startTime: timeOf(entry) }, below);
  }

  #createChat(entry: Entry): OpenChat {
    const { data, session_id } = entry;
    const span = this.#create(entry, "chat", SpanKind.CLIENT, {
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": providerName(data.provider),
      "gen_ai.conversation.id": session_id,
    });
    return { span, usage: {} };
  }

  #retryChat(entry: Entry): void {
    const { data } = entry;
    const chat = this.#chats.get(entry);
    if (!chat) return;
    chat.usage = sumOf(chat.usage, usageAttributes(data.usage));
    chat.span.addEvent("provider:retry", {
      "error.type": textOf(data.error_type),
      "preamp.attempt": typeof data.attempt === "number" ? data.attempt : 0,
    }, timeOf(entry));
  }

  /** Ends the oldest open model call, or one of a module itself, which has no request. */
  #endChat(entry: Entry, attributes: Attributes, failure?: string): void {
    const { span, usage } = this.#chats.take(entry) ?? this.#createChat(entry);
    const used = sumOf(usage, usageAttributes(entry.data.usage));
    endSpan(span, timeOf(entry), { ...used, ...attributes }, failure);
  }

  #nameModel(entry: Entry, attribute: string): void {
    const { model } = entry.data;
    const span = this.#chats.get(entry)?.span;
    if (!span || typeof model !== "string") return;
    span.setAttribute(attribute, model);
    if (attribute === "gen_ai.request.model") span.updateName(`chat ${model}`);
  }

  #startTool(entry: Entry): void {
    const { data, session_id, verdict } = entry;
    this.#start(entry, callKey(entry), `execute_tool ${textOf(data.tool_name)}`, SpanKind.INTERNAL, {
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": textOf(data.tool_name),
      "gen_ai.tool.call.id": textOf(data.tool_call_id),
      "gen_ai.conversation.id": session_id,
      ...(this.#options.content ? contentAttribute("gen_ai.tool.call.arguments", data.tool_input) : {}),
    });
    if (verdict?.action === "deny") this.#endAt(entry, callKey(entry), {}, "denied");
  }

  #startAgent(entry: Entry): void {
    const { agent, sub_session_id } = entry.data;
    const named = typeof agent === "string";
    const name = named ? `invoke_agent ${agent}` : "invoke_agent";
    this.#start(entry, sessionKey(sub_session_id), name, SpanKind.INTERNAL, {
      ...agentAttributes(textOf(sub_session_id)),
      ...(named ? { "gen_ai.agent.name": agent } : {}),
      "preamp.run.id": this.#options.run_id,
    });
  }

  #endRun(entry: Entry): void {
    const { run } = entry.data;
    const key = sessionKey(this.#options.session_id);
    if (!isObject(run)) return this.#endAt(entry, key, {});
    this.#endAt(entry, key, {
      "preamp.run.status": textOf(run.status),
      ...(typeof run.stop_reason === "string" ? { "preamp.run.stop_reason": run.stop_reason } : {}),
      ...usageAttributes(run.usage),
    }, isObject(run.error) ? textOf(run.error.code) : undefined);
  }

  #endAt(entry: Entry, key: string, attributes: Attributes, failure?: string): void {
    this.#end(key, timeOf(entry), attributes, failure);
  }

  #end(key: string, time: Date, attributes: Attributes, failure: string | undefined): void {
    const span = this.#open.get(key);
    if (!span) return;
    this.#open.delete(key);
    endSpan(span, time, attributes, failure);
  }
}

function endSpan(span: Span, time: Date, attributes: Attributes, failure: string | undefined): void {
  span.setAttributes(attributes);
  if (failure !== undefined) {
    span.setAttribute("error.type", failure);
    span.setStatus({ code: SpanStatusCode.ERROR });
  }
  span.end(time);
}

/** Returns the sums of numeric attributes. */
function sumOf(one: Attributes, other: Attributes): Attributes {
  const sum = { ...one };
  for (const [name, value] of Object.entries(other)) sum[name] = Number(sum[name] ?? 0) + Number(value);
  return sum;
}

function agentAttributes(session_id: string): Attributes {
  return { "gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": session_id };
}

function typeOf(error: unknown): string {
  return isObject(error) && typeof error.type === "string" ? error.type : "error";
}

function timeOf({ ts }: Entry): Date {
  return new Date(ts);
}

function sessionKey(session_id: unknown): string {
  return `session ${textOf(session_id)}`;
}

/** Returns a key for a tool call: ids of calls are unique in one session only. */
function callKey({ session_id, data }: Entry): string {
  return `call ${session_id} ${textOf(data.tool_call_id)}`;
}

/** Names of providers in the conventions, where they differ from ours. */
const PROVIDER_NAMES: Readonly<Record<string, string>> = { gemini: "gcp.gemini" };
/** Most characters of one attribute with content. */
const MAX_CONTENT_CHARS = 16 * 1024;

/** Returns the name of a provider in the conventions. */
function providerName(name: unknown): string {
  const own = textOf(name);
  return Object.hasOwn(PROVIDER_NAMES, own) ? PROVIDER_NAMES[own]! : own; // checked
}

/** Returns the attributes of a model call's or a run's usage. The conventions count cache writes as input. */
function usageAttributes(usage: unknown): Attributes {
  if (!isObject(usage)) return {};
  const count = (field: string) => typeof usage[field] === "number" ? Math.round(usage[field]) : 0;
  const optional = (name: string, field: string) => count(field) > 0 ? { [name]: count(field) } : {};
  return {
    "gen_ai.usage.input_tokens": count("input_tokens"),
    "gen_ai.usage.output_tokens": count("output_tokens"),
    ...optional("gen_ai.usage.cache_read.input_tokens", "cache_read_tokens"),
    ...optional("gen_ai.usage.cache_creation.input_tokens", "cache_write_tokens"),
    ...optional("gen_ai.usage.reasoning.output_tokens", "reasoning_tokens"),
    ...(typeof usage.cost_usd === "string" ? { "preamp.cost_usd": Number(usage.cost_usd) } : {}),
  };
}

/** Returns the attributes of a model's answer. `content`: whether they have its text. */
function answerAttributes(response: unknown, content: boolean): Attributes {
  if (!isObject(response)) return {};
  const { finish_reason } = response;
  return {
    ...(typeof finish_reason === "string" ? { "gen_ai.response.finish_reasons": [finish_reason] } : {}),
    ...(content
      ? contentAttribute("gen_ai.output.messages", [{
        role: "assistant",
        parts: [...partsOf(response.content), ...callsOf(response.tool_calls)],
        finish_reason: finish_reason ?? "stop",
      }])
      : {}),
  };
}

function promptAttribute(prompt: unknown): Attributes {
  return contentAttribute("gen_ai.input.messages", [{ role: "user", parts: partsOf(prompt) }]);
}

/** Returns an attribute with JSON, cut to 16,384 characters. */
function contentAttribute(name: string, value: unknown): Attributes {
  const text = typeof value === "string" ? value : JSON.stringify(value) ?? "";
  return { [name]: text.slice(0, MAX_CONTENT_CHARS) };
}

/** Returns the parts of a text or of content blocks; only the type of blocks that are not text. */
function partsOf(content: unknown): JsonObject[] {
  if (typeof content === "string") return [{ type: "text", content }];
  if (!Array.isArray(content)) return [];
  return content.filter(isObject).filter(({ type }) => type !== "tool_call").map((block) =>
    block.type === "text" ? { type: "text", content: textOf(block.text) } : { type: textOf(block.type) }
  );
}

function callsOf(calls: unknown): JsonObject[] {
  if (!Array.isArray(calls)) return [];
  return calls.filter(isObject).map(({ id, name, arguments: input }) => ({
    type: "tool_call",
    id: textOf(id),
    name: textOf(name),
    arguments: isObject(input) ? input : {},
  }));
}
