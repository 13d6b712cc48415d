/** Files that a session has read, over its runs, its sub-agents, several servers and a continued chat. */
import { cli } from "../../src/cli/mod.ts";
import { policyFromData } from "../../src/policy/parse_policy.ts";
import { createPreamp, openStore } from "../../src/server/mod.ts";
import { assertEquals, assertMatch } from "../assert.ts";
import { temporaryFolder } from "../support/folder.ts";
import { fakeIo } from "../support/io.ts";
import { filesPlan, read, task, write } from "../support/file_plans.ts";

type Json = Record<string, unknown>;

/** Creates a server on a store; `run` resolves to the results of the tools of a run and of its sub-agents. */
async function serverOn(store: string, folder: string) {
  const preamp = createPreamp({
    policy: policyFromData({ permissions: { max: { read: [folder], write: [folder] } } }),
    authenticate: null,
    plans: null,
    store: await openStore(`sqlite:${store}`),
  });
  const ask = async (route: string, body?: Json) => {
    const [method = "", path = ""] = route.split(" ");
    const headers = { "content-type": "application/json" };
    const init = { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) };
    const response = await preamp.fetch(new Request(`http://localhost${path}`, init));
    return await response.json();
  };
  return {
    async run(request: Json) {
      const { id, session_id, output_text } = await ask("POST /v1/runs", { prompt: "go", ...request });
      const { data } = await ask(`GET /v1/runs/${id}/events?limit=1000`);
      const results = (data as { event: string; data: Json }[])
        .filter(({ event, data }) =>
          (event === "tool:post" || event === "tool:error") && data.tool_name !== "task"
        )
        .map(({ data }) => JSON.stringify(data.result ?? data.error));
      return { session_id, output_text, results };
    },
    [Symbol.asyncDispose]: () => preamp.close(),
  };
}

/** Calls `test` with a folder that has `a.txt`, and the path of a store. */
async function withFolder(test: (folder: string, store: string) => Promise<void>): Promise<void> {
  await using place = await temporaryFolder();
  const path = await Deno.realPath(place.path);
  await Deno.mkdir(`${path}/work`);
  await Deno.writeTextFile(`${path}/work/a.txt`, "one\n");
  await test(`${path}/work`, `${path}/runs.db`);
}

Deno.test("a file that a person changed between two turns is not replaced, on whichever server", () =>
  withFolder(async (folder, store) => {
    const plan = filesPlan(folder, [read("a.txt"), "read", write("a.txt", "two\n"), "written"]);
    await using first = await serverOn(store, folder);
    await using second = await serverOn(store, folder);
    const { session_id, results } = await first.run({ plan });
    assertMatch(results[0]!, /one/);
    await Deno.writeTextFile(`${folder}/a.txt`, "one\nmine\n");
    const next = await second.run({ session_id });
    assertMatch(next.results[0]!, /a\.txt has changed since it was read: read it again/);
    assertEquals(await Deno.readTextFile(`${folder}/a.txt`), "one\nmine\n");
  }));

Deno.test("a file that an earlier turn has read is replaced without another reading", () =>
  withFolder(async (folder, store) => {
    const plan = filesPlan(folder, [read("a.txt"), "read", write("a.txt", "two\n"), "written"]);
    await using server = await serverOn(store, folder);
    const { session_id } = await server.run({ plan });
    await server.run({ session_id });
    assertEquals(await Deno.readTextFile(`${folder}/a.txt`), "two\n");
  }));

Deno.test("what an agent has read is known to the session: a sub-agent's parent, and its next sub-agent", () =>
  withFolder(async (folder, store) => {
    await using server = await serverOn(store, folder);
    const plan = filesPlan(folder, [task("reader"), task("writer"), write("b.txt", "x"), "done"], {
      reader: [read("a.txt"), read("b.txt"), "read"],
      writer: [write("a.txt", "two\n"), "written"],
    });
    await Deno.writeTextFile(`${folder}/b.txt`, "b\n");
    await server.run({ plan });
    assertEquals(await Deno.readTextFile(`${folder}/a.txt`), "two\n");
    assertEquals(await Deno.readTextFile(`${folder}/b.txt`), "x");
  }));

Deno.test("what a sub-agent has read or changed since is not what its parent has read", () =>
  withFolder(async (folder, store) => {
    await using server = await serverOn(store, folder);
    const script = [read("a.txt"), task("writer"), write("a.txt", "from memory"), "done", task("reader")];
    const plan = filesPlan(folder, [...script, write("a.txt", "from memory"), "done"], {
      writer: [write("a.txt", "two\n"), "written"],
      reader: [read("a.txt"), "read"],
    });
    const { session_id, results } = await server.run({ plan });
    assertMatch(results.at(-1)!, /has changed since it was read/);
    await Deno.writeTextFile(`${folder}/a.txt`, "mine\n");
    const next = await server.run({ session_id });
    assertMatch(next.results.at(-1)!, /has changed since it was read/);
    assertEquals(await Deno.readTextFile(`${folder}/a.txt`), "mine\n");
  }));

Deno.test("a sub-agent replaces no file that no one has read", () =>
  withFolder(async (folder, store) => {
    await using server = await serverOn(store, folder);
    const plan = filesPlan(folder, [task("writer"), "done"], { writer: [write("a.txt", "two\n"), "-"] });
    const { results } = await server.run({ plan });
    assertMatch(results[0]!, /a\.txt exists and was not read in this conversation/);
    assertEquals(await Deno.readTextFile(`${folder}/a.txt`), "one\n");
  }));

Deno.test("a continued chat knows what it has read, and what a fork had read before", () =>
  withFolder(async (folder) => {
    const home = folder.replace(/work$/, "home");
    const chat = async (...lines: string[]) => {
      const io = fakeIo({
        cwd: new URL(`file://${folder}/`),
        env: { PREAMP_HOME: home },
        lines: [...lines, "/quit"],
      });
      await cli(["chat", "-p", "../plan.json", "--session", "notes"], io);
      return io.stdout + io.stderr;
    };
    const script = [read("a.txt"), "read", write("a.txt", "two\n"), "written", write("a.txt", "3\n"), "done"];
    await Deno.writeTextFile(`${folder}/../plan.json`, JSON.stringify(filesPlan(folder, script)));
    await chat("read it");
    assertMatch(await chat("write it", "/undo 1 conversation"), /restored work\/a\.txt/);
    assertEquals(await Deno.readTextFile(`${folder}/a.txt`), "one\n");
    await chat("write it again"); // as it was read before the fork
    assertEquals(await Deno.readTextFile(`${folder}/a.txt`), "two\n");
    await Deno.writeTextFile(`${folder}/a.txt`, "mine\n");
    assertMatch(await chat("and again"), /a\.txt has changed since it was read/);
    assertEquals(await Deno.readTextFile(`${folder}/a.txt`), "mine\n");
  }));
