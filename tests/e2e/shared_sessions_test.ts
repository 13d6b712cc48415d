/**
 * One run at a time in a session that several servers use: waiting, cancelling, limits, and what a crash
 * leaves.
 */
import { assertEquals } from "../assert.ts";
import { HANGS_MS } from "../support/clock.ts";
import { inFolder } from "../support/folder.ts";
import { type Json, type ServerProgram, startServer } from "./program.ts";
import { ASKING, begin, call, KEYS, lasting, mustRun, planOf, testOnStores, until } from "./shared_store.ts";

const ended = ({ ended_at }: Json) => ended_at !== null;
const calledTool = ({ tool_call_count }: Json) => tool_call_count === 1;

/** Starts two servers on one store. */
async function startTwo(flags: string[]): Promise<[ServerProgram, ServerProgram]> {
  return await Promise.all([startServer(flags, { env: KEYS }), startServer(flags, { env: KEYS })]);
}

/**
 * Starts a run in a new session, whose later model calls take `delay_ms`; resolves when the second one is
 * under way.
 */
async function occupy(
  server: ServerProgram,
  delay_ms: number,
  tool_calls = 1,
): Promise<{ id: string; session_id: string }> {
  const id = await begin(server, planOf(delay_ms, tool_calls), { prompt: "first" });
  const { session_id } = await until(server, id, calledTool);
  return { id, session_id };
}

/** Resolves to the prompts of a session, in order. */
async function promptsOf(server: ServerProgram, session_id: string): Promise<string[]> {
  const { body } = await call(server, `/v1/sessions/${session_id}/messages`);
  return body.data.filter(({ role }: Json) => role === "user").map(({ content }: Json) => content);
}

/** Resolves to the statuses of runs once all have ended. */
async function statusesOf(server: ServerProgram, ids: readonly string[]): Promise<string[]> {
  const runs = [];
  for (const id of ids) runs.push(await until(server, id, ended));
  return runs.map(({ status }) => status);
}

/** Allows the tool call of a run, whether or not a server executes it. */
async function approve(server: ServerProgram, id: string): Promise<void> {
  const { approvals: [approval] } = await until(server, id, ({ status }) => status === "awaiting_approval");
  const { status } = await call(server, `/v1/runs/${id}/approvals/${approval.id}`, { decision: "allow" });
  assertEquals(status, 200);
}

testOnStores("one run at a time in a session", async (flags, t) => {
  const [one, two] = await startTwo(flags);
  await using _one = one;
  await using _two = two;

  const queued = "queued runs of both start one after the other, in the order of their creation";
  await t.step(queued, () =>
    lasting(4_000, async (delay_ms) => {
      const { id, session_id } = await occupy(one, delay_ms);
      const ids = [id];
      for (
        const [server, prompt] of [[two, "second"], [one, "third"], [two, "fourth"], [two, "fifth"]] as const
      ) {
        ids.push(await begin(server, planOf(0), { prompt, session_id, if_busy: "queue" }));
      }
      const waiting = await call(one, "/v1/runs?status=queued");
      const cancelled = await call(one, `/v1/runs/${ids[3]}/cancel`, {}); // waits on the other server
      const { status } = await until(one, ids[3]!, ended);
      await mustRun(one, id);
      assertEquals(waiting.body.data.map(({ id }: Json) => id), ids.slice(1).reverse());
      assertEquals([cancelled.status, status], [200, "cancelled"]);
      assertEquals(await statusesOf(one, ids), [
        "completed",
        "completed",
        "completed",
        "cancelled",
        "completed",
      ]);
      assertEquals(await promptsOf(two, session_id), ["first", "second", "third", "fifth"]);
      assertEquals((await call(one, "/v1/runs?status=queued")).body.data, []);
    }));

  const first = "if_busy: cancel ends the run of the other, and starts before queued runs";
  await t.step(first, () =>
    lasting(1_500, async (delay_ms) => {
      const { id, session_id } = await occupy(one, delay_ms, 6); // it ends after one of them
      const queued = await begin(one, planOf(0), { prompt: "later", session_id, if_busy: "queue" });
      await mustRun(one, id);
      const replacing = await call(two, "/v1/runs", {
        prompt: "now",
        plan: planOf(0),
        session_id,
        if_busy: "cancel",
      });
      assertEquals(
        [replacing.status, replacing.body.status],
        [200, "completed"],
        JSON.stringify(replacing.body),
      );
      assertEquals(await statusesOf(two, [id, queued]), ["cancelled", "completed"]);
      assertEquals(await promptsOf(one, session_id), ["first", "now", "later"]);
    }));

  await t.step("a run that waits for an approval on the other is superseded", async () => {
    const id = await begin(one, ASKING, { prompt: "first" });
    const { session_id } = await until(two, id, ({ status }) => status === "awaiting_approval");
    const next = await call(two, "/v1/runs", { prompt: "next", plan: planOf(0), session_id });
    assertEquals([next.status, next.body.status], [200, "completed"], JSON.stringify(next.body));
    assertEquals(await statusesOf(two, [id]), ["cancelled"]);
    const log = await call(two, `/v1/runs/${id}/events`);
    const denied = log.body.data.filter(({ event }: Json) => event === "approval:denied");
    assertEquals(denied.map(({ data }: Json) => data.reason), [`superseded by ${next.body.id}`]);
  });
});

