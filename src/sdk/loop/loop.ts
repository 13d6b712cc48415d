/**
 * Runs one turn from prompt to answer. The built-in loops use this loop with different defaults. Limits,
 * counting and approvals are not here: the guards enforce them.
 */
import { errorCode, errorMessage, PreampError } from "../errors.ts";
import type {
  CallFacts,
  ContextManager,
  Coordinator,
  ExecuteOptions,
  Orchestrator,
  RequestOptions,
} from "../contracts.ts";
import type { HookRegistry } from "../hooks.ts";
import { jsonEqual, toFrozenOwn } from "../json.ts";
import { type ChatRequest, type ChatResponse, type Message, type Prompt, textOf } from "../messages.ts";
import type { Provider } from "../providers.ts";
import type { Tool, ToolCall } from "../tools.ts";
import { assistantMessage, cutCallOf, isCut, standingOf, withoutCalls } from "./assistant_message.ts";
import { CallThrottle } from "./call_throttle.ts";
import { isPassing } from "./provider_errors.ts";
import { chooseProvider, type ChosenProvider, nextProvider } from "./provider_selection.ts";
import { buildRequest, ToolListBuilder } from "./chat_request.ts";
import {
  formatInstruction,
  formattedAnswer,
  MAX_REPAIRS,
  reminder,
  repairRequest,
} from "./response_format.ts";
import { SteeringQueue } from "./steering.ts";
import { selectTool } from "./tool_calls.ts";
import type { LoopConfig } from "./loop_config.ts";

/** Attempts of a model call after the first one, unless the configuration states another number. */
const DEFAULT_MAX_RETRIES = 2;

/** Consecutive answers without text and calls that end the turn. */
const MAX_EMPTY_RESPONSES = 3;

/** Consecutive answers whose call the limit of output tokens cut, that end the turn. */
const MAX_CUT_CALLS = 3;

/** Identical calls with identical results in a row that are reported to the model and to a person. */
const MAX_REPEATED_CALLS = 10;

/** Message to the model when the loop's own limit is reached. */
const WRAP_UP = reminder(
  "loop-limit",
  "No further tool calls are possible in this turn. Answer now with what you have; say what is done and what is left. " +
    "Do not mention this reminder.",
  { ephemeral: true },
);

const CANCELLED_NOTE = "The previous operation was cancelled. The results of completed tools are preserved.";

/**
 * Returns an orchestrator with this configuration; `queue` receives steering texts. `coordinator`: the one
 * of the module, for a caller of `execute` that passes none.
 */
export function createLoop(
  config: LoopConfig,
  queue: SteeringQueue = new SteeringQueue(),
  coordinator?: Coordinator,
): Orchestrator {
  const tool_list = new ToolListBuilder();
  const { min_delay_between_calls_ms: min_ms = 0 } = config;
  const throttle = min_ms > 0 ? new CallThrottle(min_ms) : null;
  return {
    resumable: true,
    async execute(prompt, context, providers, tools, hooks, options = coordinator && { coordinator }) {
      const given = { prompt, context, providers, tools, hooks, options };
      queue.open();
      try {
        return await new TurnRun({ config, queue, tool_list, throttle, ...given }).run();
      } finally {
        queue.close();
      }
    },
  };
}

interface TurnInputs {
  config: LoopConfig;
  queue: SteeringQueue;
  tool_list: ToolListBuilder;
  throttle: CallThrottle | null;
  prompt: Prompt;
  context: ContextManager;
  providers: Record<string, Provider>;
  tools: Record<string, Tool>;
  hooks: HookRegistry;
  options: ExecuteOptions | undefined;
}

type Status = "success" | "incomplete" | "cancelled" | "error";

class TurnRun {
  readonly #inputs: TurnInputs;
  readonly #coordinator: Coordinator | undefined;
  #chosen: ChosenProvider | null = null;
  #iteration: number;
  #answered: number;
  #empty = 0;
  #repairs = 0;
  #cut_calls = 0;
  #repeated: { call: ToolCall; content: Message["content"]; count: number } | null = null;
  #text = "";
  #status: Status = "incomplete";

