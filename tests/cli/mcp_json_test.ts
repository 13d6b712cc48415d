import { planOfServers } from "../../src/cli/mcp_json.ts";
import type { JsonObject } from "../../src/sdk/json.ts";
import { assertEquals, assertMatch } from "../assert.ts";

interface Tool {
  config: { servers: Record<string, JsonObject> };
  permissions: JsonObject;
}

function imported(
  servers: JsonObject,
): { tool: Tool; notes: readonly string[]; servers: Record<string, JsonObject> } {
  const { plan, notes } = planOfServers({ mcpServers: servers })!;
  const [tool] = plan.tools as Tool[];
  return { tool: tool!, notes, servers: tool!.config.servers };
}

Deno.test("planOfServers() takes local servers and servers on the web, with the permissions that they need", () => {
  const { tool, servers } = imported({
    files: {
      type: "stdio",
      command: "npx",
      args: ["-y", "some-server", 7],
      env: { LEVEL: 3, NONE: null },
      cwd: "/srv",
    },
    docs: { type: "streamableHttp", url: "https://mcp.example.com:8443/mcp", headers: { "X-Team": "a" } },
    old: { type: "sse", url: "https://old.example.com/sse" },
    plain: { url: "https://mcp.example.com:8443/other" },
  });
  assertEquals(servers, {
    files: {
      type: "stdio",
      command: "npx",
      args: ["-y", "some-server", "7"],
      env: { LEVEL: "3" },
      cwd: "/srv",
      optional: true,
    },
    docs: {
      type: "http",
      url: "https://mcp.example.com:8443/mcp",
      headers: { "X-Team": "a" },
      optional: true,
    },
    old: { type: "sse", url: "https://old.example.com/sse", optional: true },
    plain: { url: "https://mcp.example.com:8443/other", optional: true },
  });
  assertEquals(tool.permissions, { net: ["mcp.example.com:8443", "old.example.com"], run: ["npx"] });
});

Deno.test("planOfServers() finds the servers where the programs keep them", () => {
  const server = { command: "server" };
  for (
    const document of [
      { mcpServers: { a: server } },
      { servers: { a: server }, inputs: [] },
      { mcp: { servers: { a: server } } },
      { mcp: { a: server } },
      { "theme": "dark", "mcpServers": { a: server } },
      { a: server },
    ]
  ) assertEquals(planOfServers(document)?.servers, ["a"], JSON.stringify(document));
  for (const document of [{}, { mcpServers: null }, { a: 1 }, { dependencies: { a: "1" } }]) {
    assertEquals(planOfServers(document as JsonObject), null);
  }
});

Deno.test("planOfServers() reads a command in each form", () => {
  const { servers } = imported({
    line: { command: "npx -y some-server" },
    list: { command: ["npx", "-y"], args: ["some-server"] },
    path: { command: "/opt/My Servers/run", args: [] },
    google: { httpUrl: "https://a.example/mcp" },
    surf: { serverUrl: "https://b.example/mcp" },
  });
  assertEquals(servers.line, { command: "npx", args: ["-y", "some-server"], optional: true });
  assertEquals(servers.list, servers.line);
  assertEquals(servers.path, { command: "/opt/My Servers/run", optional: true });
  assertEquals([servers.google!.url, servers.surf!.url], ["https://a.example/mcp", "https://b.example/mcp"]);
});

Deno.test("planOfServers() writes references as plans do", () => {
  const { servers, notes } = imported({
    a: {
      command: "node",
      args: ["${workspaceFolder}/x", "${HOME}", "${KEY:-none}", "$plain"],
      env: { A: "${env:A}", B: "${input:api-key}" },
    },
  });
  assertEquals(servers.a!.args, ["${WORKSPACE}/x", "${HOME}", "${KEY:-none}", "$plain"]);
  assertEquals(servers.a!.env, { A: "${A}", B: "${API_KEY}" });
  assertMatch(notes.join("\n"), /^"a": \$\{input:api-key\} is the variable API_KEY here: set it$/m);
});

Deno.test("planOfServers() names what it leaves out, renames, or leaves to a person, and no secret", () => {
  const { servers, tool, notes } = imported({
    "my server": { command: "a", autoApprove: ["x"], timeout: 3 },
    "my_server__": { command: "a", env: { GITHUB_TOKEN: "ghp_hidden", EMPTY_TOKEN: "" } },
    "my-server": { command: "a" },
    "off": { command: "a", disabled: true },
    "socket": { type: "ws", url: "wss://a" },
    "odd": { type: "constructor", command: "a" },
    "empty": {},
    "text": "npx",
    "host": { url: "https://${HOST}/mcp" },
  });
  assertEquals(Object.keys(servers), ["my-server", "my_server", "my-server-2", "host"]);
  assertEquals(tool.permissions, { run: ["a"] });
  assertEquals(notes.join("\n").includes("ghp_hidden"), false);
  const expected = [
    /^"my server": autoApprove, timeout has no counterpart/,
    /^"my server": is called "my-server"/,
    /^"my_server__": env.GITHUB_TOKEN is in the plan as it is; \$\{GITHUB_TOKEN\}/,
    /^"my_server__": is called "my_server"/,
    /^"my-server": is called "my-server-2"/,
    /^"off": left out: it is disabled/,
    /^"socket": left out: its type is "ws"; known are stdio, http and sse/,
    /^"odd": left out: its type is "constructor"/,
    /^"empty": left out: it has neither a url nor a command/,
    /^"text": left out: it is not an object/,
    /^"host": add what it needs to permissions: net: \[host\]/,
    /^A command has all rights of your user/,
  ];
  assertEquals(notes.length, expected.length, notes.join("\n"));
  for (const [index, pattern] of expected.entries()) assertMatch(notes[index]!, pattern);
});
