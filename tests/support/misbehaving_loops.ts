/** Loops that misbehave, each in one way. See `kernel/misbehaving_loops_test.ts`. */
import type { ContextManager, Orchestrator, Provider, Tool } from "../../src/sdk/types.ts";

/** Calls the model once and stores its answer. */
async function answer(prompt: unknown, context: ContextManager, mock: Provider | undefined): Promise<string> {
  await context.addMessage({ role: "user", content: String(prompt) });
  const { content } = await mock!.complete({ messages: await context.getMessages() });
  await context.addMessage({ role: "assistant", content });
  return String(content[0]?.text);
}

/** Emits nothing, and calls tools by `execute`; the kernel emits what belongs to their calls. */
export const SILENT: Orchestrator = {
  async execute(prompt, context, { mock }, tools) {
    await context.addMessage({ role: "user", content: prompt });
    while (true) {
      const answer = await mock!.complete({ messages: await context.getMessages() });
      await context.addMessage({ role: "assistant", content: answer.content });
      if (!answer.tool_calls) return String(answer.content[0]?.text);
      for (const { id, name, arguments: input } of answer.tool_calls) {
        const content = await textOfCall(tools[name]!, input);
        await context.addMessage({ role: "tool", tool_call_id: id, name, content });
      }
    }
  },
};

async function textOfCall(tool: Tool, input: Parameters<Tool["execute"]>[0]): Promise<string> {
  try {
    return String((await tool.execute(input) as { output: unknown }).output);
  } catch (error) {
    return `failed: ${(error as Error).message}`;
  }
}

/** Tries again after every refusal: of a gate, a limit or a cancellation. */
export const STUBBORN: Orchestrator = {
  async execute(prompt, context, { mock }, tools) {
    await context.addMessage({ role: "user", content: prompt });
    for (let attempt = 0; attempt < 100; attempt++) {
      try {
        const { content, tool_calls } = await mock!.complete({ messages: await context.getMessages() });
        await context.addMessage({ role: "assistant", content });
        if (!tool_calls) return String(content[0]?.text);
        for (const { name, arguments: input } of tool_calls) await tools[name]!.execute(input);
      } catch {
        // again
      }
    }
    return "I have tried everything.";
  },
};

/** Emits each of its events twice. */
export const REPEATING: Orchestrator = {
  async execute(prompt, context, { mock }, _tools, hooks) {
    const twice = async (event: string, data: Record<string, unknown>) => {
      for (let count = 0; count < 2; count++) await hooks.emit(event, data);
    };
    await twice("execution:start", { prompt });
    await twice("prompt:submit", { prompt });
    const text = await answer(prompt, context, mock);
    await twice("execution:end", { response: text, status: "completed" });
    await twice("orchestrator:complete", { orchestrator: "repeating", turn_count: 1, status: "success" });
    return text;
  },
};

/** Reports an answer and a tool's result that do not exist, and its end before it begins. */
export const FORGING: Orchestrator = {
  async execute(prompt, context, { mock }, _tools, hooks) {
    await hooks.emit("orchestrator:complete", { orchestrator: "forging", turn_count: 9, status: "success" });
    await hooks.emit("session:end", { status: "completed" });
    await hooks.emit("tool:post", { tool_name: "t", tool_call_id: "c9", result: { success: true } });
    return await answer(prompt, context, mock);
  },
};

/** Continues after its end: calls the model and a tool. `left` resolves when that has failed. */
export function lingering(): Orchestrator & { left: Promise<PromiseSettledResult<unknown>[]> } {
  const { promise: left, resolve } = Promise.withResolvers<PromiseSettledResult<unknown>[]>();
  return {
    left,
    async execute(prompt, context, { mock }, tools) {
      const text = await answer(prompt, context, mock);
      setTimeout(() => {
        const calls = [
          () => mock!.complete({ messages: [] }),
          () => tools.t!.execute({}),
        ].map((call) => Promise.try(call));
        resolve(Promise.allSettled(calls));
      });
      return text;
    },
  };
}

/** Never ends, also when it is cancelled. */
export const ENDLESS: Orchestrator = {
  execute: (_prompt, _context, _providers, _tools, _hooks) => new Promise(() => {}),
};

/** Throws at once. */
export const THROWING: Orchestrator = {
  execute: (_prompt, _context, _providers, _tools, _hooks) => Promise.reject(new Error("no idea")),
};

/** Returns something that is no text. */
export const SPEECHLESS: Orchestrator = {
  execute: (_prompt, _context, _providers, _tools, _hooks) => Promise.resolve(42 as never),
};
