/**
 * The loop: one turn from prompt to answer (behaviour.md §7.9; trace.md, section 4, C). `loop-basic` and `loop-streaming`
 * are this with two sets of defaults. Ceilings, counting and approvals are not here: the guards hold them.
 */
import { errorCode, PreampError } from "../errors.ts";
import type { ContextManager, Coordinator, ExecuteOptions, Orchestrator } from "../contracts.ts";
import { type Emission, type HookRegistry, type Injection, notify } from "../hooks.ts";
import type { JsonObject } from "../json.ts";
import {
  type ChatRequest,
  type ChatResponse,
  type Message,
  type Prompt,
  type ResponseFormat,
  textOf,
} from "../messages.ts";
import type { Provider } from "../providers.ts";
import type { Tool, ToolCall } from "../tools.ts";
import { assistantMessage, isCut, withoutCalls } from "./assistant_message.ts";
import { isCancellation, ModelCalls } from "./model_call.ts";
import { CallThrottle } from "./call_throttle.ts";
import { chooseProvider, type ChosenProvider, nextProvider } from "./provider_selection.ts";
import { injectionMessage, placeInjections, ToolListBuilder } from "./chat_request.ts";
import { formatInstruction, formatProblems, MAX_REPAIRS, repairRequest } from "./response_format.ts";
import { selectTool } from "./tool_selection.ts";
import { standingOf } from "./resume_point.ts";
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
  /** Who answers when a provider fails for good with a failure that may pass: names in order, or everyone; default nobody. */
  fallback?: boolean | readonly string[];
  /** Attempts after the first, for providers that do not try again by themselves; default 2 (threats.md). */
  max_retries?: number;
  /** Milliseconds from the end of a model call to the next; default 0. */
  min_delay_between_calls_ms?: number;
  /** Form that the final answer must have; checked, and mended at most twice. */
  response_format?: ResponseFormat;
  /** Whether hooks choose at `tool:selecting` what becomes of a call. */
  selects_tools?: boolean;
  /** Fields that every request carries: `temperature`, `reasoning_effort`, `max_output_tokens`, … */
  request: JsonObject;
}

/** Attempts after the first (threats.md, the retry rule). */
const DEFAULT_MAX_RETRIES = 2;

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
  const offer = new ToolListBuilder();
  const pace = new CallThrottle(config.min_delay_between_calls_ms ?? 0);
  return {
    resumable: true,
    async execute(prompt, context, providers, tools, hooks, options) {
      try {
        const parts = { config, queue, offer, pace, prompt, context, providers, tools, hooks, options };
        return await new TurnRun(parts).run();
      } finally {
        queue.clear(); // at the end, not at the start: what was said before the turn began is for it
      }
    },
  };
}

interface Parts {
  config: LoopConfig;
  queue: SteeringQueue;
  offer: ToolListBuilder;
  pace: CallThrottle;
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
  readonly #models: ModelCalls;
  #chosen: ChosenProvider | null = null;
  /** Ephemeral injections that wait for the next request of this turn. */
  #pending: Injection[] = [];
  #iteration: number;
  #answered: number;
  #empty = 0;
  #repairs = 0;
  #text = "";
  #status: Status = "incomplete";

