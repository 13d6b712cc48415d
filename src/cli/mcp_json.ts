/**
 * Makes a plan of the MCP servers in a file of another program: `.mcp.json`, `.cursor/mcp.json`,
 * `.vscode/mcp.json` and their relatives. Starts and reaches no server.
 */
import { isSecretKey } from "../policy/redact.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";

/** The plan, and what a person should know of it. */
export interface ImportedServers {
  readonly plan: JsonObject;
  /** Names of the servers in the plan. */
  readonly servers: readonly string[];
  /** One sentence for each thing that was changed, is left out, or remains to be done. */
  readonly notes: readonly string[];
}

/** Field of a file that has the servers → the fields above it. */
const PLACES: readonly (readonly string[])[] = [["mcpServers"], ["mcp", "servers"], ["mcp"], ["servers"]];

/**
 * Returns the servers of a document by name; null if it has none. A server is an object with an address, a
 * command or a type.
 */
function serversIn(document: JsonObject): Record<string, unknown> | null {
  for (const place of PLACES) {
    const found = place.reduce<unknown>((value, key) => isObject(value) ? value[key] : undefined, document);
    if (isObject(found) && (place.length > 1 || place[0] !== "mcp" || looksLikeServers(found))) return found;
  }
  return looksLikeServers(document) ? document : null;
}

function looksLikeServers(value: JsonObject): boolean {
  const items = Object.values(value);
  return items.length > 0 && items.every((item) => isObject(item) && addressOf(item) !== undefined);
}

/** Other programs' names for `url`. */
const URL_KEYS = ["url", "httpUrl", "serverUrl"];
/** Fields that are read. */
const KNOWN: ReadonlySet<string> = new Set([
  ...URL_KEYS,
  ...["type", "transport", "command", "args", "env", "headers", "cwd", "disabled", "enabled"],
  ...["name", "description"],
]);
/** `type` in other programs → ours. */
const TYPES: ReadonlyMap<unknown, string> = new Map([
  ["stdio", "stdio"],
  ["local", "stdio"],
  ["http", "http"],
  ["streamable-http", "http"],
  ["streamablehttp", "http"],
  ["streamable_http", "http"],
  ["remote", "http"],
  ["sse", "sse"],
]);

function addressOf(server: JsonObject): unknown {
  return URL_KEYS.map((key) => server[key]).find((value) => value !== undefined) ?? server.command;
}

/** Returns the plan for the servers of a document; null if it has none. */
export function planOfServers(document: JsonObject): ImportedServers | null {
  const found = serversIn(document);
  if (found === null) return null;
  const notes: string[] = [];
  const servers: Record<string, JsonObject> = {};
  const net = new Set<string>();
  const run = new Set<string>();
  for (const [written, server] of Object.entries(found)) {
    const name = nameOf(written, servers);
    const note = (fact: string) => notes.push(`${JSON.stringify(written)}: ${fact}`);
    const read = isObject(server) ? serverOf(server, note) : "it is not an object";
    if (typeof read === "string") {
      note(`left out: ${read}`);
      continue;
    }
    if (name !== written) note(`is called ${JSON.stringify(name)}: tools are named after their server`);
    grant(read, { net, run }, note);
    servers[name] = { ...read, optional: true };
  }
  const permissions = {
    ...(net.size === 0 ? {} : { net: [...net] }),
    ...(run.size === 0 ? {} : { run: [...run] }),
  };
  if (run.size > 0) {
    notes.push("A command has all rights of your user; a server from npm can be caged: preamp docs tool-mcp");
  }
  return {
    plan: {
      session: { orchestrator: "loop-streaming", context: "context-simple" },
      tools: [{ module: "tool-mcp", config: { servers }, permissions }],
      hooks: ["hooks-approval"],
    },
    servers: Object.keys(servers),
    notes,
  };
}

