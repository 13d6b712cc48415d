/** A tool that reads files. It does not check their path: the sandbox does. */
import { type Coordinator, defineTool, type JsonObject, type ModuleInfo, z } from "preamp";

export const module: ModuleInfo = {
  id: "tool-read-note",
  type: "tool",
  version: "1.0.0",
  description: "Reads notes.",
  config_schema: { type: "object", properties: { folder: { type: "string" } }, required: ["folder"] },
};

/** Mounts the tool. */
export async function mount(coordinator: Coordinator, config: JsonObject): Promise<void> {
  await coordinator.mount(
    "tools",
    defineTool({
      name: "read_note",
      description: "Reads a note.",
      input: z.object({ path: z.string() }),
      execute: ({ path }) => Deno.readTextFile(`${config.folder}/${path}`),
    }),
  );
}