testOnStores(
  "a queued run survives the death of the server that accepted it",
  (flags) =>
    lasting(8_000, async (delay_ms) => {
      const [one, two] = await startTwo(flags);
      await using _one = one;
      const { id, session_id } = await occupy(one, delay_ms);
      const queued = await begin(two, planOf(0), { prompt: "second", session_id, if_busy: "queue" });
      two.kill("SIGKILL");
      await two.ended;
      await mustRun(one, id);
      assertEquals(await statusesOf(one, [id, queued]), ["completed", "completed"]);
      assertEquals(await promptsOf(one, session_id), ["first", "second"]);
    }),
);

testOnStores(
  "a queued run starts when the run of a killed server was recovered and has ended",
  (flags) =>
    lasting(4_000, async (delay_ms) => {
      const [one, two] = await startTwo(flags);
      await using _two = two;
      const { id, session_id } = await occupy(one, delay_ms);
      const queued = await begin(two, planOf(0), { prompt: "second", session_id, if_busy: "queue" });
      const mine = await begin(one, planOf(0), { prompt: "third", session_id, if_busy: "queue" });
      one.kill("SIGKILL");
      await one.ended;
      const busy = await call(two, "/v1/runs", { prompt: "never", plan: planOf(0), session_id });
      await mustRun(two, id);
      assertEquals([busy.status, busy.body.error.code], [409, "session_busy"]);
      assertEquals(await statusesOf(two, [id, queued, mine]), ["completed", "completed", "completed"]);
      assertEquals(await promptsOf(two, session_id), ["first", "second", "third"]);
    }),
);

Deno.test("a queued run waits over a restart of its server", () =>
  inFolder((folder) =>
    lasting(5_000, async (delay_ms) => {
      const flags = ["--store", `sqlite:${folder}/runs.db`];
      let ids: string[];
      let session: string;
      {
        await using server = await startServer(flags, { env: KEYS });
        const { id, session_id } = await occupy(server, delay_ms);
        ids = [id, await begin(server, planOf(0), { prompt: "second", session_id, if_busy: "queue" })];
        session = session_id;
        await mustRun(server, id);
      }
      await using server = await startServer(flags, { env: KEYS });
      assertEquals(await statusesOf(server, ids), ["completed", "completed"]);
      assertEquals(await promptsOf(server, session), ["first", "second"]);
    })
  ));

Deno.test("a server that gets no requests continues the runs that the one before it left", () =>
  inFolder((folder) =>
    lasting(8_000, async (delay_ms) => {
      const flags = ["--store", `sqlite:${folder}/runs.db`];
      let run_id: string;
      {
        await using server = await startServer(flags, { env: KEYS });
        run_id = await begin(server, planOf(delay_ms));
        await mustRun(server, run_id);
      }
      await using server = await startServer(flags, { env: KEYS });
      const late = setTimeout(() => server.kill("SIGKILL"), HANGS_MS);
      const log = await server.stderr.until((text) => text.includes("run_continued"));
      clearTimeout(late);
      const line = log.split("\n").find((line) => line.includes("run_continued")) ?? "{}";
      assertEquals(JSON.parse(line).run_id, run_id);
    })
  ));

testOnStores(
  "a key has max_runs_per_key runs at once on both together, also after a crash",
  async (flags) => {
    const keys = { PREAMP_API_KEYS: `${KEYS.PREAMP_API_KEYS},another-key-of-this-test` };
    const start = () => startServer([...flags, "--limits.max_runs_per_key", "3"], { env: keys });
    const [one, two] = await Promise.all([start(), start()]);
    await using _two = two;
    const post = (server: ServerProgram, plan: Json, headers: Record<string, string> = {}) =>
      call(server, "/v1/runs", { prompt: "hi", plan }, {
        prefer: "respond-async",
        ...headers,
      });
    const servers = Array.from({ length: 12 }, (_, index) => index % 2 === 0 ? one : two);
    const answers = await Promise.all(servers.map((server) => post(server, ASKING)));
    const admitted = answers.filter(({ status }) => status === 202).map(({ body }) => body.id);
    assertEquals([admitted.length, answers.filter(({ status }) => status === 429).length], [3, 9]);
    const refused = await post(two, planOf(0));
    assertEquals([refused.status, refused.body.error.code, refused.body.error.message], [
      429,
      "too_many_runs",
      "Cannot start a run: max_runs_per_key is 3",
    ]);
    const other = await post(two, planOf(0), { authorization: "Bearer another-key-of-this-test" });
    assertEquals(other.status, 202);

    one.kill("SIGKILL");
    await one.ended;
    assertEquals((await post(two, planOf(0))).status, 429); // the runs of the killed server are recovered
    for (const id of admitted) await approve(two, id);
    assertEquals(await statusesOf(two, admitted), ["completed", "completed", "completed"]);
    await lasting(5_000, async (delay_ms) => {
      const again = await Promise.all([1, 2, 3, 4].map(() => post(two, planOf(delay_ms))));
      const begun = again.filter(({ status }) => status === 202).map(({ body }) => body.id);
      try {
        for (const id of begun) await mustRun(two, id);
        assertEquals(again.map(({ status }) => status).sort(), [202, 202, 202, 429]);
      } finally {
        for (const id of begun) await call(two, `/v1/runs/${id}/cancel`, {});
        await statusesOf(two, begun);
      }
    });
  },
);
