/**
 * What a guest's context manager was told, kept on this side: one that died and was started again is told it anew, so that the
 * model of the run that goes on still has its conversation. Knows calls, not contexts.
 */
import type { ObjectCall, ObjectCallOptions } from "./guest_proxies.ts";

/** The memory of one mounted context. */
export class ContextRecorder {
  #messages: unknown[] = [];
  #system_prompt: readonly unknown[] | null = null;
  #options: ObjectCallOptions | null = null;

  /** Returns the call, remembering what it told. */
  wrap(call: ObjectCall): ObjectCall {
    return async (method, args, options) => {
      const answer = await call(method, args, options);
      this.#record(method, args, options);
      return answer;
    };
  }

  /** Tells it all again, through this call. */
  async restore(call: ObjectCall): Promise<void> {
    if (this.#options === null) return; // it was never told anything
    if (this.#system_prompt) await call("setSystemPromptFactory", this.#system_prompt, this.#options);
    await call("setMessages", [this.#messages], this.#options);
  }

  #record(method: string, args: readonly unknown[], options: ObjectCallOptions): void {
    switch (method) {
      case "addMessage":
        this.#messages.push(args[0]);
        break;
      case "setMessages":
        this.#messages = Array.isArray(args[0]) ? [...args[0]] : [];
        break;
      case "clear":
        this.#messages = [];
        break;
      case "setSystemPromptFactory":
        this.#system_prompt = args;
        break;
      default:
        return;
    }
    this.#options = options;
  }
}
