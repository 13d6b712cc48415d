/** The config of `tool-mcp`. */
import {
  type JsonObject,
  type JsonSchema,
  type ModuleServer,
  type Permissions,
  type PinnedTools,
  readConfig,
  type RefuseConfig,
} from "preamp/base";

/** How a server is reached: a process, streamable HTTP, or the older transport with one stream. */
const TYPES = ["stdio", "http", "streamable-http", "streamableHttp", "sse"] as const;

/** A server in one of its three forms, as a plan writes it. */
export interface WrittenServer {
  type?: typeof TYPES[number];
  url?: string;
  headers?: Record<string, string>;
  command?: string | string[];
  args?: string[];
  env?: Record<string, string>;
  cwd?: string;
  npm?: string;
  permissions?: Permissions;
  optional?: boolean;
}

/** A server; `command` has all words. */
export interface ServerConfig extends Omit<WrittenServer, "command"> {
  command?: string[];
}

interface WrittenConfig extends Omit<McpConfig, "servers" | "operator_servers"> {
  servers: Record<string, WrittenServer>;
  mcpServers: Record<string, WrittenServer>;
  operator_servers: Record<string, WrittenServer>;
}

/** The config with the servers of both keys. */
export interface McpConfig {
  servers: Record<string, ServerConfig>;
  listed: string[];
  discovery: "auto" | "all" | "search";
  timeout_s: number;
  connect_timeout_s: number;
  max_result_bytes: number;
  operator_servers: Record<string, ServerConfig>;
  pins: Record<string, PinnedTools>;
}

const TEXT: JsonSchema = { type: "string", minLength: 1 };
const TEXTS: JsonSchema = { type: "array", items: { type: "string" } };
const TEXT_MAP: JsonSchema = { type: "object", additionalProperties: { type: "string" } };

function grant(items: JsonSchema): JsonSchema {
  return { anyOf: [{ type: "boolean" }, { type: "array", items }] };
}

const PATHS = grant({ type: "string", format: "path", minLength: 1 });

/** One server: in a plan, and in `mcp.servers` of the operator. */
export const SERVER_SCHEMA: JsonSchema = {
  type: "object",
  additionalProperties: false,
  properties: {
    type: { enum: TYPES, description: "How it is reached; by default what its form says" },
    url: { ...TEXT, description: "Address of a server on the web" },
    headers: { ...TEXT_MAP, description: "Headers of each request" },
    command: {
      anyOf: [TEXT, { ...TEXTS, minItems: 1 }],
      description: "Program of a local server, or a list of the program and its arguments",
    },
    args: { ...TEXTS, description: "Arguments of the program or package" },
    env: { ...TEXT_MAP, description: "Variables of a local server" },
    cwd: { type: "string", format: "path", minLength: 1, description: "Folder in which the program starts" },
    npm: { ...TEXT, description: "Package of a server in JavaScript: name@1.2.3" },
    optional: { type: "boolean", description: "Left out with a warning, where it cannot be used" },
    permissions: {
      type: "object",
      additionalProperties: false,
      description: "All that the package may do, in Deno's words",
      properties: {
        net: grant(TEXT),
        read: PATHS,
        write: PATHS,
        env: grant(TEXT),
        run: grant(TEXT),
        sys: grant(TEXT),
      },
    },
  },
};

/** The config of a plan. */
export const CONFIG_SCHEMA: JsonSchema = {
  type: "object",
  properties: {
    servers: {
      type: "object",
      additionalProperties: SERVER_SCHEMA,
      default: {},
      description: "Servers by name, each { url }, { command } or { npm }",
    },
    mcpServers: {
      type: "object",
      additionalProperties: SERVER_SCHEMA,
      default: {},
      description: "More servers, under the key of .mcp.json",
    },
    listed: {
      ...TEXTS,
      default: [],
      description: "Names of servers that the operator lists in preamp.yaml as mcp.servers",
    },
    discovery: {
      enum: ["auto", "all", "search"],
      default: "auto",
      description: "Offers all tools, or mcp_search; auto: the latter above a tenth of the context",
    },
    timeout_s: {
      type: "number",
      exclusiveMinimum: 0,
      default: 60,
      description: "Most time between a call and its answer, or a report of progress",
    },
    connect_timeout_s: {
      type: "number",
      exclusiveMinimum: 0,
      default: 30,
      description: "Most time for the start of a server",
    },
    max_result_bytes: {
      type: "integer",
      minimum: 1024,
      maximum: 67_108_864,
      default: 10_485_760,
      description: "Most bytes of one answer of a server",
    },
    operator_servers: {
      type: "object",
      default: {},
      supplied_by: "settings",
      additionalProperties: SERVER_SCHEMA,
    },
    pins: { type: "object", default: {}, supplied_by: "lock" },
  },
};

/**
 * Names of servers: they begin the names of tools, up to the first `__`, so that no tool of another server
 * has such a name.
 */
const SERVER_NAME = /^(?!.*__)(?!.*_$)[A-Za-z0-9][A-Za-z0-9_-]{0,31}$/;
/** A package of one version. */
const PACKAGE = /^(@[a-z0-9._~-]+\/)?[a-z0-9._~-]+@\d+\.\d+\.\d+[\w.+-]*$/i;

