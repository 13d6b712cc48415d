/**
 * The loop: one turn from prompt to answer (behaviour.md §7.9; trace.md, section 4, C). `loop-basic` and `loop-streaming`
 * are this with two sets of defaults. Ceilings, counting and approvals are not here: the guards hold them.
 */
import { errorCode, errorName } from "../errors.ts";
import type { ContextManager, Coordinator, ExecuteOptions, Orchestrator } from "../contracts.ts";
import type { Emission, HookRegistry, Injection } from "../hooks.ts";
import type { JsonObject } from "../json.ts";
import {
  type ChatRequest,
  type ChatResponse,
  type ContentBlock,
  type Message,
  type Prompt,
  textOf,
} from "../messages.ts";
import type { Provider } from "../providers.ts";
import type { Tool, ToolCall } from "../tools.ts";
import { BlockTeller } from "./blocks.ts";
import { chooseProvider, type ChosenProvider, providerFailure } from "./providers.ts";
import { injectionMessage, placeInjections, ToolOffer } from "./requests.ts";
import { SteeringQueue } from "./steering.ts";
import { runToolCalls } from "./tool_calls.ts";

/** How a loop behaves. */
export interface LoopConfig {
  /** Name told in `orchestrator:complete`. */
  orchestrator: string;
  /** Model calls of a turn before the wrap-up; −1 = one less than the run's ceiling. */
  max_iterations: number;
  /** Tool calls that run at once. */
  max_parallel_tools: number;
  /** Whether texts may join a running turn. */
  steering: boolean;
  /** Name of the provider to prefer. */
  default_provider?: string;
  /** Fields that every request carries: `temperature`, `reasoning_effort`, `max_output_tokens`, … */
  request: JsonObject;
}

/** Answers without text and calls in a row before the turn ends (ORCH-18). */
const MAX_EMPTY_RESPONSES = 3;

/** What the model is told when the loop's own limit is reached (behaviour.md §7.3, step 5). */
const WRAP_UP: Message = {
  role: "user",
  content:
    '<system-reminder source="orchestrator-loop-limit">\nNo further tool calls are possible in this turn. ' +
    "Answer now with what you have; say what is done and what is left. Do not mention this reminder.\n</system-reminder>",
  metadata: { source: "orchestrator", ephemeral: true },
};

const CANCELLED_NOTE = "The previous operation was cancelled. The results of completed tools are preserved.";

/** Returns an orchestrator that runs turns by `config`; `queue` takes steering texts. */
export function createLoop(config: LoopConfig, queue: SteeringQueue = new SteeringQueue()): Orchestrator {
  const offer = new ToolOffer();
  return {
    async execute(prompt, context, providers, tools, hooks, options) {
      try {
        return await new TurnRun({ config, queue, offer, prompt, context, providers, tools, hooks, options })
          .run();
      } finally {
        queue.clear(); // at the end, not at the start: what was said before the turn began is for it
      }
    },
  };
}

interface Parts {
  config: LoopConfig;
  queue: SteeringQueue;
  offer: ToolOffer;
  prompt: Prompt;
  context: ContextManager;
  providers: Record<string, Provider>;
  tools: Record<string, Tool>;
  hooks: HookRegistry;
  options: ExecuteOptions | undefined;
}

type Status = "success" | "incomplete" | "cancelled" | "error";

