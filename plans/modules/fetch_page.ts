/** A tool that declares that it needs the network. The plan grants the permission. */
import { type Coordinator, defineTool, type ModuleInfo, z } from "preamp";

export const module: ModuleInfo = {
  id: "tool-fetch-page",
  type: "tool",
  version: "1.0.0",
  description: "Fetches pages as text.",
  permissions: { net: ["127.0.0.1:8484"] },
};

const MAX_CHARACTERS = 2000;

const fetchPage = defineTool({
  name: "fetch_page",
  description: "Fetches a page and returns its text.",
  input: z.object({ url: z.url() }),
  async execute({ url }, call) {
    const response = await fetch(url, { signal: call?.signal ?? null });
    const text = await response.text();
    return `${response.status}: ${text.slice(0, MAX_CHARACTERS)}`;
  },
});

/** Mounts the tool. */
export async function mount(coordinator: Coordinator): Promise<void> {
  await coordinator.mount("tools", fetchPage);
}
