/** Stores that last: a conversation that continues in another process, and servers that share a store. */
import { DatabaseSync } from "node:sqlite";
import { assert, assertEquals, assertStringIncludes } from "../assert.ts";
import { inFolder } from "../support/folder.ts";
import { POSTGRES, startPostgres } from "../support/postgres.ts";
import {
  type Json,
  type Program,
  runCommand,
  runProgram,
  type ServerProgram,
  startProgram,
  startServer,
} from "./program.ts";
import {
  ASKING,
  AUTHORIZED,
  begin,
  call,
  eventsOf,
  KEYS,
  lasting,
  mustRun,
  planOf,
  testOnStores,
  until,
} from "./shared_store.ts";
import { HANGS_MS } from "../support/clock.ts";

Deno.test("preamp run --session continues a conversation in another process", () =>
  inFolder(async (folder) => {
    const options = { env: { PREAMP_HOME: folder } };
    const first = await runProgram(["run", "--session", "new", "my name is Ada"], options);
    assertEquals(first.code, 0);
    const [id] = /ses_\w+/.exec(first.stderr) ?? [];
    for (const session of [id!, "last"]) {
      const next = await runProgram(
        ["run", "--session", session, "--output-format", "json-trace", "hi"],
        options,
      );
      const { run, replay } = JSON.parse(next.stdout);
      const { content } = replay.history.find(({ role }: Json) => role === "user");
      assertEquals([run.session_id, content], [id, "my name is Ada"]);
    }
    const none = await runProgram(["run", "--session", "ses_none", "hi"], options);
    assertEquals([none.code, none.stderr.includes('Cannot continue session "ses_none"')], [2, true]);
    const kept = await runProgram(["run", "--store", "memory", "--session", "new", "hi"], options);
    assertEquals(kept.code, 2);
    assertStringIncludes(kept.stderr, "leave out --store memory");
  }));

/** Makes a SQLite store refuse the ends of runs; returns a function that lets it take them. */
function refuseEnds(path: string): () => void {
  const database = new DatabaseSync(path);
  database.exec(`CREATE TRIGGER full BEFORE INSERT ON entries WHEN NEW.json LIKE '%"event":"run:end"%'
    BEGIN SELECT RAISE(ABORT, 'the disk is full'); END`);
  return () => {
    database.exec("DROP TRIGGER full");
    database.close();
  };
}

Deno.test("preamp run prints its result and warns when the store cannot take the end of the run", () =>
  inFolder(async (folder) => {
    const options = { env: { PREAMP_HOME: folder } };
    const run = () => runProgram(["run", "--session", "new", "--output-format", "json", "hi"], options);
    assertEquals((await run()).code, 0);
    const repair = refuseEnds(`${folder}/preamp.db`);
    const { code, stdout, stderr } = await run();
    repair();
    assertEquals([code, JSON.parse(stdout).status], [0, "completed"]);
    assertStringIncludes(stderr, "warning: The run has ended, but not in the store");
    assert(!stderr.includes("Continue with"), stderr);
  }));

Deno.test("preamp run waits for a store that refuses the end of its run for a moment; a trace without its end exits with 1", () =>
  inFolder(async (folder) => {
    const args = ["run", "--session", "new", "--output-format", "json-trace", "hi"];
    const options = { env: { PREAMP_HOME: folder } };
    assertEquals((await runProgram(args, options)).code, 0);
    const without_end = async (act: (run: Program) => Promise<void>) => {
      const repair = refuseEnds(`${folder}/preamp.db`);
      await using run = await startProgram(args, options);
      await act(run);
      repair();
      return await run.ended;
    };
    const { code, stdout, stderr } = await without_end(async (run) =>
      void await run.stderr.until((text) => text.includes("run_end_not_stored"))
    );
    assertEquals([code, JSON.parse(stdout).events.at(-1).event], [0, "run:end"], stderr);
    assert(!stderr.includes("not in the store"), stderr);
    const failed = await without_end(async ({ ended }) => void await ended);
    assertEquals(failed.code, 1);
    assertStringIncludes(failed.stderr, "error: The trace does not have the last entries of the run");
  }));

Deno.test("preamp serve stores an end that the store refused for a while, and then answers", () =>
  inFolder(async (folder) => {
    await using server = await startServer([], { env: { PREAMP_HOME: folder } });
    const repair = refuseEnds(`${folder}/preamp.db`);
    const answer = server.post("/v1/runs", { prompt: "hello", plan: planOf(0) });
    await server.stderr.until((text) => text.includes("run_end_not_stored"));
    const { body } = await server.get("/v1/runs");
    assertEquals(body.data.map(({ status }: Json) => status), ["running"]);
    repair();
    assertEquals((await answer).body.status, "completed");
    assertStringIncludes(server.stderr.text, "run_end_stored");
  }));

