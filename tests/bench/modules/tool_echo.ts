/** A tool that answers with what it was given. */
import type { Coordinator, ModuleInfo, Tool } from "preamp";

/** What this module is. */
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
