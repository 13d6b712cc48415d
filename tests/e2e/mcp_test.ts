/** MCP servers as a user meets them: listed by the operator, used by a plan that `curl` posts, locked. */
import { assertEquals, assertMatch, assertStringIncludes } from "../assert.ts";
import { ROOT, runCommand, startServer } from "./program.ts";
import { shell } from "./shell.ts";
import { temporaryFolder } from "../support/folder.ts";

Deno.test("a plan posted by curl uses server-filesystem, which the operator lists", async () => {
  await using temporary = await temporaryFolder();
  const folder = temporary.path;
  await Deno.writeTextFile(`${folder}/note.txt`, "Water the ferns.");
  await Deno.writeTextFile(
    `${folder}/preamp.yaml`,
    `mcp:
  servers:
    files:
      npm: "@modelcontextprotocol/server-filesystem@2026.8.31"
      args: ["${folder}"]
      permissions: { read: ["${folder}"], env: true, sys: true }
`,
  );
  const plan = `session: {orchestrator: loop-streaming, context: context-simple}
providers:
  - module: provider-mock
    config:
      responses:
        - tool_calls: [{name: files__read_text_file, arguments: {path: "${folder}/note.txt"}}]
        - tool_calls: [{name: files__read_text_file, arguments: {path: /etc/passwd}}]
        - text: I read it.
tools: [{module: tool-mcp, config: {listed: [files]}}]
`;
  await Deno.writeTextFile(`${folder}/body.json`, JSON.stringify({ prompt: "Read the note", plan }));
  await using server = await startServer(["--config", `${folder}/preamp.yaml`, "--store", "memory"], {
    cwd: folder,
    env: { PREAMP_HOME: `${folder}/home` },
  });
  const answer = await shell(
    `curl -s -H 'authorization: Bearer ${server.key}' -H 'content-type: application/json' ` +
      `--data-binary @${folder}/body.json ${server.url}/v1/runs`,
  );
  const run = JSON.parse(answer);
  assertEquals([run.status, run.output_text], ["completed", "I read it."], answer);
  const { body } = await server.get(`${run.events_url}?limit=1000`);
  const results = body.data.filter(({ event }: { event: string }) => event === "tool:post")
    .map(({ data }: { data: { result: unknown } }) => JSON.stringify(data.result));
  assertStringIncludes(results[0], "Water the ferns.");
  assertMatch(results[1], /"success":false.*denied/);

  // a caller that brings a server of its own is refused
  const own = plan.replace("listed: [files]", 'servers: {own: {command: [sh, -c, "echo"]}}')
    .replace("}}}]", "}}, permissions: {run: [sh]}}]");
  const refused = await server.post("/v1/runs", { prompt: "Go", plan: own });
  assertEquals([refused.status, refused.body.error.code], [403, "policy_refused"]);
});

Deno.test("plan lock pins the tools of a server; a changed one stops preamp run, and plan diff names the change", async () => {
  await using temporary = await temporaryFolder();
  const folder = temporary.path;
  const write = (name: string, ...flags: string[]) =>
    Deno.writeTextFile(
      `${folder}/${name}`,
      `session: {orchestrator: loop-basic, context: context-simple}
providers: [{module: provider-mock, config: {responses: [{text: Done.}]}}]
tools:
  - module: tool-mcp
    config:
      servers:
        mail:
          command: [${
        JSON.stringify(Deno.execPath())
      }, run, --no-lock, -A, ${ROOT}tests/fixtures/mcp_server.js${flags.map((flag) => `, ${flag}`).join("")}]
    permissions: {run: [${JSON.stringify(Deno.execPath())}]}
`,
    );
  await Deno.mkdir(`${folder}/after`);
  await write("plan.yaml");
  const options = { cwd: folder, env: { PREAMP_HOME: `${folder}/home` } };
  const locked = await runCommand(["plan", "lock", "plan.yaml"], options);
  assertEquals(locked.code, 0, locked.stderr);
  assertStringIncludes(locked.stdout, "1 MCP server");
  const run = await runCommand(["run", "-p", "plan.yaml", "Go"], options);
  assertEquals([run.code, run.stdout.trim()], [0, "Done."], run.stderr);

  const explained = await runCommand(["plan", "explain", "plan.yaml"], options);
  assertMatch(explained.stdout, /server +mail: command \S*deno run .*; tools big, children, .*send_mail/);

  await write("plan.yaml", "with_bcc");
  const stopped = await runCommand(["run", "-p", "plan.yaml", "Go"], options);
  assertEquals(stopped.stdout, "");
  assertMatch(stopped.stderr, /tool `send_mail` of `mail` gained parameter `bcc`/);
  const check = await runCommand(["plan", "lock", "--check", "plan.yaml"], options);
  assertEquals(check.code, 1);
  assertStringIncludes(check.stdout, "tool `send_mail` of `mail` gained parameter `bcc`");

  await write("after/plan.yaml", "with_bcc");
  assertEquals((await runCommand(["plan", "lock", "after/plan.yaml"], options)).code, 0);
  const diff = await runCommand(["plan", "diff", "plan.yaml", "after/plan.yaml"], options);
  assertEquals(diff.code, 1);
  assertStringIncludes(
    diff.stdout.replaceAll(/\s+/g, " "),
    "tool `send_mail` of `mail` gained parameter `bcc`",
  );
});

Deno.test("plan import --mcp makes a plan of .mcp.json that runs, with a server that cannot be reached left out", async () => {
  await using temporary = await temporaryFolder();
  const folder = temporary.path;
  const mail = {
    type: "stdio",
    command: Deno.execPath(),
    args: ["run", "--no-lock", "-A", `${ROOT}tests/fixtures/mcp_server.js`],
    env: { OWN: "its own" },
  };
  const gone = { type: "http", url: "http://127.0.0.1:9/mcp" };
  await Deno.writeTextFile(`${folder}/.mcp.json`, JSON.stringify({ mcpServers: { mail, gone } }));
  const options = { cwd: folder, env: { PREAMP_HOME: `${folder}/home` } };
  const imported = await runCommand(["plan", "import", "--mcp", ".mcp.json", "-o", "servers.yaml"], options);
  assertEquals(
    [imported.code, imported.stdout],
    [0, "Written: servers.yaml, with 2 servers\n"],
    imported.stderr,
  );
  assertMatch(imported.stderr, /^A command has all rights of your user/);
  const again = await runCommand(["plan", "import", "--mcp", ".mcp.json", "-o", "servers.yaml"], options);
  assertEquals(again.code, 2);
  assertMatch(again.stderr, /it exists; remove it, or name another file/);
  await Deno.writeTextFile(
    `${folder}/mock.yaml`,
    `providers:
  - module: provider-mock
    config: {responses: [{tool_calls: [{name: mail__env, arguments: {}}]}, {text: Done.}]}
`,
  );
  const args = [
    "run",
    "-p",
    "servers.yaml",
    "-p",
    "mock.yaml",
    "--yes",
    "--output-format",
    "json-trace",
    "Go",
  ];
  const run = await runCommand(args, options);
  assertEquals(run.code, 0, run.stderr);
  const { events } = JSON.parse(run.stdout) as { events: { event: string; data: Record<string, unknown> }[] };
  const result = JSON.stringify(events.find(({ event }) => event === "tool:post")?.data.result);
  assertStringIncludes(result, "its own");
  const warnings = events.filter(({ event, data }) =>
    event === "user:notification" && data.level === "warning"
  );
  assertMatch(String(warnings[0]?.data.message), /^Cannot connect to server "gone"/);
});
