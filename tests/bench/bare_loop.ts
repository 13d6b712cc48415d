/** The floor of a loop: a hand-written loop over the same provider and tool. */
import { module as calculatorInfo, mount as mountCalculator } from "../../modules/tool-calculator/mod.ts";
import { mount as mountProvider } from "../../modules/provider-mock/mod.ts";
import { systemClock } from "../../src/process/system_clock.ts";
import type { Coordinator, JsonObject, Message, Provider, Tool, ToolSpec } from "../../src/sdk/types.ts";
import { toToolResult } from "../../src/sdk/tools.ts";

/** The result of one bare run. */
export interface BareRun {
  iterations: number;
  deltas: number;
  text: string;
}

/** Runs one prompt to its answer; `config` is that of provider-mock. */
export async function runBare(prompt: string, config: JsonObject): Promise<BareRun> {
  const { provider, tool } = await mountParts(config);
  const tools: ToolSpec[] = [{
    name: tool.name,
    description: tool.description,
    parameters: tool.input_schema ?? {},
  }];
  const messages: Message[] = [{ role: "user", content: prompt }];
  const run: BareRun = { iterations: 0, deltas: 0, text: "" };
  for (;;) {
    const response = await provider.complete({ messages, tools }, { onDelta: () => void run.deltas++ });
    run.iterations++;
    const calls = response.tool_calls ?? [];
    const tool_calls = calls.map(({ id, name, arguments: input }) => ({
      id,
      name,
      tool: name,
      arguments: input,
    }));
    messages.push({
      role: "assistant",
      content: response.content,
      ...(calls.length > 0 ? { tool_calls } : {}),
    });
    if (calls.length === 0) {
      const [block] = response.content;
      return { ...run, text: String(block?.text ?? "") };
    }
    for (const call of calls) {
      const result = toToolResult(await tool.execute(call.arguments));
      messages.push({
        role: "tool",
        tool_call_id: call.id,
        name: call.name,
        content: result.getSerializedOutput(),
      });
    }
  }
}

/** Mounts the provider and the tool without a kernel. */
async function mountParts(config: JsonObject): Promise<{ provider: Provider; tool: Tool }> {
  const mounted = new Map<string, object>();
  const coordinator = {
    session_state: {},
    clock: systemClock(),
    getCapability: () => null,
    registerCapability: () => {},
    mount: (point: string, module: object) => Promise.resolve(void mounted.set(point, module)),
  };
  await mountProvider(coordinator as unknown as Coordinator, config); // the two modules use only this part of a coordinator
  await mountCalculator(coordinator as unknown as Coordinator);
  const provider = mounted.get("providers");
  const tool = mounted.get("tools");
  if (!provider || !tool) {
    throw new Error(`Cannot mount the floor: a provider and ${calculatorInfo.id} must be there`);
  }
  return { provider: provider as Provider, tool: tool as Tool };
}