  constructor(parts: Parts) {
    const { config, hooks, pace, options } = parts;
    this.#parts = parts;
    const coordinator = this.#coordinator = options?.coordinator;
    this.#iteration = this.#answered = options?.resume ? options.iteration ?? 0 : 0;
    this.#models = new ModelCalls({
      hooks,
      coordinator,
      pace,
      max_retries: config.max_retries ?? DEFAULT_MAX_RETRIES,
      newId: (prefix) => this.#newId(prefix),
    });
  }

  async run(): Promise<string> {
    const { hooks, prompt, options } = this.#parts;
    const resume = options?.resume === true;
    if (!resume) await notify(hooks, "execution:start", { prompt });
    let failure: unknown;
    try {
      await (resume ? this.#goOn() : this.#begin());
    } catch (error) {
      failure = error;
      this.#status = statusOf(error, this.#cancelled || error === this.#models.aborted);
    }
    if (this.#status === "cancelled") await this.#tellCancelled();
    await notify(hooks, "execution:end", {
      response: this.#text,
      status: this.#status === "error" || this.#status === "cancelled" ? this.#status : "completed",
    });
    await notify(hooks, "orchestrator:complete", {
      orchestrator: this.#parts.config.orchestrator,
      turn_count: this.#answered,
      status: this.#status,
    });
    if (failure !== undefined) throw failure;
    return this.#text;
  }

  async #begin(): Promise<void> {
    const { hooks, context, prompt } = this.#parts;
    const emitted = await hooks.emit("prompt:submit", { prompt });
    const submitted = isNoop(emitted) ? emitted : await this.#process(emitted, "prompt:submit");
    if (submitted.action === "deny") return this.#deny(submitted);
    this.#keep(submitted.injections);
    const final_prompt = (submitted.modified ? submitted.data.prompt : prompt) as Prompt; // a hook may rewrite the prompt
    await context.addMessage({ role: "user", content: final_prompt });
    this.#choose();
    await this.#iterate();
  }

  /** Goes on with an interrupted turn: calls without an answer first, then as if nothing had been. */
  async #goOn(): Promise<void> {
    this.#choose();
    const { open_calls, answer } = standingOf(await this.#parts.context.getMessages());
    if (this.#cancelled) return this.#cancel();
    if (open_calls.length > 0) {
      if (await this.#runTools(open_calls)) return;
    } else if (answer !== null && this.#iteration > this.#max_iterations) {
      return await this.#finishWrapUp(answer);
    } else if (answer !== null && await this.#settleAnswer(answer, answer === "")) return;
    await this.#iterate();
  }

  #choose(): void {
    const { providers, config } = this.#parts;
    this.#chosen = chooseProvider(providers, config.default_provider);
  }

  async #iterate(): Promise<void> {
    const { pace, hooks } = this.#parts;
    while (this.#iteration < this.#max_iterations) {
      if (this.#cancelled) return this.#cancel();
      const pause = pace.wait({ hooks, coordinator: this.#coordinator }, this.#iteration + 1);
      if (pause) await pause;
      if (this.#cancelled) return this.#cancel();
      if (this.#parts.queue.size > 0) await this.#steer();
      const response = await this.#request(false);
      if (response === null) return;
      const calls = response.tool_calls ?? [];
      const text = textOf(response.content);
      if (calls.length > 0) {
        this.#text = text;
        this.#empty = 0;
        if (await this.#runTools(calls)) return;
      } else if (await this.#settleAnswer(text, isCut(response))) return;
    }
    if (this.#cancelled) return this.#cancel();
    await this.#wrapUp();
  }

  /** Takes an answer without calls; true when the turn ends with it. */
  async #settleAnswer(text: string, is_cut: boolean): Promise<boolean> {
    const { queue, config, context } = this.#parts;
    if (text === "" && !is_cut) return ++this.#empty >= MAX_EMPTY_RESPONSES;
    this.#text = text;
    if (queue.size > 0 && this.#iteration < this.#max_iterations) return false; // a steer that came during the answer
    const format = config.response_format;
    const problems = format && !is_cut ? await formatProblems(format, text) : [];
    if (format && problems.length > 0) {
      if (this.#repairs++ >= MAX_REPAIRS) {
        const message =
          `Cannot use the answer: it does not have the form of response_format after ${MAX_REPAIRS} repairs`;
        throw new PreampError("provider_bad_response", `${message}: ${problems.join("; ")}`);
      }
      await context.addMessage(repairRequest(format, problems));
      return false;
    }
    await this.#finish(text);
    return true;
  }

  /** Model calls that the run allows. */
  get #ceiling(): number {
    return this.#coordinator?.limits.max_iterations ?? Number.MAX_SAFE_INTEGER;
  }

  /** Model calls before the wrap-up: its own limit and never more than the run's; by default one less than that, for the wrap-up. */
  get #max_iterations(): number {
    const { max_iterations } = this.#parts.config;
    const ceiling = this.#ceiling;
    return max_iterations >= 0 ? Math.min(max_iterations, ceiling) : Math.max(1, ceiling - 1);
  }

  get #cancelled(): boolean {
    return this.#coordinator?.cancellation.is_cancelled === true;
  }

  /** One answer with all that belongs to it, from whichever provider gives one; null when the turn ended in it. */
  async #request(max_reached: boolean): Promise<ChatResponse | null> {
    const tried = new Set<string>();
    for (;;) {
      const chosen = this.#chosen!; // chosen before the first request
      tried.add(chosen.name);
      const outcome = await this.#ask(chosen, max_reached);
      if (outcome === null) return null;
      if ("response" in outcome) return outcome.response;
      const next = outcome.may_fall_back
        ? nextProvider(this.#parts.providers, this.#parts.config.fallback ?? false, tried)
        : null;
      if (next === null) throw outcome.error;
      await notify(this.#parts.hooks, "provider:resolve", {
        provider: next.name,
        model: next.provider.getInfo?.().defaults?.model ?? null,
        reason: `provider ${chosen.name} failed`,
      });
      this.#chosen = next;
    }
  }

  async #ask(chosen: ChosenProvider, max_reached: boolean): Promise<Asked> {
    const { hooks, context, offer, tools, config } = this.#parts;
    const { name, provider } = chosen;
    const iteration = ++this.#iteration;
    const data: JsonObject = { provider: name, iteration };
    const emitted = await hooks.emit("provider:request", max_reached ? { ...data, max_reached } : data);
    const asked = isNoop(emitted) ? emitted : await this.#process(emitted, "provider:request");
    if (asked.action === "deny") return this.#denyRequest(asked);
    this.#keep(asked.injections);
    const injections = this.#pending.splice(0);
    const specs = max_reached ? [] : offer.specs(tools, providerId(provider, name));
    const instruction = formatInstruction(config.response_format, provider);
    const tail = [...(instruction ? [instruction] : []), ...(max_reached ? [WRAP_UP] : [])];
    const extra = [...injections.map(injectionMessage), ...tail];
    const view = await context.getMessagesForRequest({ provider, tools: specs, injections: extra });
    const placed = placeInjections(view, injections);
    const request: ChatRequest = {
      ...config.request,
      messages: tail.length > 0 ? [...placed, ...tail] : placed,
    };
    if (config.response_format) request.response_format = config.response_format;
    if (specs.length > 0) request.tools = specs;
    const outcome = await this.#models.call(chosen, request, iteration);
    if (!("response" in outcome)) {
      this.#pending.unshift(...injections); // what nobody has read is for who is asked next
      return outcome;
    }
    this.#answered++;
    // no tools were offered for the wrap-up: a call made all the same is dropped, or the history would hold it unanswered
    const response = max_reached ? withoutCalls(outcome.response) : outcome.response;
    if (response.content.length > 0) await context.addMessage(assistantMessage(response));
    return { response };
  }

  /** Runs the calls of an answer and stores their results; true when the turn must end. */
  async #runTools(calls: readonly ToolCall[]): Promise<boolean> {
    const { hooks, context, tools, config } = this.#parts;
    const cancellation = this.#coordinator?.cancellation;
    const parallel_group_id = this.#newId("grp");
    const { messages, limited } = await runToolCalls(calls, {
      tools,
      hooks,
      max_parallel: config.max_parallel_tools,
      parallel_group_id,
      ...(config.selects_tools
        ? {
          select: (call: ToolCall) =>
            selectTool(call, { hooks, tools: Object.keys(tools), parallel_group_id }),
        }
        : {}),
      session_id: this.#coordinator?.session_id ?? "",
      signal: cancellation?.signal ?? new AbortController().signal,
      process: (emission, event) => isNoop(emission) ? emission : this.#process(emission, event),
      keep: (injections) => this.#keep(injections),
    });
    for (const message of messages) await context.addMessage(message);
    if (cancellation?.is_immediate) {
      await context.addMessage({ role: "assistant", content: [{ type: "text", text: CANCELLED_NOTE }] });
    }
    if (limited) this.#status = "incomplete";
    return limited;
  }

  /**
   * The loop's own limit: one more call without tools, whose text ends the turn (trace.md, section 5). Where the run's ceiling
   * has no room for it, the turn ends with what was said.
   */
  async #wrapUp(): Promise<void> {
    if (this.#answered >= this.#ceiling) return await this.#finishWrapUp(this.#text);
    const response = await this.#request(true);
    if (response !== null) await this.#finishWrapUp(textOf(response.content));
  }

  async #finishWrapUp(text: string): Promise<void> {
    this.#text = text;
    if (text !== "") await this.#tellPrompt(text);
    this.#status = "incomplete";
  }

  async #finish(text: string): Promise<void> {
    if (text !== "") await this.#tellPrompt(text);
    this.#status = text === "" ? "incomplete" : "success";
  }

  async #tellPrompt(text: string): Promise<void> {
    await notify(this.#parts.hooks, "prompt:complete", previewOf(text));
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
    const was_immediate = this.#coordinator?.cancellation.is_graceful !== true;
    await notify(this.#parts.hooks, "cancel:completed", { was_immediate });
  }

  #keep(injections: readonly Injection[]): void {
    for (const injection of injections) if (injection.ephemeral) this.#pending.push(injection);
  }

  async #process(emission: Emission, event: string): Promise<Emission> {
    if (this.#coordinator) return await this.#coordinator.processHookResult(emission, event);
    return emission.action === "ask_user"
      ? { ...emission, action: "deny", reason: "No approval system available" }
      : emission;
  }

  #newId(prefix: string): string {
    return this.#coordinator?.newId(prefix) ?? `${prefix}_${crypto.randomUUID()}`;
  }
}