class TurnRun {
  readonly #parts: Parts;
  readonly #coordinator: Coordinator | undefined;
  readonly #chosen: { current: ChosenProvider | null } = { current: null };
  /** Ephemeral injections that wait for the next request of this turn. */
  #pending: Injection[] = [];
  #iteration = 0;
  #answered = 0;
  #text = "";
  #status: Status = "incomplete";

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#coordinator = parts.options?.coordinator;
  }

  async run(): Promise<string> {
    const { hooks, prompt } = this.#parts;
    await hooks.emit("execution:start", { prompt });
    let failure: unknown;
    try {
      await this.#turn();
    } catch (error) {
      failure = error;
      this.#status = statusOf(error, this.#cancelled);
    }
    if (this.#status === "cancelled") await this.#tellCancelled();
    await hooks.emit("execution:end", {
      response: this.#text,
      status: this.#status === "error" || this.#status === "cancelled" ? this.#status : "completed",
    });
    await hooks.emit("orchestrator:complete", {
      orchestrator: this.#parts.config.orchestrator,
      turn_count: this.#answered,
      status: this.#status,
    });
    if (failure !== undefined) throw failure;
    return this.#text;
  }

  async #turn(): Promise<void> {
    const { hooks, context, prompt, providers, config } = this.#parts;
    const submitted = await this.#process(await hooks.emit("prompt:submit", { prompt }), "prompt:submit");
    if (submitted.action === "deny") return this.#deny(submitted);
    this.#keep(submitted.injections);
    const final_prompt = (submitted.modified ? submitted.data.prompt : prompt) as Prompt; // a hook may rewrite the prompt
    await context.addMessage({ role: "user", content: final_prompt });
    this.#chosen.current = chooseProvider(providers, config.default_provider);
    let empty = 0;
    while (this.#iteration < this.#max_iterations) {
      if (this.#cancelled) return this.#cancel();
      await this.#steer();
      const response = await this.#request(false);
      if (response === null) return;
      const calls = response.tool_calls ?? [];
      const text = textOf(response.content);
      if (calls.length > 0) {
        this.#text = text;
        if (await this.#runTools(calls)) return;
        empty = 0;
      } else if (text !== "" || isCut(response)) {
        this.#text = text;
        if (this.#parts.queue.size > 0 && this.#iteration < this.#max_iterations) continue; // a steer that came during the answer
        return await this.#finish(text);
      } else if (++empty >= MAX_EMPTY_RESPONSES) return;
    }
    if (this.#cancelled) return this.#cancel();
    await this.#wrapUp();
  }

  get #max_iterations(): number {
    const { max_iterations } = this.#parts.config;
    if (max_iterations >= 0) return max_iterations;
    const ceiling = this.#coordinator?.limits.max_iterations;
    return ceiling === undefined ? Number.MAX_SAFE_INTEGER : Math.max(1, ceiling - 1);
  }

  get #cancelled(): boolean {
    return this.#coordinator?.cancellation.is_cancelled === true;
  }

  /** One model call with all that belongs to it; null when the turn ended in it. */
  async #request(max_reached: boolean): Promise<ChatResponse | null> {
    const { hooks, context, config, offer, tools } = this.#parts;
    const { name, provider } = this.#chosen.current!;
    const iteration = ++this.#iteration;
    const data: JsonObject = { provider: name, iteration };
    const asked = await this.#process(
      await hooks.emit("provider:request", max_reached ? { ...data, max_reached } : data),
      "provider:request",
    );
    if (asked.action === "deny") return this.#denyRequest(asked);
    this.#keep(asked.injections);
    const injections = this.#pending.splice(0);
    const specs = max_reached ? [] : offer.specs(tools);
    const extra = injections.map(injectionMessage);
    if (max_reached) extra.push(WRAP_UP);
    const view = await context.getMessagesForRequest({ provider, tools: specs, injections: extra });
    const placed = placeInjections(view, injections);
    const messages = max_reached ? [...placed, WRAP_UP] : placed;
    const request: ChatRequest = { ...config.request, messages };
    if (specs.length > 0) request.tools = specs;
    const told = await this.#call(provider, name, request, iteration);
    // no tools were offered for the wrap-up: a call made all the same is dropped, or the history would hold it unanswered
    const response = max_reached ? withoutCalls(told) : told;
    if (response.content.length > 0) await context.addMessage(assistantMessage(response));
    return response;
  }

  async #call(
    provider: Provider,
    name: string,
    request: ChatRequest,
    iteration: number,
  ): Promise<ChatResponse> {
    const { hooks } = this.#parts;
    const teller = new BlockTeller(hooks, this.#newId("req"));
    let response: ChatResponse;
    try {
      const options = { onDelta: teller.onDelta };
      const signal = this.#coordinator?.cancellation.signal;
      response = await provider.complete(request, signal ? { ...options, signal } : options);
    } catch (error) {
      await teller.abort(error);
      const failure = providerFailure(name, error);
      if (failure && !this.#cancelled) await hooks.emit("provider:error", failure);
      throw error;
    }
    this.#answered++;
    const calls = response.tool_calls ?? provider.parseToolCalls?.(response) ?? [];
    const told = { ...response, content: withCallBlocks(response.content, calls) };
    if (calls.length > 0) told.tool_calls = calls;
    await teller.finish(told);
    await hooks.emit("provider:response", {
      provider: name,
      iteration,
      usage: response.usage ?? null,
      tool_calls: calls.length > 0,
      response: responseData(told),
    });
    return told;
  }

  /** Runs the calls of an answer and stores their results; true when the turn must end. */
  async #runTools(calls: readonly ToolCall[]): Promise<boolean> {
    const { hooks, context, tools, config } = this.#parts;
    const cancellation = this.#coordinator?.cancellation;
    const { messages, limited } = await runToolCalls(calls, {
      tools,
      hooks,
      max_parallel: config.max_parallel_tools,
      parallel_group_id: this.#newId("grp"),
      session_id: this.#coordinator?.session_id ?? "",
      signal: cancellation?.signal ?? new AbortController().signal,
      process: (emission, event) => this.#process(emission, event),
      keep: (injections) => this.#keep(injections),
    });
    for (const message of messages) await context.addMessage(message);
    if (cancellation?.is_immediate) {
      await context.addMessage({ role: "assistant", content: [{ type: "text", text: CANCELLED_NOTE }] });
    }
    if (limited) this.#status = "incomplete";
    return limited;
  }

  /** The loop's own limit: one more call without tools, whose text ends the turn (trace.md, section 5). */
  async #wrapUp(): Promise<void> {
    const response = await this.#request(true);
    if (response === null) return;
    this.#text = textOf(response.content);
    if (this.#text !== "") await this.#tellPrompt(this.#text);
    this.#status = "incomplete";
  }

  async #finish(text: string): Promise<void> {
    if (text !== "") await this.#tellPrompt(text);
    this.#status = text === "" ? "incomplete" : "success";
  }

  async #tellPrompt(text: string): Promise<void> {
    const points = [...text];
    await this.#parts.hooks.emit("prompt:complete", {
      response_preview: points.length <= 200 ? text : points.slice(0, 200).join(""),
      length: points.length,
    });
  }

  async #steer(): Promise<void> {
    const { queue, hooks, context, config } = this.#parts;
    for (let text = queue.shift(); text !== undefined; text = queue.shift()) {
      await hooks.emit("orchestrator:steering_injected", {
        orchestrator: config.orchestrator,
        content: text,
        iteration: this.#iteration + 1,
        queued_remaining: queue.size,
      });
      await context.addMessage({ role: "user", content: text, metadata: { source: "steering" } });
    }
  }

  #deny(emission: Emission): void {
    this.#text = `Operation denied: ${emission.reason}`;
    this.#status = "incomplete";
  }

  #denyRequest(emission: Emission): null {
    this.#deny(emission);
    return null;
  }

  #cancel(): void {
    this.#status = "cancelled";
  }

  async #tellCancelled(): Promise<void> {
    this.#parts.queue.clear();
    await this.#parts.hooks.emit("cancel:completed", {
      was_immediate: this.#coordinator?.cancellation.is_immediate === true,
    });
  }

  #keep(injections: readonly Injection[]): void {
    for (const injection of injections) if (injection.ephemeral) this.#pending.push(injection);
  }

  async #process(emission: Emission, event: string): Promise<Emission> {
    if (emission.action === "continue" && emission.user_messages.length === 0) return emission;
    if (this.#coordinator) return await this.#coordinator.processHookResult(emission, event);
    return emission.action === "ask_user"
      ? { ...emission, action: "deny", reason: "No approval system available" }
      : emission;
  }

  #newId(prefix: string): string {
    return this.#coordinator?.newId(prefix) ?? `${prefix}_${crypto.randomUUID()}`;
  }
}

