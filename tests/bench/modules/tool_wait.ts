/** A tool that waits for a timer, like a tool that calls a remote service. */
import type { Coordinator, ModuleInfo, Tool } from "preamp";

/** Describes the module. */
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
