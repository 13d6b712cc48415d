/** Tools that the model finds by searching, where all of them would fill its context. */
import { type Coordinator, defineTool, isObject, type Tool, toolTokens } from "preamp/base";

/** Tokens of a context whose size is not known. */
const DEFAULT_WINDOW = 100_000;
/** Most tools that one search gives, and characters of a description in its result. */
const MAX_FOUND = 10;
const MAX_DESCRIPTION = 300;
/** Key of the session's state: names of the tools that were found. */
const STATE = "tool-mcp";

/** Returns whether tools would take more than a tenth of the context of the plan's first model. */
export function fillContext(tools: readonly Tool[], { providers }: Coordinator): boolean {
  const [provider] = Object.values(providers);
  const window = provider?.getInfo().defaults.context_window;
  const budget = typeof window === "number" && window > 0 ? window : DEFAULT_WINDOW;
  const specs = tools.map(({ name, description, input_schema = {} }) => ({
    name,
    description,
    parameters: input_schema,
  }));
  return toolTokens(specs) > budget / 10;
}

/**
 * Returns the tool `mcp_search`, which mounts the tools that it finds, and mounts those that were found in
 * earlier runs of the session. They keep their names, so that rules for them hold.
 */
export async function searchTool(coordinator: Coordinator, tools: readonly Tool[]): Promise<Tool> {
  const mounted = new Set<string>();
  const mount = async (tool: Tool) => {
    if (mounted.has(tool.name)) return;
    mounted.add(tool.name);
    await coordinator.mount("tools", tool, tool.name);
  };
  const known = foundBefore(coordinator);
  for (const tool of tools) if (known.has(tool.name)) await mount(tool);
  const servers = [...new Set(tools.map(({ name }) => name.split("__", 1)[0]))].join(", ");
  return defineTool({
    name: "mcp_search",
    description:
      `Find tools by words for what they do. ${tools.length} tools of ${servers}; those found can be called next.`,
    input: {
      type: "object",
      properties: { query: { type: "string", minLength: 1, description: "A few words" } },
      required: ["query"],
    },
    idempotent: true,
    async execute({ query }: { query: string }) {
      const found = search(tools, query);
      for (const tool of found) await mount(tool);
      coordinator.session_state[STATE] = { found: [...mounted] };
      if (found.length === 0) return "No tool fits: try other words, or fewer.";
      const lines = found.map(({ name, description }) => `${name}: ${description.slice(0, MAX_DESCRIPTION)}`);
      return `These tools can be called now:\n${lines.join("\n")}`;
    },
  });
}

function foundBefore({ session_state }: Coordinator): ReadonlySet<unknown> {
  const state = session_state[STATE];
  return new Set(isObject(state) && Array.isArray(state.found) ? state.found : []);
}

/** Returns the tools that fit the words of a query best: in the name, the description, the server. */
function search(tools: readonly Tool[], query: string): Tool[] {
  const words = [...new Set(query.toLowerCase().match(/[\p{L}\p{N}]{2,}/gu))];
  const scored = tools.map((tool) => {
    const [server = "", name = ""] = tool.name.toLowerCase().split(/__(.*)/s);
    const description = tool.description.toLowerCase();
    const scoreOf = (word: string) =>
      (name.includes(word) ? 4 : 0) + (description.includes(word) ? 2 : 0) + (server.includes(word) ? 1 : 0);
    return { tool, score: words.reduce((sum, word) => sum + scoreOf(word), 0) };
  }).toSorted((a, b) => b.score - a.score);
  const least = Math.max(1, (scored[0]?.score ?? 0) / 2);
  return scored.filter(({ score }) => score >= least).slice(0, MAX_FOUND).map(({ tool }) => tool);
}
