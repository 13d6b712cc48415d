/** The resources and prompts of servers, as one tool each. */
import { defineTool, type JsonObject, type Tool, toolFailure } from "preamp/base";
import type { McpServer } from "./server.ts";

/** Returns `mcp_resources` and `mcp_prompts` where a server has them. */
export function contentTools(servers: readonly McpServer[]): Tool[] {
  const readers = servers.filter((server) => server.has("resources"));
  const prompters = servers.filter((server) => server.has("prompts"));
  return [
    ...(readers.length === 0 ? [] : [defineTool({
      name: "mcp_resources",
      description: `List the resources of a server, or read one by its uri. Servers: ${namesOf(readers)}.`,
      input: {
        type: "object",
        properties: { server: { type: "string" }, uri: { type: "string", description: "Default: list all" } },
        required: ["server"],
      },
      risk: "medium",
      async execute({ server, uri }: { server: string; uri?: string }, call) {
        return await on(readers, server, (found) => found.resources(uri, call));
      },
    })]),
    ...(prompters.length === 0 ? [] : [defineTool({
      name: "mcp_prompts",
      description: `List the prompts of a server, or get one by its name. Servers: ${namesOf(prompters)}.`,
      input: {
        type: "object",
        properties: {
          server: { type: "string" },
          name: { type: "string", description: "Default: list all" },
          arguments: { type: "object", description: "Texts by name" },
        },
        required: ["server"],
      },
      risk: "medium",
      async execute(input: { server: string; name?: string; arguments?: JsonObject }, call) {
        return await on(prompters, input.server, (found) => found.prompts(input.name, input.arguments, call));
      },
    })]),
  ];
}

function namesOf(servers: readonly McpServer[]): string {
  return servers.map(({ name }) => name).join(", ");
}

async function on(
  servers: readonly McpServer[],
  name: string,
  use: (server: McpServer) => Promise<unknown>,
): Promise<unknown> {
  const server = servers.find((one) => one.name === name);
  if (server) return await use(server);
  return toolFailure(`There is no server ${JSON.stringify(name)}: servers are ${namesOf(servers)}`);
}
