/**
 * Records the calls to a guest's context manager, so that a restarted guest receives the conversation again. Knows calls, not
 * contexts.
 */
import type { ObjectCall, ObjectCallOptions } from "./guest_proxies.ts";

/** Records the conversation of one mounted context manager. */
export class ContextRecorder {
  #messages: unknown[] = [];
  #system_prompt: readonly unknown[] | null = null;
  #options: ObjectCallOptions | null = null;

  /** Returns a call that records the conversation. */
  wrap(call: ObjectCall): ObjectCall {
    return async (method, args, options) => {
      const answer = await call(method, args, options);
      this.#record(method, args, options);
      return answer;
    };
  }

  /** Sends the recorded conversation through a call. */
  async restore(call: ObjectCall): Promise<void> {
    if (this.#options === null) return; // nothing was recorded
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
