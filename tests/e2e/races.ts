/**
 * Races between two servers that share a store: both get the same request at the same moment, or one that
 * excludes the other, and exactly one wins.
 */
import { assertEquals } from "../assert.ts";
import type { Json, ServerProgram } from "./program.ts";
import { ASKING, call, planOf, until } from "./shared_store.ts";

/** Flags of servers for races: many runs of one key. */
export const RACE_FLAGS = [
  ...["--limits.max_runs_per_key", "256", "--limits.max_concurrent_runs", "256"],
  ...["--rates.runs_per_minute", "0", "--rates.requests_per_minute", "0"],
];

/** Rounds that run at the same time. */
const AT_ONCE = 8;

/**
 * A plan whose model calls take longer than two requests to two servers, unless the machine is busy. The
 * script counts all calls of the session.
 */
const SLOW = {
  ...planOf(0),
  providers: [{
    module: "provider-mock",
    config: { responses: Array.from({ length: 4 }, () => ({ text: "slow", delay_ms: 700 })) },
  }],
};

type Servers = readonly [ServerProgram, ServerProgram];

/** Two decisions about one approval: one counts, the other one is refused. */
async function decide([one, two]: Servers): Promise<void> {
  const { body: run } = await call(one, "/v1/runs", { prompt: "hi", plan: ASKING });
  const path = `/v1/runs/${run.id}/approvals/${run.approvals[0].id}`;
  const answers = await Promise.all([
    call(one, path, { decision: "allow" }),
    call(two, path, { decision: "deny" }),
  ]);
  assertEquals(answers.map(({ status }) => status).sort(), [200, 409]);
  await until(two, run.id, ({ ended_at }) => ended_at !== null);
  const winner = answers.find(({ status }) => status === 200)!.body.decision;
  const log = await eventsOf(one, run.id);
  const decided = log.filter(({ event }) => event === "approval:granted" || event === "approval:denied");
  assertEquals(decided.map(({ data }) => data.decision), [winner]);
}

/** Two requests with one idempotency key: one run. */
async function idempotency(servers: Servers): Promise<void> {
  const headers = { "idempotency-key": crypto.randomUUID() };
  const answers = await Promise.all(
    servers.map((server) => call(server, "/v1/runs", { prompt: "hi", plan: planOf(0) }, headers)),
  );
  const [first, second] = answers.map(({ body }) => body.id);
  assertEquals([typeof first, second, answers.map(({ status }) => status)], ["string", first, [200, 200]]);
}

/** Two runs in one session: one has it, the other one is refused. */
async function session([one, two]: Servers): Promise<void> {
  const { body: { session_id } } = await call(one, "/v1/runs", { prompt: "first", plan: planOf(0) });
  const answers = await Promise.all(
    [one, two].map((server) =>
      call(server, "/v1/runs", { prompt: "next", plan: SLOW, session_id }, { prefer: "respond-async" })
    ),
  );
  const statuses = answers.map(({ status }) => status).sort();
  if (statuses.every((status) => status === 202)) { // no race: one request came when the run of the other had ended
    const ids: string[] = answers.map(({ body }) => body.id);
    const runs = await Promise.all(ids.map((id) => until(two, id, ({ ended_at }) => ended_at !== null)));
    const [before, after] = runs.sort((a, b) => a.ended_at < b.ended_at ? -1 : 1);
    assertEquals(before.ended_at <= after.created_at, true, JSON.stringify(runs));
    return await session([one, two]);
  }
  assertEquals(statuses, [202, 409], JSON.stringify(answers));
  const { body: { id } } = answers.find(({ status }) => status === 202)!;
  assertEquals((await until(two, id, ({ ended_at }) => ended_at !== null)).status, "completed");
  const { body } = await call(two, `/v1/sessions/${session_id}/messages`);
  assertEquals(body.data.filter(({ role }: Json) => role === "user").length, 2);
}

/** A cancellation while the run ends: it ends once, in one way. */
async function cancel([one, two]: Servers): Promise<void> {
  const { body: { id } } = await call(one, "/v1/runs", { prompt: "hi", plan: planOf(20) }, {
    prefer: "respond-async",
  });
  await new Promise((resolve) => setTimeout(resolve, Math.random() * 80));
  const answer = await call(two, `/v1/runs/${id}/cancel`, { mode: "immediate" });
  assertEquals(answer.status, 200, JSON.stringify(answer.body));
  const run = await until(one, id, ({ ended_at }) => ended_at !== null);
  const ends = (await eventsOf(two, id)).filter(({ event }) => event === "run:end");
  assertEquals(ends.map(({ data }) => data.run.status), [run.status]);
  assertEquals(["cancelled", "completed"].includes(run.status), true, run.status);
}

async function eventsOf(server: ServerProgram, id: string): Promise<Json[]> {
  return (await call(server, `/v1/runs/${id}/events`)).body.data;
}

/** The races by name. */
export const RACES: Readonly<Record<string, (servers: Servers) => Promise<void>>> = {
  "decisions about one approval": decide,
  "requests with one idempotency key": idempotency,
  "runs in one session": session,
  "cancelling and ending": cancel,
};

/** Runs a race many times. @throws {Error} when a round has no winner or more than one. */
export async function runRounds(
  race: (servers: Servers) => Promise<void>,
  servers: Servers,
  rounds: number,
): Promise<void> {
  let left = rounds;
  await Promise.all(Array.from({ length: AT_ONCE }, async (_, index) => {
    const pair: Servers = index % 2 === 0 ? servers : [servers[1], servers[0]];
    while (left-- > 0) await race(pair);
  }));
}