Deno.test("preamp serve keeps runs, sessions and idempotency keys over a restart", () =>
  inFolder(async (folder) => {
    const options = { env: { PREAMP_HOME: folder } };
    const request = { prompt: "hello", plan: planOf(0) };
    const key = { "idempotency-key": "k1" };
    let before: Json;
    {
      await using server = await startServer([], options);
      before = (await server.post("/v1/runs", request, key)).body;
      assertEquals(before.output_text, "It is 42.");
    }
    await using server = await startServer([], options);
    assertEquals((await server.get(`/v1/runs/${before.id}`)).body, before);
    assertEquals((await server.post("/v1/runs", request, key)).body.id, before.id);
    const next = await server.post("/v1/runs", { prompt: "again", session_id: before.session_id });
    assertEquals(next.body.status, "completed");
    const session = await server.get(`/v1/sessions/${before.session_id}`);
    assertEquals(session.body.run_count, 2);
  }));

Deno.test("preamp serve refuses a store that it cannot open, with the reason and without the password", async () => {
  for (
    const [store, reason] of [
      ["sqlite:/proc/none/x.db", "Cannot use the store sqlite:/proc/none/x.db: "],
      ["postgres://ada:hunter2@127.0.0.1:1/x", "Cannot use the store postgres://127.0.0.1:1/x: "],
      ["redis:x", "must be auto, memory, sqlite:PATH or postgres://"],
    ] as const
  ) {
    const { code, stderr } = await runCommand(["serve", "--store", store]);
    assertEquals(code, 2, store);
    assertStringIncludes(stderr, reason);
    assert(!stderr.includes("hunter2"), stderr);
  }
});

testOnStores(
  "a server that stops leaves its runs to another one: nothing is cancelled, questions stay open",
  (flags) =>
    lasting(8_000, async (delay_ms) => {
      await using one = await startServer(flags, { env: KEYS });
      await using two = await startServer(flags, { env: KEYS });
      const [working, asking] = [await begin(one, planOf(delay_ms)), await begin(one, ASKING)];
      const { session_id } = (await call(one, `/v1/runs/${working}`)).body;
      const queued = await begin(one, planOf(0), { session_id, if_busy: "queue" });
      const waiting = await until(one, asking, ({ status }) => status === "awaiting_approval");
      await until(one, working, ({ tool_call_count }) => tool_call_count === 1);
      const response = await one.fetch(`/v1/runs/${working}/events`, {
        headers: { ...AUTHORIZED, accept: "text/event-stream" },
      });
      await mustRun(one, working);
      one.kill("SIGTERM");
      const [stream, { code, stderr }] = await Promise.all([response.text(), one.ended]);
      assertEquals(code, 0);
      assertEquals([stream.includes("event: run:end"), stream.endsWith("retry: 1000\n\n")], [false, true]);
      const left = stderr.split("\n").filter((line) => line.includes('"run_handed_over"')).map((line) =>
        JSON.parse(line).run_id
      );
      assertEquals(new Set(left), new Set([working, asking]));
      const approval = waiting.approvals[0].id;
      assertEquals(
        (await call(two, `/v1/runs/${asking}/approvals/${approval}`, { decision: "allow" })).status,
        200,
      );
      for (const id of [working, asking, queued]) {
        const ended = await until(two, id, ({ ended_at }) => ended_at !== null);
        assertEquals([id, ended.status], [id, "completed"]);
      }
      const { names, seqs } = await eventsOf(two, working);
      assertEquals(seqs, names.map((_, index) => index + 1));
      assertEquals(names.filter((name) => name.startsWith("cancel:")), []);
      assertEquals(names.filter((name) => name === "tool:pre").length, 1);
    }),
);

Deno.test("two servers on one SQLite file: shared runs, and a run whose server is killed is finished by the other", () =>
  inFolder(async (folder) => {
    const flags = ["--store", `sqlite:${folder}/runs.db`];
    const one = await startServer(flags, { env: KEYS });
    await using two = await startServer(flags, { env: KEYS });
    await checkSharedRuns(one, two);
    await checkTakeOver(one, [two]);
  }));

