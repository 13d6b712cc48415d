/** Modules that break a bundler, sent to a server by a caller: what others send is loaded all the same. */
import { assertEquals } from "../assert.ts";
import { DEEP } from "../loader/bundler/source_bombs.ts";
import { serveFiles } from "../support/loader.ts";
import { type ServerProgram, startServer } from "./program.ts";

async function explain(server: ServerProgram, source: string): Promise<unknown[]> {
  const plan = {
    session: { orchestrator: "loop-basic", context: "context-simple" },
    providers: ["provider-mock"],
    tools: [{ module: "tool-test", source }],
  };
  const { status, body } = await server.post("/v1/plans/explain", { plan });
  return [status, status === 200 ? body.modules.at(-1).module : body.type];
}

Deno.test("a module nested 200,000 deep is refused, and the next module of every caller loads", async () => {
  await using files = serveFiles({});
  const home = await Deno.makeTempDir();
  {
    await using server = await startServer(
      [
        "--store",
        "memory",
        "--modules.allow",
        files.url,
        "--modules.private_hosts",
        `127.0.0.1:${files.port}`,
      ],
      { env: { PREAMP_HOME: home } },
    );
    for (const name of ["arrays", "elements"]) { // all of them: tests/loader/bundler/source_bombs_slow_test.ts
      const { file, text } = DEEP[name]!;
      files.files = { [`${name}/${file}`]: text, [`${name}/good.ts`]: "export const mount = () => {};" };
      assertEquals(await explain(server, `${files.url}${name}/${file}`), [
        422,
        "urn:preamp:problem:module_invalid",
      ], name);
      assertEquals(await explain(server, `${files.url}${name}/good.ts`), [200, "tool-test"], name);
    }
  }
  await Deno.remove(home, { recursive: true });
});