function statusOf(error: unknown, cancelled: boolean): Status {
  const code = errorCode(error);
  if (code === "limit_reached" || code === "denied") return "incomplete";
  if (code === "cancelled" || (cancelled && errorName(error) === "AbortError")) return "cancelled";
  return "error";
}

/** Whether an answer without text ended on purpose: at the model's limit, or filtered. */
function isCut(response: ChatResponse): boolean {
  return ["length", "max_tokens", "max_output_tokens", "content_filter"].includes(
    response.finish_reason ?? "",
  );
}

/** Every call has a block in the content, also when the provider told it beside the content only. */
function withCallBlocks(content: ContentBlock[], calls: readonly ToolCall[]): ContentBlock[] {
  const missing = calls.filter((call) =>
    !content.some((block) => block.type === "tool_call" && block.id === call.id)
  );
  if (missing.length === 0) return content;
  const others = content.filter((block) => block.type !== "tool_use");
  return [
    ...others,
    ...missing.map((call) => ({ type: "tool_call", id: call.id, name: call.name, input: call.arguments })),
  ];
}

function withoutCalls({ tool_calls: _, ...response }: ChatResponse): ChatResponse {
  const content = response.content.filter((block) => block.type !== "tool_call" && block.type !== "tool_use");
  return { ...response, content };
}

function responseData(response: ChatResponse): JsonObject {
  const { content, tool_calls, finish_reason, usage, metadata } = response;
  return { content, tool_calls, finish_reason, usage, metadata };
}

function assistantMessage(response: ChatResponse): Message {
  const message: Message = { role: "assistant", content: response.content };
  if (response.tool_calls && response.tool_calls.length > 0) {
    message.tool_calls = response.tool_calls.map(({ id, name, arguments: args }) => ({
      id,
      name,
      tool: name,
      arguments: args,
    }));
  }
  if (response.metadata) message.metadata = response.metadata;
  return message;
}
