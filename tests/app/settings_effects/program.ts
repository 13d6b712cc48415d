/** Settings that only have an effect on the program itself. */
import type { JsonObject } from "../../../src/sdk/types.ts";
import { cli } from "../../../src/cli/mod.ts";
import { assert, assertEquals } from "../../assert.ts";
import { runProgram, startProgram } from "../../e2e/program.ts";
import { until } from "../../support/clock.ts";
import { temporaryFolder } from "../../support/folder.ts";
import { fakeIo } from "../../support/io.ts";
import { receiveSpans } from "../../support/otlp_receiver.ts";
import { POSTGRES, startPostgres } from "../../support/postgres.ts";
import { type StallingProxy, stallingProxy } from "../../support/stalling_proxy.ts";
import type { Effects } from "./effect.ts";
import { dataUrl, type Json, planOf, toolModule } from "./kit.ts";

const DATA_TOOL = { module: "tool-t", source: dataUrl(toolModule("t", "return 'ok';")) };

/** Runs eight runs at once on a Postgres store; resolves to what arrives there, to null without Postgres. */
async function seenByPostgres(flags: readonly string[]): Promise<StallingProxy["seen"] | null> {
  if (POSTGRES === null) return null;
  await using database = await startPostgres();
  using proxy = stallingProxy(database.url);
  await using server = await serveHere(["--store", proxy.url, ...flags]);
  const run = () => server.post("/v1/runs", { prompt: "hi", plan: planOf(["done"]) });
  const answers = await Promise.all(Array.from({ length: 8 }, run));
  assertEquals(answers.map(({ output_text }) => output_text), Array(8).fill("done"));
  return proxy.seen;
}

/** Folder of one plan, `own.yaml`. */
export const OWN_PLANS = new URL(`file://${await Deno.makeTempDir()}/`);
const own = planOf(["done"], { tools: [DATA_TOOL] });
await Deno.writeTextFile(new URL("own.yaml", OWN_PLANS), JSON.stringify(own));

/** Effects of these settings. */
export const PROGRAM: Effects = {
  plans: {
    async look_at_program() {
      await using server = await serveHere(["--plans", OWN_PLANS.pathname]);
      assertEquals((await server.get("/v1/plans")).data.map(({ name }: JsonObject) => name), ["own"]);
    },
  },
  workspace: {
    async look_at_program() {
      await using folder = await temporaryFolder();
      await using server = await serveHere(["--workspace", folder.path]);
      const { output_text } = await server.post("/v1/runs", { prompt: "hi", plan: planOf(["${WORKSPACE}"]) });
      assertEquals(output_text, folder.path);
    },
  },
  model: {
    async look_at_program() {
      const env = { PREAMP_MODEL: "mocc/y" };
      await using server = await serveHere(["--model", "mock/x"], env);
      assertEquals((await server.post("/v1/runs", { prompt: "hi" })).status, "completed");
      await using other = await serveHere([], env);
      assertEquals((await other.post("/v1/runs", { prompt: "hi" })).error.code, "request_invalid");
    },
  },
  store: {
    async look_at_program() {
      await using folder = await temporaryFolder();
      const flags = ["--store", `sqlite:${folder.path}/runs.db`];
      let id = "";
      {
        await using server = await serveHere(flags);
        id = (await server.post("/v1/runs", { prompt: "hi", plan: planOf(["done"]) })).id;
      }
      await using server = await serveHere(flags);
      assertEquals((await server.get(`/v1/runs/${id}`)).output_text, "done");
    },
  },
  "postgres.connections": {
    async look_at_program() {
      const opened = async (...flags: string[]) => (await seenByPostgres(flags))?.connections ?? null;
      const [one, usual] = [await opened("--postgres.connections", "1"), await opened()];
      // more create the tables, listen, and show that the server lives
      if (one !== null && usual !== null) assert(one <= 4 && usual > 4, `${one} and ${usual} connections`);
    },
  },
  "postgres.named_statements": {
    async look_at_program() {
      const named = async (...flags: string[]) => (await seenByPostgres(flags))?.sent.includes("preamp_1\0");
      if (POSTGRES === null) return;
      assertEquals([await named(), await named("--postgres.named_statements", "false")], [true, false]);
    },
  },
  "listen.host": {
    async look_at_program() {
      // a process: the tests may use no other address than 127.0.0.1
      await using program = await startProgram(["serve", "--port", "0", "--listen.host", "127.0.0.2"]);
      const text = await program.stdout.until((text) => text.includes("\n"));
      assertEquals(new URL(text.split("\n")[0] ?? "").hostname, "127.0.0.2");
    },
  },
  "listen.port": {
    async look_at_program() {
      using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
      const { port } = listener.addr;
      const io = fakeIo();
      const code = await cli(["serve", "--listen.port", String(port)], io);
      assertEquals([code, io.stderr.includes(`127.0.0.1:${port}: the port is already in use`)], [1, true]);
    },
  },
  "listen.heartbeat_s": {
    async look_at_program() {
      const plan = planOf([{ text: "done", delay_ms: 2_500 }]);
      const begin = async (...flags: string[]) => {
        await using server = await serveHere(flags);
        const response = await fetch(`${server.url}/v1/runs`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ prompt: "hi", plan }),
        });
        return [response.headers.has("preamp-run-id"), (await response.text())[0]];
      };
      assertEquals(await begin("--listen.heartbeat_s", "1"), [true, " "]);
      assertEquals(await begin(), [true, "{"]);
    },
  },
  "listen.trusted_proxies": {
    async look_at_program() {
      const clients = [];
      for (const flags of [[], ["--listen.trusted_proxies", "127.0.0.1"]]) {
        await using server = await serveHere(flags);
        await server.get("/healthz", { "x-forwarded-for": "192.0.2.1" });
        await until(() => server.io.stderr.includes('"/healthz"'));
        clients.push(/"client":"([^"]*)"/.exec(server.io.stderr)?.[1]);
      }
      assertEquals(clients, ["127.0.0.1", "192.0.2.1"]);
    },
  },
  "tracing.content": {
    async look_at_program() {
      for (const content of ["true", "false"]) {
        await using receiver = receiveSpans();
        const env = { ...receiver.env, PREAMP_TRACING_CONTENT: content };
        await runProgram(["run", "What is 6 x 7?"], { env }); // in a process: tracing is of a whole process
        const agents = receiver.spans.filter(({ name }) => name === "invoke_agent");
        assertEquals(
          agents.map(({ attributes }) => "gen_ai.input.messages" in attributes),
          agents.map(() => content === "true"),
        );
        assertEquals(agents.length > 0, true);
      }
    },
  },
};

/** Serves in this process until the end of the scope. */
async function serveHere(flags: readonly string[], env: Record<string, string> = {}) {
  const io = fakeIo({ env });
  const done = cli(["serve", "--port", "0", "--no-auth", ...flags], io);
  let ended = false;
  done.finally(() => ended = true);
  await until(() => ended || io.stdout.includes("\n"));
  const url = io.stdout.split("\n", 1)[0]!;
  const ask = async (path: string, init: RequestInit): Promise<Json> =>
    await (await fetch(url + path, init)).json();
  return {
    io,
    url,
    get: (path: string, headers: Record<string, string> = {}) => ask(path, { headers }),
    post: (path: string, body: unknown) =>
      ask(path, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      }),
    async [Symbol.asyncDispose]() {
      io.stop();
      await done;
    },
  };
}
