/** The server of the person who starts it: its key lasts, its address logs in, its plans are theirs. */
import { assert, assertEquals, assertMatch, assertStringIncludes } from "../assert.ts";
import { temporaryFolder } from "../support/folder.ts";
import { runCommand, startServer } from "./program.ts";

Deno.test("the key of a server lasts over its starts until --new-key, and the printed address has it as its fragment", async () => {
  await using folder = await temporaryFolder();
  const options = { cwd: folder.path, env: { PREAMP_HOME: `${folder.path}/home` } };
  const keys: string[] = [];
  for (const args of [[], [], ["--new-key"], []]) {
    await using server = await startServer(args, options);
    keys.push(server.key);
    assertStringIncludes(server.stdout.text, `# Open ${server.url}/#key=${server.key} in a browser.\n`);
    assertEquals((await server.get("/v1/caller")).body.owner, true);
    assertEquals(server.stderr.text.includes(server.key), false);
  }
  assertEquals([keys[0] === keys[1], keys[1] === keys[2], keys[2] === keys[3]], [true, false, true]);
});

Deno.test("serve --open hands the browser a file of its own, not the key, and removes it", async () => {
  await using folder = await temporaryFolder();
  const [browser, seen] = [`${folder.path}/browser`, `${folder.path}/seen`];
  await Deno.writeTextFile(
    browser,
    `#!/bin/sh\n{ echo "$@"; ls -l "\${1#file://}"; cat "\${1#file://}"; } > '${seen}.part'; mv '${seen}.part' '${seen}'\n`,
    { mode: 0o755 },
  );
  const home = `${folder.path}/home`;
  {
    await using server = await startServer(["--open"], {
      cwd: folder.path,
      env: { PREAMP_HOME: home, BROWSER: browser },
    });
    let text: string | undefined;
    while (text === undefined) text = await Deno.readTextFile(seen).catch(() => undefined);
    const [args = "", mode = "", page = ""] = text.split("\n");
    assertMatch(args, /^file:\/\/\S+\/home\/open-[-0-9a-f]+\.html$/);
    assertMatch(mode, /^-rw-------/);
    assertStringIncludes(page, `${server.url}/#key=${server.key}`);
  }
  assertEquals(
    (await Array.fromAsync(Deno.readDir(home))).filter(({ name }) => name.startsWith("open-")),
    [],
  );
});

Deno.test("serve --open says in its log when there is no browser, and serves", async () => {
  await using folder = await temporaryFolder();
  await using server = await startServer(["--open"], { cwd: folder.path, env: { BROWSER: "/no/browser" } });
  const log = await server.stderr.until((text) => text.includes("Cannot open a browser"));
  assert(log.includes('"code":"browser"'), log);
  assertEquals((await server.get("/v1/caller")).status, 200);
});

Deno.test("a person runs the coder in the folder of the server, on a model they choose", async () => {
  await using folder = await temporaryFolder();
  await Deno.writeTextFile(`${folder.path}/note.txt`, "The ferns are thirsty.");
  await using server = await startServer([], { cwd: folder.path });
  const request = { plan_ref: "coder", model: "mock/any", prompt: "Look around" };
  const { status, body } = await server.post("/v1/runs", request);
  assertEquals([status, body.status], [200, "awaiting_approval"], JSON.stringify(body));
  const { body: events } = await server.get(`/v1/runs/${body.id}/events`);
  assertStringIncludes(JSON.stringify(events), "note.txt"); // its first step lists the folder
  await server.post(`/v1/runs/${body.id}/cancel`, {});
});

Deno.test("a server with configured keys, or without any, has neither the coder nor an owner", async () => {
  for (const [args, env] of [[["--no-auth"], {}], [[], { PREAMP_API_KEYS: "a-key-of-this-test" }]] as const) {
    await using server = await startServer(args, { env });
    const headers = { authorization: "Bearer a-key-of-this-test" };
    const read = async (path: string) => await (await server.fetch(path, { headers })).json();
    assertEquals((await read("/v1/caller")).owner, false);
    assertEquals(
      (await read("/v1/plans")).data.some(({ name }: { name: string }) => name === "coder"),
      false,
    );
    const refused = await runCommand(["serve", "--new-key", ...args], { env });
    assertEquals([refused.code, refused.stdout], [2, ""]);
    assertStringIncludes(refused.stderr, "Cannot use --new-key");
  }
});