Deno.test({
  name: "three servers on one Postgres: shared runs, and a run whose server is killed is finished by another",
  ignore: POSTGRES === null,
  async fn() {
    await using database = await startPostgres();
    const flags = ["--store", database.url];
    const one = await startServer(flags, { env: KEYS });
    await using two = await startServer(flags, { env: KEYS });
    await using three = await startServer(flags, { env: KEYS });
    await checkSharedRuns(two, three);
    await checkTakeOver(one, [two, three]);
  },
});

/** Decides, cancels, follows and lists a run of `one` through `two`. */
async function checkSharedRuns(one: ServerProgram, two: ServerProgram): Promise<void> {
  const asking = await begin(one, ASKING);
  const followed = eventsOf(two, asking);
  const waiting = await until(two, asking, ({ status }) => status === "awaiting_approval");
  const [approval] = waiting.approvals;
  const path = `/v1/runs/${asking}/approvals/${approval.id}`;
  const answers = await Promise.all(
    [one, two, two, one].map((server) => call(server, path, { decision: "allow" })),
  );
  assertEquals(answers.map(({ status }) => status).sort(), [200, 409, 409, 409]);
  const ended = await until(two, asking, ({ ended_at }) => ended_at !== null);
  assertEquals([ended.output_text, ended.status], ["It is 42.", "completed"]);
  const { seqs, names } = await followed;
  assertEquals(seqs, names.map((_, index) => index + 1));
  assertEquals(names.filter((name) => name === "approval:granted").length, 1);

  const long = await begin(one, planOf(HANGS_MS));
  const running = await until(two, long, ({ tool_call_count }) => tool_call_count === 1);
  const busy = await call(two, "/v1/runs", { prompt: "hi", session_id: running.session_id });
  assertEquals(
    [busy.status, busy.body.error.code],
    [409, "session_busy"],
    JSON.stringify(busy.body),
  );
  assertEquals((await call(two, `/v1/runs/${long}/steer`, { text: "faster" })).status, 200);
  const cancelled = await call(two, `/v1/runs/${long}/cancel`, { mode: "immediate" });
  assertEquals(cancelled.status, 200);
  assertEquals((await until(two, long, ({ ended_at }) => ended_at !== null)).status, "cancelled");
  const listed = await call(two, "/v1/runs");
  assertEquals(listed.body.data.map(({ id }: Json) => id), [long, asking]);
}

/** Kills `one` in the middle of a run; the others finish it, once, and its reader misses nothing. */
async function checkTakeOver(one: ServerProgram, others: readonly ServerProgram[]): Promise<void> {
  const id = await begin(one, planOf(4_000));
  await until(others[0]!, id, ({ tool_call_count }) => tool_call_count === 1);
  const followed = eventsOf(others[0]!, id);
  one.kill("SIGKILL");
  await one.ended;
  const { seqs, names } = await followed;
  assertEquals(seqs, names.map((_, index) => index + 1));
  assertEquals(names.filter((name) => name === "tool:post").length, 1);
  const ended = await until(others.at(-1)!, id, ({ ended_at }) => ended_at !== null);
  assertEquals([ended.status, ended.output_text, ended.tool_call_count], ["completed", "It is 42.", 1]);
  const next = await call(others[0]!, "/v1/runs", {
    prompt: "again",
    session_id: ended.session_id,
    plan: planOf(0),
  });
  assertEquals(next.body.status, "completed");
}

Deno.test({
  name: "preamp store migrate, check and vacuum report on Postgres, and write nothing else",
  ignore: POSTGRES === null,
  async fn() {
    await using database = await startPostgres();
    for (
      const [command, says] of [["migrate", /version \d+/], ["check", /0 records/], ["vacuum", /./]] as const
    ) {
      const { code, stdout, stderr } = await runProgram(["store", command, "--store", database.url]);
      assertEquals([command, code, stderr, says.test(stdout)], [command, 0, "", true]);
    }
  },
});

Deno.test("GET /v1/system describes the server to callers with a key", async () => {
  await using server = await startServer([], { env: { ...KEYS, OPENAI_API_KEY: "sk-canary-123456" } });
  assertEquals((await server.fetch("/v1/system")).status, 401);
  const { status, body } = await call(server, "/v1/system");
  assertEquals([status, body.store, body.isolation.process], [200, { kind: "sqlite", ok: true }, true]);
  const openai = body.variables.find(({ name }: Json) => name === "OPENAI_API_KEY");
  assertEquals([openai.set, JSON.stringify(body).includes("canary")], [true, false]);
});
