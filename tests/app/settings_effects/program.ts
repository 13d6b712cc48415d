/** Settings that only have an effect on the program itself. */
import type { JsonObject } from "../../../src/sdk/types.ts";
import { cli } from "../../../src/cli/mod.ts";
import { assertEquals } from "../../assert.ts";
import { runProgram, startProgram, startServer } from "../../e2e/program.ts";
import { until } from "../../support/clock.ts";
import { fakeIo } from "../../support/io.ts";
import { receiveSpans } from "../../support/otlp_receiver.ts";
import type { Effects } from "./effect.ts";
import { dataUrl, planOf, toolModule } from "./kit.ts";

const DATA_TOOL = { module: "tool-t", source: dataUrl(toolModule("t", "return 'ok';")) };

/** Folder of one plan, `own.yaml`. */
export const OWN_PLANS = new URL(`file://${await Deno.makeTempDir()}/`);
const own = planOf(["done"], { tools: [DATA_TOOL] });
await Deno.writeTextFile(new URL("own.yaml", OWN_PLANS), JSON.stringify(own));

/** Effects of these settings. */
export const PROGRAM: Effects = {
  plans: {
    async look_at_program() {
      await using server = await startServer(["--plans", OWN_PLANS.pathname]);
      assertEquals((await server.get("/v1/plans")).body.data.map(({ name }: JsonObject) => name), ["own"]);
    },
  },
  model: {
    async look_at_program() {
      await using server = await startServer(["--model", "mock/x"], { env: { PREAMP_MODEL: "mocc/y" } });
      assertEquals((await server.post("/v1/runs", { prompt: "hi" })).status, 200);
      await using other = await startServer([], { env: { PREAMP_MODEL: "mocc/y" } });
      assertEquals((await other.post("/v1/runs", { prompt: "hi" })).body.error.code, "request_invalid");
    },
  },
  store: {
    async look_at_program() {
      const flags = ["--store", `sqlite:${await Deno.makeTempDir()}/runs.db`];
      let id = "";
      {
        await using server = await startServer(flags);
        id = (await server.post("/v1/runs", { prompt: "hi", plan: planOf(["done"]) })).body.id;
      }
      await using server = await startServer(flags);
      assertEquals((await server.get(`/v1/runs/${id}`)).body.output_text, "done");
    },
  },
  "listen.host": {
    async look_at_program() {
      await using program = await startProgram(["serve", "--port", "0", "--listen.host", "127.0.0.2"]);
      const text = await program.stdout.until((text) => text.includes("\n"));
      assertEquals(new URL(text.split("\n")[0] ?? "").hostname, "127.0.0.2");
    },
  },
  "listen.port": {
    async look_at_program() {
      using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
      const { port } = listener.addr as Deno.NetAddr;
      const { code, stderr } = await runProgram(["serve", "--listen.port", String(port)]);
      assertEquals([code, stderr.includes(`127.0.0.1:${port}: the port is already in use`)], [1, true]);
    },
  },
  "listen.behind_proxy": {
    async look_at_program() {
      const usual = await listenersOf([]);
      assertEquals([usual, await listenersOf(["--listen.behind_proxy", "true"])], [1, 0]);
    },
  },
  "listen.trusted_proxies": {
    async look_at_program() {
      const clients = [];
      for (const flags of [[], ["--listen.trusted_proxies", "127.0.0.1"]]) {
        await using server = await startServer(flags);
        await (await server.fetch("/healthz", { headers: { "x-forwarded-for": "192.0.2.1" } })).body
          ?.cancel();
        const log = await server.stderr.until((text) => text.includes('"/healthz"'));
        clients.push(/"client":"([^"]*)"/.exec(log)?.[1]);
      }
      assertEquals(clients, ["127.0.0.1", "192.0.2.1"]);
    },
  },
  "tracing.content": {
    async look_at_program() {
      for (const content of ["true", "false"]) {
        await using receiver = receiveSpans();
        const env = { ...receiver.env, PREAMP_TRACING_CONTENT: content };
        await runProgram(["run", "What is 6 x 7?"], { env });
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

/** Serves for a moment; resolves to how many listeners were opened beside the HTTP server's. */
async function listenersOf(flags: readonly string[]): Promise<number> {
  const { listen } = Deno;
  let count = 0;
  Object.assign(Deno, {
    listen(options: Deno.TcpListenOptions) {
      count++;
      return listen(options);
    },
  });
  const io = fakeIo();
  try {
    const done = cli(["serve", "--port", "0", ...flags], io);
    await until(() => io.stdout.includes("http://"));
    io.stop();
    await done;
  } finally {
    Object.assign(Deno, { listen });
  }
  return count;
}