/** Reads the config of a plan. @throws {PreampError} `plan_invalid` */
export function readServers(written: JsonObject): McpConfig {
  const config = readConfig<WrittenConfig>(CONFIG_SCHEMA, written, checkServers);
  const { servers, mcpServers, operator_servers, ...rest } = config;
  return {
    ...rest,
    servers: mapValues({ ...servers, ...mcpServers }, withWords),
    operator_servers: mapValues(operator_servers, withWords),
  };
}

/** Returns a server whose `command` has all words. */
function withWords({ command, args = [], ...server }: WrittenServer): ServerConfig {
  if (command === undefined) return { ...server, ...(server.npm === undefined ? {} : { args }) };
  return { ...server, command: [...[command].flat(), ...args] };
}

function mapValues<T, U>(values: Record<string, T>, map: (value: T) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, map(value)]));
}

/** Refuses servers without one form, and what that form does not have. */
function checkServers(config: WrittenConfig, refuse: RefuseConfig): void {
  const { servers, mcpServers, listed, operator_servers } = config;
  if (Object.keys(servers).length + Object.keys(mcpServers).length + listed.length === 0) {
    refuse(["servers"], "must have a server", "such as { docs: { url: https://mcp.example.com/mcp } }");
  }
  for (const [key, group] of Object.entries({ servers, mcpServers })) {
    for (const [name, server] of Object.entries(group)) {
      checkServer(name, server, (path, fact, hint) => refuse([key, name, ...path], fact, hint));
    }
  }
  for (const name of Object.keys(mcpServers)) {
    if (Object.hasOwn(servers, name)) refuse(["mcpServers", name], "must not be one of servers too");
  }
  for (const [index, name] of listed.entries()) {
    if (Object.hasOwn(servers, name) || Object.hasOwn(mcpServers, name)) {
      refuse(["listed", index], "must not be one of servers");
    }
    const server = Object.hasOwn(operator_servers, name) ? operator_servers[name] : undefined;
    if (server) {
      checkServer(name, server, (path, fact, hint) => refuse(["listed", index, ...path], fact, hint));
    } else {
      const names = Object.keys(operator_servers).join(", ") || "no servers";
      refuse(["listed", index], `must be a server in mcp.servers of the operator, who lists ${names}`);
    }
  }
}

const FORMS = ["url", "command", "npm"] as const;
/** Fields of a form → the forms that have it. */
const FIELDS: Readonly<Record<string, readonly (typeof FORMS[number])[]>> = {
  headers: ["url"],
  args: ["command", "npm"],
  env: ["command", "npm"],
  cwd: ["command", "npm"],
  permissions: ["npm"],
};

/** Refuses what one server must not have. */
function checkServer(name: string, server: WrittenServer, refuse: RefuseConfig): void {
  if (!SERVER_NAME.test(name)) {
    refuse(
      [],
      "its name must have at most 32 letters, digits, single _ inside, and -: tools are named after it",
    );
  }
  const forms = FORMS.filter((form) => server[form] !== undefined);
  const [form] = forms;
  if (form === undefined || forms.length > 1) return refuse([], "must have one of url, command and npm");
  for (const [field, owners] of Object.entries(FIELDS)) {
    if (!Object.hasOwn(server, field) || owners.includes(form)) continue;
    refuse([field], `is for servers with ${owners.join(" or ")}, and this one has ${form}`);
  }
  const { type, url, command, npm } = server;
  if (type !== undefined && (type === "stdio") === (form === "url")) {
    refuse(["type"], `must be ${form === "url" ? "http or sse" : "stdio"} for a server with ${form}`);
  }
  if (url !== undefined && !/^https?:$/.test(URL.parse(url)?.protocol ?? "")) {
    refuse(["url"], "must be an https:// or http:// URL");
  }
  const [program, ...words] = typeof command === "string" ? command.trim().split(/\s+/) : [];
  if (program !== undefined && words.length > 0 && !program.includes("/")) { // a path may have spaces
    refuse(
      ["command"],
      "must be the program alone",
      `write command: ${program}, args: [${words.join(", ")}]`,
    );
  }
  if (npm !== undefined && !PACKAGE.test(npm)) {
    refuse(["npm"], "must be a package of one version: name@1.2.3");
  }
}

/** Returns the servers of a config as `preamp plan explain` displays them. */
export function describeServers(config: JsonObject): ModuleServer[] {
  const { servers, mcpServers, operator_servers = {}, listed = [] } = config as Partial<WrittenConfig>;
  const own = Object.entries({ ...servers, ...mcpServers });
  return [
    ...own.map(([name, server]) => ({ name, ...transportOf(server) })),
    ...listed.map((name) => ({
      name,
      ...(operator_servers[name] ? transportOf(operator_servers[name]) : { transport: "listed", target: "" }),
    })),
  ];
}

function transportOf({ url, command = [], npm, args = [] }: WrittenServer): Omit<ModuleServer, "name"> {
  if (url !== undefined) return { transport: "http", target: URL.parse(url)?.host ?? url };
  if (npm !== undefined) return { transport: "npm", target: [npm, ...args].join(" ") };
  return { transport: "command", target: [...[command].flat(), ...args].join(" ") };
}