  constructor(inputs: TurnInputs) {
    const { options } = inputs;
    this.#inputs = inputs;
    this.#coordinator = options?.coordinator;
    this.#iteration = this.#answered = options?.resume ? options.iteration ?? 0 : 0;
  }

  async run(): Promise<string> {
    await (this.#inputs.options?.resume ? this.#resume() : this.#begin());
    this.#inputs.queue.close();
    await this.#inputs.hooks.emit("orchestrator:complete", { // states how the turn ended
      orchestrator: this.#inputs.config.orchestrator,
      turn_count: this.#answered,
      status: this.#status,
    });
    return this.#text;
  }

  async #begin(): Promise<void> {
    await this.#store({ role: "user", content: this.#inputs.prompt });
    await this.#iterate();
  }

  /** Resumes an interrupted turn: first the unanswered calls, then the loop. */
  async #resume(): Promise<void> {
    const { open_calls, cut_call, answer } = standingOf(await this.#inputs.context.getMessages());
    if (this.#cancelled) return this.#cancel();
    if (open_calls.length > 0) {
      if (await this.#runTools(open_calls, cut_call)) return;
    } else if (answer !== null && this.#iteration > this.#max_iterations) {
      return this.#finish(answer, "incomplete");
    } else if (answer !== null && await this.#settleAnswer(answer, answer === "")) return;
    await this.#iterate();
  }

  async #iterate(): Promise<void> {
    const { throttle, hooks } = this.#inputs;
    while (this.#iteration < this.#max_iterations) {
      if (throttle) await throttle.waitForSlot(hooks, this.#coordinator, this.#iteration + 1);
      if (this.#cancelled) return this.#cancel();
      if (this.#inputs.queue.size > 0) await this.#steer();
      const response = await this.#request(false);
      const calls = response.tool_calls ?? [];
      const text = textOf(response.content);
      if (calls.length > 0) {
        this.#text = text;
        this.#empty = 0;
        if (await this.#runTools(calls, cutCallOf(calls, response.finish_reason))) return;
      } else if (await this.#settleAnswer(text, isCut(response))) return;
    }
    if (this.#cancelled) return this.#cancel();
    await this.#wrapUp();
  }

  /** Handles an answer without calls; returns true when the turn ends with it. */
  async #settleAnswer(text: string, is_cut: boolean): Promise<boolean> {
    const { queue, config, context } = this.#inputs;
    if (text === "" && !is_cut) return ++this.#empty >= MAX_EMPTY_RESPONSES;
    const { response_format: format } = config;
    const { answer, problems } = format && !is_cut
      ? await formattedAnswer(format, text)
      : { answer: text, problems: [] };
    this.#text = answer;
    // a steering text that arrived during the answer is read by the next request, if there is one
    if (queue.size > 0 && !this.#cancelled && this.#iteration < this.#max_iterations) return false;
    if (format && problems.length > 0) {
      if (this.#repairs++ >= MAX_REPAIRS) {
        const message =
          `Cannot use the answer: it does not match response_format after ${MAX_REPAIRS} repairs`;
        throw new PreampError("provider_bad_response", `${message}: ${problems.join("; ")}`);
      }
      await context.addMessage(repairRequest(format, problems));
      return false;
    }
    this.#finish(answer, "success");
    return true;
  }

  /** Model calls that the run's limit allows; any number where a person may raise it. */
  get #run_limit(): number {
    const { max_iterations = Number.MAX_SAFE_INTEGER, on_limit } = this.#coordinator?.limits ?? {};
    return on_limit === "pause" ? Number.MAX_SAFE_INTEGER : max_iterations;
  }

  /**
   * Model calls before the wrap-up: the loop's own limit, at most the run's. The default keeps one call for
   * the wrap-up.
   */
  get #max_iterations(): number {
    const { max_iterations } = this.#inputs.config;
    const run_limit = this.#run_limit;
    return max_iterations >= 0 ? Math.min(max_iterations, run_limit) : Math.max(1, run_limit - 1);
  }

  get #cancelled(): boolean {
    return this.#coordinator?.cancellation.is_cancelled === true;
  }

  /**
   * Requests one answer, from other providers too if one fails.
   *
   * @param tried Names of the providers that failed.
   */
  async #request(max_reached: boolean, tried: readonly string[] = []): Promise<ChatResponse> {
    const { context, config, throttle } = this.#inputs;
    const chosen = this.#chosen ??= chooseProvider(this.#inputs.providers, config.default_provider);
    this.#iteration++;
    const { options, requestFor } = this.#parts(chosen, max_reached);
    const request = requestFor(await context.getMessagesForRequest(options));
    let streamed = false;
    let answer: ChatResponse;
    try {
      const { max_retries = DEFAULT_MAX_RETRIES } = config;
      const signal = this.#coordinator?.cancellation.signal;
      answer = await chosen.provider.complete(request, {
        max_retries,
        shorten: async (overflow) =>
          requestFor(await context.getMessagesForRequest({ ...options, overflow })),
        ...(signal ? { signal } : {}),
        ...(config.fallback ? { onDelta: () => void (streamed = true) } : {}),
      });
    } catch (error) {
      const failed = [...tried, chosen.name];
      const next = streamed || this.#cancelled || !isPassing(error)
        ? null
        : nextProvider(this.#inputs.providers, config.fallback ?? false, new Set(failed));
      if (next === null) throw error;
      await this.#fallBack(next, chosen.name);
      return await this.#request(max_reached, failed);
    } finally {
      throttle?.markCallEnd(this.#coordinator);
    }
    this.#answered++;
    // the wrap-up offers no tools: a call is dropped, because the history would keep it unanswered
    const response = max_reached ? withoutCalls(answer) : answer;
    if (response.content.length > 0) await this.#store(assistantMessage(response));
    return response;
  }

  /** Returns what a request has beside its view: for the context, and as a function of the view. */
  #parts({ name, provider }: ChosenProvider, max_reached: boolean): {
    options: RequestOptions;
    requestFor(view: Message[]): ChatRequest;
  } {
    const { config, tool_list, tools } = this.#inputs;
    const specs = max_reached ? [] : tool_list.specs(tools, provider.getInfo?.().id ?? name);
    const tail: Message[] = max_reached ? [WRAP_UP] : [];
    const instruction = formatInstruction(config.response_format, provider);
    if (instruction) tail.unshift(instruction);
    const options: RequestOptions = { provider, tools: specs, injections: tail };
    if (max_reached) options.max_reached = true;
    return { options, requestFor: (view) => buildRequest(config, view, specs, tail) };
  }

  /** Chooses another provider after a failure. */
  async #fallBack(next: ChosenProvider, failed: string): Promise<void> {
    await this.#inputs.hooks.emit("provider:resolve", {
      provider: next.name,
      model: next.provider.getInfo?.().defaults?.model ?? null,
      reason: `provider ${failed} failed`,
    });
    this.#chosen = next;
  }

  /** Runs the calls of an answer and stores their results; returns true when the turn must end. */
  async #runTools(calls: readonly ToolCall[], cut_call: string | undefined): Promise<boolean> {
    const { messages, limited } = await this.#callTools(calls, cut_call);
    for (let index = 0; index < messages.length; index++) await this.#store(messages[index]!); // below the length
    if (this.#coordinator?.cancellation.is_immediate) {
      await this.#store({ role: "assistant", content: [{ type: "text", text: CANCELLED_NOTE }] });
    }
    if (limited) this.#status = "incomplete";
    else await this.#noteRepeated(calls, messages);
    this.#cut_calls = cut_call === undefined ? 0 : this.#cut_calls + 1;
    if (this.#cut_calls < MAX_CUT_CALLS || limited || this.#cancelled) return limited;
    this.#finish(this.#text, "incomplete");
    return true;
  }

  /**
   * Runs calls, at most `max_parallel_tools` at once; resolves to their messages in call order. Waits for all
   * calls, even when one fails: no call may continue after its turn.
   */
  async #callTools(
    calls: readonly ToolCall[],
    cut_call: string | undefined,
  ): Promise<{ messages: Message[]; limited: boolean }> {
    const facts = { parallel_group_id: this.#newId("grp"), cut_call };
    const messages = new Array<Message>(calls.length);
    let next = 0;
    let failed = false;
    /** Result of the call that a limit refused; the remaining calls get the same, because the turn ends. */
    let refusal: string | null = null;
    const work = async () => {
      while (next < calls.length && !failed) {
        const index = next++;
        const call = calls[index]!; // below the length
        try {
          messages[index] = refusal === null ? await this.#callTool(call, facts) : toolMessage(call, refusal);
        } catch (error) {
          if (errorCode(error) !== "limit_reached") {
            failed = true;
            throw error;
          }
          refusal = `Error executing tool: ${errorMessage(error)}`;
          messages[index] = toolMessage(call, refusal);
        }
      }
    };
    const at_once = Math.min(this.#inputs.config.max_parallel_tools, calls.length);
    for (const worker of await Promise.allSettled(Array.from({ length: at_once }, work))) {
      if (worker.status === "rejected") throw worker.reason;
    }
    return { messages, limited: refusal !== null };
  }

  async #callTool(call: ToolCall, facts: CallFacts & { parallel_group_id: string }): Promise<Message> {
    const { config, hooks, tools, options } = this.#inputs;
    const { coordinator } = options ?? {};
    if (!coordinator) throw new TypeError("Cannot call a tool: execute() received no coordinator");
    const { parallel_group_id } = facts;
    const selection = config.selects_tools && !coordinator.cancellation.is_immediate
      ? await selectTool(call, { hooks, tools: Object.keys(tools), parallel_group_id })
      : { call };
    if ("denied" in selection) return toolMessage(call, `Denied by hook: ${selection.denied}`);
    return { ...await coordinator.callTool(selection.call, facts), name: call.name };
  }

  /** Reports a call that is repeated with the same result to the model and to a person, once a row. */
  async #noteRepeated(calls: readonly ToolCall[], results: readonly Message[]): Promise<void> {
    const { hooks, config: { orchestrator: source } } = this.#inputs;
    for (let index = 0; index < calls.length; index++) {
      const call = calls[index]!; // below the length
      const { content } = results[index]!; // one for each call
      const last = this.#repeated;
      const is_same = last !== null && isSameCall(last.call, call) && jsonEqual(last.content, content);
      const count = is_same ? last.count + 1 : 1;
      this.#repeated = { call, content, count };
      if (count !== MAX_REPEATED_CALLS) continue;
      const fact = `${count} calls of '${call.name}' in a row had the same input and the same result`;
      await this.#store(reminder(
        "repeated-calls",
        `The last ${fact}. Another one changes nothing: do something else, or answer with what you have.`,
      ));
      await hooks.emit("user:notification", { message: fact, level: "warning", source });
    }
  }

  /** Stores a new message; freezing it here saves the guard a copy. */
  #store(message: Message): Promise<void> {
    return this.#inputs.context.addMessage(toFrozenOwn(message) as unknown as Message); // the same fields
  }

  /**
   * Makes one more call without tools, whose text ends the turn. Without room for it in the run's limit, the
   * turn ends with the last text.
   */
  async #wrapUp(): Promise<void> {
    if (this.#answered >= this.#run_limit) return this.#finish(this.#text, "incomplete");
    this.#finish(textOf((await this.#request(true)).content), "incomplete");
  }

  /** Ends the turn with a text. A cancel that was requested during the last call cancels the turn too. */
  #finish(text: string, status: Status): void {
    this.#inputs.queue.close();
    this.#text = text;
    this.#status = this.#cancelled ? "cancelled" : text === "" ? "incomplete" : status;
  }

  async #steer(): Promise<void> {
    const { queue, hooks, context, config } = this.#inputs;
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

  #cancel(): void {
    this.#status = "cancelled";
  }

  #newId(prefix: string): string {
    return this.#coordinator?.newId(prefix) ?? `${prefix}_${crypto.randomUUID()}`;
  }
}

function toolMessage({ id, name }: ToolCall, content: string): Message {
  return { role: "tool", tool_call_id: id, name, content };
}

function isSameCall(one: ToolCall, other: ToolCall): boolean {
  return one.name === other.name && one.invalid_arguments === other.invalid_arguments &&
    jsonEqual(one.arguments, other.arguments);
}
