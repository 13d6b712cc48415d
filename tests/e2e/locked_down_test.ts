/**
 * `plans/locked_down.yaml`, as its header says it is run: a sandbox for each tool, and a server that never
 * notices.
 */
import { assert, assertEquals, assertStringIncludes } from "../assert.ts";
import { callsOf } from "./escape_checks.ts";
import { aliveOf, descendantsOf } from "./processes.ts";
import { type Json, ROOT, startServer } from "./program.ts";
import { temporaryFolder } from "../support/folder.ts";

const NOTE = "Water the ferns twice.\n";

/** The folder that the plan grants, with a note, and the plan for it and for a server's port. */
async function withPlan(
  test: (at: { folder: string; write(port: string): Promise<void> }) => Promise<void>,
): Promise<void> {
  await using temporary = await temporaryFolder();
  const folder = temporary.path;
  await Deno.mkdir(`${folder}/plans/modules`, { recursive: true });
  await Deno.mkdir(`${folder}/notes`);
  await Deno.writeTextFile(`${folder}/notes/garden.txt`, NOTE);
  for (const name of ["attack", "fetch_page", "read_note"]) {
    await Deno.copyFile(`${ROOT}plans/modules/${name}.ts`, `${folder}/plans/modules/${name}.ts`);
  }
  const text = await Deno.readTextFile(`${ROOT}plans/locked_down.yaml`);
  const write = (port: string) =>
    Deno.writeTextFile(
      `${folder}/plans/locked_down.yaml`,
      text.replaceAll("/tmp/preamp-notes", `${folder}/notes`).replaceAll(
        "127.0.0.1:8484",
        `127.0.0.1:${port}`,
      ),
    );
  await test({ folder, write });
}

Deno.test("plans/locked_down.yaml: each tool does what it is granted, and the server never notices the third", () =>
  withPlan(async ({ folder, write }) => {
    await using server = await startServer(["--plans", `${folder}/plans/`, "--store", "memory"], {
      cwd: folder,
      env: { PREAMP_HOME: `${folder}/home` },
    });
    await write(new URL(server.url).port);

    const { status, body: run } = await server.post("/v1/runs", {
      plan_ref: "locked_down",
      prompt: "What is in the garden notes?",
    });
    assertEquals([status, run.status, run.tool_call_count], [200, "completed", 5]);
    assertEquals(run.warnings, []);
    for (const tool of ["tool-fetch-page", "tool-read-note", "tool-attack"]) {
      assertEquals(run.isolation[tool], "process");
    }
    const { body } = await server.get(`${run.events_url}?limit=1000`);
    const events: Json[] = body.data;
    const by = (name: string) =>
      Object.fromEntries(
        events.filter(({ event, data }) => event === "tool:pre" && data.tool_name === name)
          .map(({ data }) => [JSON.stringify(data.tool_input), endOf(events, data.tool_call_id)]),
      );
    assertEquals(by("read_note"), {
      '{"path":"garden.txt"}': NOTE,
      '{"path":"../../etc/hostname"}': "tool_permission_denied",
    });
    const [granted, refused] = Object.values(by("fetch_page"));
    assertStringIncludes(String(granted), "200: ");
    assertEquals(refused, "tool_permission_denied");

    const [attack] = callsOf(events, "attack");
    const outcomes = Object.entries(attack!.output as Record<string, string>);
    assert(outcomes.length >= 15);
    for (const [what, outcome] of outcomes) assert(outcome.startsWith("refused: "), `${what}: ${outcome}`);

    assertEquals(await aliveOf([server.pid]), [server.pid]);
    assertEquals((await server.get("/healthz")).status, 200);
    const guests = await descendantsOf(server.pid);
    server.kill("SIGTERM");
    assertEquals((await server.ended).code, 0);
    assertEquals(await aliveOf(guests), []);
  }));

Deno.test("plans/locked_down.yaml: explain prints each tool's tier and grant, and /readyz the tiers of this host", () =>
  withPlan(async ({ folder, write }) => {
    await using server = await startServer(["--plans", `${folder}/plans/`, "--store", "memory"], {
      cwd: folder,
      env: { PREAMP_HOME: `${folder}/home` },
    });
    const port = new URL(server.url).port;
    await write(port);
    const { status, body } = await server.post("/v1/plans/explain", { plan_ref: "locked_down" });
    assertEquals(status, 200, JSON.stringify(body));
    const explained = Object.fromEntries(
      body.modules.map((
        { module, isolation, permissions }: Json,
      ) => [module, [isolation, permissions.granted]]),
    );
    assertEquals(explained["tool-fetch-page"][0], "process");
    assertEquals(explained["tool-fetch-page"][1].net, [`127.0.0.1:${port}`]);
    assertEquals(explained["tool-read-note"][1].read, [`${folder}/notes`]);
    for (const granted of Object.values(explained["tool-attack"][1] ?? {})) {
      assert(granted === false || Array.isArray(granted) && granted.length === 0, JSON.stringify(granted));
    }
    const ready = await server.get("/readyz");
    assertEquals([ready.status, ready.body.isolation], [200, { process: true }]);
  }));

/** Returns what a call came to: its output, or the code of its failure. */
function endOf(events: Json[], id: string): unknown {
  const own = events.filter(({ data }) => data.tool_call_id === id);
  const name = own[0].data.tool_name;
  const [end] = callsOf(own, name);
  return end?.code ?? end?.output;
}
