/** A published server over each transport: it is killed, and a proxy cuts its streams. */
import { assertEquals, assertMatch } from "../assert.ts";
import { type EverythingServer, startEverything, startProxy } from "../support/everything_server.ts";
import { type Call, withServers } from "../support/mcp.ts";

const NET = { net: ["127.0.0.1"] };

async function sum(call: Call, a: number, b: number): Promise<void> {
  assertEquals(await call("everything__get-sum", { a, b }), `The sum of ${a} and ${b} is ${a + b}.`);
}

Deno.test("server-everything over HTTP: cut streams are taken up, and a server killed twice is used again", async () => {
  let server: EverythingServer = await startEverything("streamableHttp");
  const port = Number(new URL(server.url).port);
  await using proxy = startProxy(server.url);
  try {
    await withServers({ servers: { everything: { url: proxy.url } } }, async (call) => {
      await sum(call, 1, 2);
      proxy.cuts = 2;
      await Promise.all([sum(call, 3, 4), sum(call, 5, 6)]);
      assertEquals(proxy.taken_up.length, 2);
      for (let death = 1; death <= 2; death++) {
        await server.kill();
        assertMatch(
          await call("everything__get-sum", { a: 1, b: 1 }),
          /^!.*it answered 502: The server is not there/,
        );
        server = await startEverything("streamableHttp", port);
        await sum(call, 7, death);
      }
      const running = call("everything__trigger-long-running-operation", { duration: 600, steps: 60 });
      await server.kill();
      assertMatch(await running, /^!.*(cannot be taken up again|not there)/);
    }, NET);
  } finally {
    await server.kill();
  }
});

Deno.test("server-everything over the older transport, killed twice", async () => {
  let server: EverythingServer = await startEverything("sse");
  const port = Number(new URL(server.url).port);
  try {
    await withServers({ servers: { everything: { url: server.url } } }, async (call) => {
      for (let death = 1; death <= 2; death++) {
        await sum(call, 1, death);
        const running = call("everything__trigger-long-running-operation", { duration: 600, steps: 60 });
        await server.kill();
        assertMatch(await running, /^!Server "everything" did not answer/);
        server = await startEverything("sse", port);
      }
      await sum(call, 1, 3);
    }, NET);
  } finally {
    await server.kill();
  }
});

Deno.test("server-everything as a process, killed twice", async () => {
  const everything = {
    npm: "@modelcontextprotocol/server-everything@2026.8.31",
    args: ["stdio"],
    permissions: { read: true, env: true, sys: true },
  };
  await withServers({ servers: { everything } }, async (call) => {
    for (let death = 1; death <= 2; death++) {
      await sum(call, 1, death);
      const running = call("everything__trigger-long-running-operation", { duration: 600, steps: 60 });
      await killChildren("server-everything");
      assertMatch(await running, /^!.*the server has ended \(SIGKILL\)/);
    }
    await sum(call, 1, 3);
  }, { run: ["deno"] });
});

/** Kills the children of this process whose command has a word. */
async function killChildren(word: string): Promise<void> {
  const { stdout } = await new Deno.Command("ps", { args: ["-A", "-o", "pid=,ppid=,args="] }).output();
  for (const line of new TextDecoder().decode(stdout).split("\n")) {
    const [, pid, parent, command = ""] = /^ *(\d+) +(\d+) (.*)$/.exec(line) ?? [];
    if (Number(parent) === Deno.pid && command.includes(word)) Deno.kill(Number(pid), "SIGKILL");
  }
}
