/** A tool that waits for a timer, as one that asks another machine would. */
import type { Coordinator, ModuleInfo, Tool } from "preamp";

/** What this module is. */
export const module: ModuleInfo = { id: "tool-wait", type: "tool", version: "1.0.0" };

/** The tool `wait`. */
export const wait: Tool = {
  name: "wait",
  description: "Waits",
  input_schema: {
    type: "object",
    properties: { ms: { type: "number" } },
    required: ["ms"],
  },
  async execute({ ms }) {
    await new Promise((resolve) => setTimeout(resolve, Number(ms)));
    return { success: true, output: "waited" };
  },
};

/** Mounts the tool. */
export async function mount(coordinator: Coordinator): Promise<void> {
  await coordinator.mount("tools", wait, wait.name);
}
