/** The tools on plans in the real process: all five types from five URLs, nothing of them executed. */
import { assertEquals, assertMatch, assertStringIncludes } from "../assert.ts";
import { planOfFive, serveModules } from "./module_server.ts";
import { runCommand, startServer } from "./program.ts";
import { inFolder } from "../support/folder.ts";

/** Every file throws at its top level: it can be looked at, and cannot be run. */
async function servePoisoned(): Promise<Awaited<ReturnType<typeof serveModules>>> {
  const server = await serveModules();
  for (const [path, content] of Object.entries(server.files)) {
    if (typeof content === "string" && path.endsWith(".ts")) {
      server.files[path] = `${content}\nthrow Deno.exit(99);\n`;
    }
  }
  return server;
}

Deno.test("plan explain and plan lock tell all of five modules from five URLs, and run none", () =>
  inFolder(async (folder) => {
    await using server = await servePoisoned();
    await Deno.writeTextFile(`${folder}/plan.yaml`, JSON.stringify(planOfFive(server.url)));
    const program = (...args: string[]) =>
      runCommand(args, { cwd: folder, env: { PREAMP_HOME: `${folder}/home` } });

    const explained = await program("plan", "explain", "plan.yaml", "--output-format", "json");
    assertEquals(explained.code, 0, explained.stderr);
    const { modules, red_flags, deno_flags } = JSON.parse(explained.stdout);
    assertEquals(modules.map(({ type }: { type: string }) => type), [
      "orchestrator",
      "context",
      "provider",
      "tool",
      "hook",
    ]);
    for (const { url, integrity, isolation, files } of modules) {
      assertMatch(url, /^http:\/\/127\.0\.0\.1:\d+\/modules\/[a-z-]+\/mod\.ts$/);
      assertMatch(integrity, /^sha256-/);
      assertEquals(isolation, "process");
      for (const { sha256, bytes } of files) assertEquals([sha256.length, bytes > 0], [64, true]);
    }
    const codes = new Set(red_flags.map(({ code }: { code: string }) => code));
    for (const code of ["source_http", "source_unpinned"]) {
      assertEquals(codes.has(code), true);
    }
    assertMatch(deno_flags[0], /^--allow-net=.*127\.0\.0\.1:\d+/);

    const locked = await program("plan", "lock", "plan.yaml");
    assertEquals(locked.code, 0, locked.stderr);
    assertStringIncludes(locked.stdout, "plan.lock.json, 5 modules");
    const asked = server.requests.length;
    const again = await program("plan", "explain", "plan.yaml");
    assertEquals(again.code, 0, again.stderr);
    assertEquals(server.requests.length, asked); // pinned, and on disk
    assertEquals(again.stdout.includes("source_unpinned"), false);

    const [path = ""] = Object.keys(server.files).filter((name) =>
      name.includes("tool-units") && name.endsWith("mod.ts")
    );
    server.files[path] = `${server.files[path]} `;
    const elsewhere = { cwd: folder, env: { PREAMP_HOME: `${folder}/other` } };
    const refused = await runCommand(["plan", "explain", "plan.yaml"], elsewhere);
    assertEquals(refused.code, 1);
    assertStringIncludes(refused.stderr, `${server.url}${path}`);
    assertEquals((await program("plan", "lock", "--check", "plan.yaml")).code, 1);
  }));

Deno.test("POST /v1/plans/explain answers while a server runs, and refuses what the policy does not list", () =>
  inFolder(async (folder) => {
    await using server = await servePoisoned();
    const { host } = new URL(server.url);
    await Deno.writeTextFile(
      `${folder}/preamp.yaml`,
      JSON.stringify({
        modules: {
          allow: [`${server.url}modules/`],
          inline: [`${server.url}modules/`],
          private_hosts: [host],
        },
      }),
    );
    await using program = await startServer(["--config", "preamp.yaml"], {
      cwd: folder,
      env: { PREAMP_HOME: `${folder}/home` },
    });
    const plan = planOfFive(server.url);
    const explained = await program.post("/v1/plans/explain", { plan });
    assertEquals(explained.status, 200);
    const lock = await program.post("/v1/plans/lock", { plan });
    assertEquals([lock.status, Object.keys(lock.body.modules).length], [200, 5]);
    const pinned = await program.post("/v1/plans/explain", { plan, lock: lock.body });
    assertMatch(pinned.body.lock_hash, /^sha256-/);
    assertEquals(
      pinned.body.modules.map((one: { files: unknown }) => one.files),
      explained.body.modules.map((one: { files: unknown }) => one.files),
    );
    const other = { ...plan, tools: [{ module: "tool-x", source: "https://modules.example.com/x.ts" }] };
    const refused = await program.post("/v1/plans/explain", { plan: other });
    assertEquals([refused.status, refused.body.error.code], [403, "module_source_denied"]);
    const diff = await program.post("/v1/plans/diff", { from: plan, to: other });
    assertEquals([diff.status, diff.body.widens.length > 0], [200, true]);
    assertEquals((await program.get("/readyz")).body.ok, true);
  }));
