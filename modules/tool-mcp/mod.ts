/** `tool-mcp`: the tools of MCP servers, as tools of the plan. */
import {
  type Coordinator,
  errorMessage,
  type GrantedPermissions,
  type JsonObject,
  type ModuleInfo,
  type MountReturn,
  type PinnedTools,
  PreampError,
  readConfig,
  type Tool,
  toolChanges,
} from "preamp/base";
import { checkServers, CONFIG_SCHEMA, describeServers, type McpConfig } from "./config.ts";
import { type Ask, askWith } from "./questions.ts";
import type { McpServer } from "./server.ts";

export const module: ModuleInfo = {
  id: "tool-mcp",
  type: "tool",
  version: "1.0.0",
  description: "Gives the model the tools of MCP servers.",
  config_schema: CONFIG_SCHEMA,
};

/** What `preamp plan explain` displays of the servers, without a connection. */
export const servers = describeServers;

/**
 * Mounts each tool of each server as `server__tool`, or `mcp_search` where they would fill the context.
 *
 * @throws {PreampError} `module_integrity_mismatch` when a tool is not the one that the lock pins;
 * `module_invalid` when a server cannot be used.
 */
export async function mount(coordinator: Coordinator, written: JsonObject): Promise<MountReturn> {
  const config = readConfig<McpConfig>(CONFIG_SCHEMA, written, checkServers);
  const connected = await connectAll(config, coordinator.permissions, askWith(coordinator));
  coordinator.registerCleanup(() => closeAll(connected));
  await checkPins(connected, config.pins);
  const { modelNames } = await import("./definitions.ts");
  const all: Tool[] = [];
  for (const server of connected) {
    const names = await modelNames(server.name, server.definitions.map(({ name }) => name));
    const is_pinned = Object.hasOwn(config.pins, server.name);
    // one name for each
    all.push(...server.definitions.map((one, index) => toolOf(names[index]!, server, one, is_pinned)));
  }
  const { contentTools } = await import("./contents.ts");
  const contents = contentTools(connected);
  if (all.length + contents.length === 0) return { skipped: "its servers have no tools" };
  const { fillContext, searchTool } = await import("./discovery.ts");
  const searched = config.discovery === "search" ||
    config.discovery === "auto" && fillContext(all, coordinator);
  const offered = [...searched ? [await searchTool(coordinator, all)] : all, ...contents];
  for (const tool of offered) await coordinator.mount("tools", tool, tool.name);
  const provides = offered.map(({ name }) => name);
  return { name: module.id, version: module.version, provides };
}

/**
 * Resolves to the definitions of all tools of a config's servers, as a lock keeps them.
 *
 * @throws {PreampError} `module_invalid` when a server cannot be used.
 */
export async function pins(
  written: JsonObject,
  permissions: GrantedPermissions,
): Promise<Record<string, PinnedTools>> {
  const config = readConfig<McpConfig>(CONFIG_SCHEMA, written, checkServers);
  const connected = await connectAll(config, permissions, () => Promise.resolve(false));
  try {
    const { pinsOf } = await import("./definitions.ts");
    const pinned = connected.map(async ({ name, definitions }) => [name, await pinsOf(definitions)] as const);
    return Object.fromEntries(await Promise.all(pinned));
  } finally {
    await closeAll(connected);
  }
}

/** Connects to all servers at once; to none if one fails. */
async function connectAll(
  config: McpConfig,
  permissions: GrantedPermissions,
  ask: Ask,
): Promise<McpServer[]> {
  const { McpServer } = await import("./server.ts");
  const all = { net: true, run: true };
  const results = await Promise.allSettled([
    ...Object.entries(config.servers).map(([name, server]) =>
      McpServer.connect(name, server, permissions, config, ask)
    ),
    ...config.listed.map((name) => McpServer.connect(name, config.operator_servers[name]!, all, config, ask) // checkServers found it
    ),
  ]);
  const connected = results.flatMap((result) => result.status === "fulfilled" ? [result.value] : []);
  const failed = results.flatMap((result) =>
    result.status === "rejected" ? [errorMessage(result.reason)] : []
  );
  if (failed.length === 0) return connected;
  await closeAll(connected);
  throw new PreampError("module_invalid", failed.join("; "));
}

async function closeAll(servers: readonly McpServer[]): Promise<void> {
  await Promise.all(servers.map((server) => server.close()));
}

/** @throws {PreampError} `module_integrity_mismatch` when a pinned server has other tools than its lock. */
async function checkPins(servers: readonly McpServer[], pins: McpConfig["pins"]): Promise<void> {
  const { pinsOf } = await import("./definitions.ts");
  const changes: string[] = [];
  for (const { name, definitions } of servers) {
    if (Object.hasOwn(pins, name)) changes.push(...toolChanges(name, pins[name]!, await pinsOf(definitions)));
  }
  if (changes.length === 0) return;
  const shown = changes.slice(0, 10).join("; ");
  throw new PreampError(
    "module_integrity_mismatch",
    `The tools of a server are not those of the lock: ${shown}. If that is right, run preamp plan lock`,
  );
}

function toolOf(
  name: string,
  server: McpServer,
  { name: original, title, description, inputSchema, annotations = {} }: McpServer["definitions"][number],
  is_pinned: boolean,
): Tool {
  // a server says of itself that a tool only reads; that counts if a person saw it, in the lock
  const reads = is_pinned && annotations.readOnlyHint === true;
  return {
    name,
    description: description || title || original,
    input_schema: inputSchema,
    risk: reads ? "low" : "high",
    idempotent: reads || is_pinned && annotations.idempotentHint === true,
    // the server checks its own input: its schema may have a pattern that takes hours
    checkInput: () => Promise.resolve([]),
    execute: (input, call) => server.call(original, input, call),
  };
}
