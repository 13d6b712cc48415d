/** A tool that returns its input. */
import type { Coordinator, ModuleInfo, Tool } from "preamp";

/** Describes the module. */
export const module: ModuleInfo = { id: "tool-echo", type: "tool", version: "1.0.0" };

const echo: Tool = {
  name: "echo",
  description: "Echoes",
  input_schema: {
    type: "object",
    properties: { text: { type: "string" } },
    required: ["text"],
  },
  execute: ({ text }) => Promise.resolve({ success: true, output: text }),
};

/** Mounts the tool. */
export async function mount(coordinator: Coordinator): Promise<void> {
  await coordinator.mount("tools", echo, echo.name);
}