/** Returns a server as a plan has it, or why it cannot be used. */
function serverOf(server: JsonObject, note: (fact: string) => void): JsonObject | string {
  if (server.disabled === true || server.enabled === false) return "it is disabled";
  const unknown = Object.keys(server).filter((key) => !KNOWN.has(key));
  if (unknown.length > 0) note(`${unknown.join(", ")} has no counterpart and is left out`);
  const stated = server.type ?? server.transport;
  const type = TYPES.get(typeof stated === "string" ? stated.toLowerCase() : stated);
  if (type === undefined && stated !== undefined) {
    return `its type is ${JSON.stringify(stated)}; known are stdio, http and sse`;
  }
  const address = addressOf(server);
  if (address !== undefined && address !== server.command) {
    if (typeof address !== "string") return "its url is not a text";
    const headers = textsOf(server.headers, "headers", note);
    return {
      ...(type === undefined ? {} : { type }),
      url: translated(address, note),
      ...(headers === null ? {} : { headers }),
    };
  }
  const [program, ...words] = wordsOf(server.command, server.args);
  if (program === undefined) return "it has neither a url nor a command";
  const env = textsOf(server.env, "env", note);
  return {
    ...(type === undefined ? {} : { type }),
    command: translated(program, note),
    ...(words.length === 0 ? {} : { args: words.map((word) => translated(word, note)) }),
    ...(env === null ? {} : { env }),
    ...(typeof server.cwd === "string" ? { cwd: translated(server.cwd, note) } : {}),
  };
}

/** Returns the program and its arguments: a command may be a list, or a line such as `npx -y some-server`. */
function wordsOf(command: unknown, args: unknown): string[] {
  const more = Array.isArray(args) ? args.map(String) : [];
  if (Array.isArray(command)) return [...command.map(String), ...more];
  if (typeof command !== "string" || command.trim() === "") return [];
  const words = command.trim().split(/\s+/);
  const is_path = words[0]!.includes("/"); // a path may have spaces
  return more.length === 0 && !is_path ? words : [command.trim(), ...more];
}

/** Returns variables or headers as texts; null for none. */
function textsOf(value: unknown, field: string, note: (fact: string) => void): JsonObject | null {
  if (!isObject(value)) return null;
  const fields = Object.entries(value).filter(([, item]) => item !== null && typeof item !== "object");
  const texts = fields.map(([key, item]) => [key, translated(String(item), note)] as const);
  for (const [key, text] of texts) {
    if (isSecretKey(key) && text !== "" && !text.includes("${")) {
      note(
        `${field}.${key} is in the plan as it is; \${${variableOf(key)}} reads it from a variable instead`,
      );
    }
  }
  return texts.length === 0 ? null : Object.fromEntries(texts);
}

/** Returns the name of a variable for the name of a field or input. */
function variableOf(name: string): string {
  return name.toUpperCase().replace(/[^A-Z0-9]+/g, "_");
}

/** Returns a text with the references of other programs as those of plans. */
function translated(text: string, note: (fact: string) => void): string {
  return text.replaceAll(/\$\{([^}]*)\}/g, (found: string, inner: string) => {
    const [, kind, name] = /^(env|input|config):(.+)$/s.exec(inner) ?? [];
    if (kind === "env") return `\${${name}}`;
    if (kind !== undefined) {
      const variable = variableOf(name!);
      note(`${found} is the variable ${variable} here: set it`);
      return `\${${variable}}`;
    }
    return FOLDERS.has(inner) ? "${WORKSPACE}" : found;
  });
}

/** Other programs' names for the folder that an agent works in. */
const FOLDERS: ReadonlySet<string> = new Set([
  ...["workspaceFolder", "workspaceRoot", "CLAUDE_PROJECT_DIR", "PWD"],
]);

/** Adds what a server needs to a plan's grants. */
function grant(
  { url, command }: JsonObject,
  { net, run }: { net: Set<string>; run: Set<string> },
  note: (fact: string) => void,
): void {
  const needed = String(url ?? command);
  const host = url === undefined ? undefined : URL.parse(needed)?.host;
  if (url === undefined && !needed.includes("${")) run.add(needed);
  else if (host !== undefined && !/[${}%]/.test(host)) net.add(host);
  else note(`add what it needs to permissions: ${url === undefined ? "run: [program]" : "net: [host]"}`);
}

/** Returns a name that servers of a plan can have, and that none of these has. */
function nameOf(written: string, taken: Readonly<Record<string, unknown>>): string {
  const plain = written.normalize("NFKD").replace(/[^A-Za-z0-9_-]+/g, "-").replace(/__+/g, "_");
  const cut = (length: number) =>
    plain.replace(/^[_-]+/, "").slice(0, length).replace(/[_-]+$/, "") || "server";
  let name = cut(32);
  for (let number = 2; Object.hasOwn(taken, name); number++) name = `${cut(28)}-${number}`;
  return name;
}
