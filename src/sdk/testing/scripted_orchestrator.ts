/** An orchestrator with scripted answers that calls no provider and emits the events of a turn. */
import type { ContextManager, ExecuteOptions, Orchestrator } from "../contracts.ts";
import type { HookRegistry } from "../hooks.ts";
import { type Prompt, textOf, toBlocks } from "../messages.ts";
import type { Provider } from "../providers.ts";
import type { Tool } from "../tools.ts";

/** An orchestrator that answers in order, then with `DONE`. */
export class ScriptedOrchestrator implements Orchestrator {
  /** Number of calls of `execute`. */
  call_count = 0;
  /** The prompts, in order. */
  readonly prompts: Prompt[] = [];
  readonly #responses: readonly string[];

  /** Creates an orchestrator with a script. */
  constructor(responses: readonly string[] = []) {
    this.#responses = responses;
  }

  /** Stores the prompt and the next answer, emits the events of one turn, and resolves to the answer. */
  async execute(
    prompt: Prompt,
    context: ContextManager,
    _providers: Record<string, Provider>,
    _tools: Record<string, Tool>,
    hooks: HookRegistry,
    options?: ExecuteOptions,
  ): Promise<string> {
    this.prompts.push(prompt);
    const answer = this.#responses[this.call_count++] ?? "DONE";
    await hooks.emit("execution:start", { prompt });
    const emitted = await hooks.emit("prompt:submit", { prompt });
    const submitted = await options?.coordinator.processHookResult(emitted, "prompt:submit") ?? emitted;
    const denied = submitted.action === "deny";
    const response = denied ? `Operation denied: ${submitted.reason}` : answer;
    if (!denied) {
      await context.addMessage({
        role: "user",
        content: typeof prompt === "string" ? prompt : toBlocks(prompt),
      });
      await context.addMessage({ role: "assistant", content: answer });
      const length = [...answer].length;
      await hooks.emit("prompt:complete", { response_preview: textOf(answer).slice(0, 200), length });
    }
    await hooks.emit("execution:end", { response, status: "completed" });
    const status = denied ? "incomplete" : "success";
    await hooks.emit("orchestrator:complete", {
      orchestrator: "scripted",
      turn_count: denied ? 0 : 1,
      status,
    });
    return response;
  }
}