/** Code points of an answer that `prompt:complete` shows (behaviour.md §6.2). */
const PREVIEW_LENGTH = 200;

/** Returns the beginning of a text and its length in code points; only the beginning is taken apart, because a text may be long. */
function previewOf(text: string): JsonObject {
  const pairs = text.match(SURROGATE_PAIRS)?.length ?? 0;
  const response_preview = text.length <= PREVIEW_LENGTH
    ? text
    : [...text.slice(0, 2 * PREVIEW_LENGTH)].slice(0, PREVIEW_LENGTH).join("");
  return { response_preview, length: text.length - pairs };
}

const SURROGATE_PAIRS = /[\ud800-\udbff][\udc00-\udfff]/g;

/** Whether nobody asked for anything: then there is nothing to do, and nothing to wait for. */
function isNoop(emission: Emission): boolean {
  return emission.action === "continue" && emission.user_messages.length === 0;
}

/** What asking one provider came to; null: the request was denied. */
type Asked = Awaited<ReturnType<ModelCalls["call"]>> | null;

function providerId(provider: Provider, name: string): string {
  return provider.getInfo?.().id ?? name;
}

function statusOf(error: unknown, cancelled: boolean): Status {
  const code = errorCode(error);
  if (code === "limit_reached" || code === "denied") return "incomplete";
  return isCancellation(error, cancelled) ? "cancelled" : "error";
}
