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
  type Tool,
  toolChanges,
} from "preamp/base";
import { CONFIG_SCHEMA, describeServers, type McpConfig, readServers, type ServerConfig } from "./config.ts";
import { type Ask, askWith } from "./questions.ts";
import type { ServerTarget } from "./connection.ts";
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
  const config = readServers(written);
  const warnings: string[] = [];
  const connected = await connectAll(config, coordinator.permissions, askWith(coordinator), warnings);
  coordinator.registerCleanup(() => closeAll(connected));
  await checkPins(connected, config.pins);
  for (const { name, notes } of connected) warnings.push(...warningOf(name, notes));
  for (const message of warnings) {
    await coordinator.hooks.emit("user:notification", { message, level: "warning", source: module.id });
  }
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
  const config = readServers(written);
  const missing: string[] = [];
  const connected = await connectAll(config, permissions, () => Promise.resolve(false), missing);
  try {
    if (missing.length > 0) throw new PreampError("module_invalid", missing.join("; ")); // it would not be pinned
    const { pinsOf } = await import("./definitions.ts");
    const pinned = connected.map(async ({ name, definitions }) => [name, await pinsOf(definitions)] as const);
    return Object.fromEntries(await Promise.all(pinned));
  } finally {
    await closeAll(connected);
  }
}

/** Connects to all servers at once; to none if one fails that is not optional. */
async function connectAll(
  config: McpConfig,
  permissions: GrantedPermissions,
  ask: Ask,
  warnings: string[],
): Promise<McpServer[]> {
  const { McpServer } = await import("./server.ts");
  const all = { net: true, run: true };
  const targetOf = (name: string, server: ServerConfig, grant: ServerTarget["grant"]): ServerTarget => ({
    name,
    config: server,
    grant,
    limits: config,
    ask: (message, content) => ask(name, message, content),
  });
  const targets = [
    ...Object.entries(config.servers).map(([name, server]) => targetOf(name, server, permissions)),
    ...config.listed.map((name) => targetOf(name, config.operator_servers[name]!, all)), // it was checked
  ];
  const pinsOf = (name: string) => Object.hasOwn(config.pins, name) ? config.pins[name] : undefined;
  const results = await Promise.allSettled(
    targets.map((target) => McpServer.connect(target, pinsOf(target.name))),
  );
  const connected = results.flatMap((result) => result.status === "fulfilled" ? [result.value] : []);
  const failed: string[] = [];
  for (const [index, result] of results.entries()) {
    if (result.status === "fulfilled") continue;
    const { optional } = targets[index]!.config;
    (optional ? warnings : failed).push(errorMessage(result.reason));
  }
  if (failed.length === 0) return connected;
  await closeAll(connected);
  throw new PreampError("module_invalid", failed.join("; "));
}

/** Most sentences about the tools of one server. */
const MAX_NOTES = 10;

function warningOf(name: string, notes: readonly string[]): string[] {
  if (notes.length === 0) return [];
  const more = notes.length > MAX_NOTES ? `; and ${notes.length - MAX_NOTES} more` : "";
  return [`Server "${name}": ${notes.slice(0, MAX_NOTES).join("; ")}${more}`];
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
  definition: McpServer["definitions"][number],
  is_pinned: boolean,
): Tool {
  const { name: original, title, description, inputSchema, annotations = {} } = definition;
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
    execute: (input, call) => server.call(definition, input, call),
  };
}
