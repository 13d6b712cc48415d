/** A store that is away for a while: runs in progress wait for it, and new ones are refused. */
import { PreampError } from "../../src/sdk/errors.ts";
import type { RunHandle } from "../../src/runs/types.ts";
import { assert, assertEquals } from "../assert.ts";
import { asking, codeOf } from "../support/asking_runs.ts";
import { CALLER, replayed, type Service, service, type TestPlan } from "../support/runs.ts";
import { calls, tool } from "../support/sessions.ts";
import { settle, shared, type SharedStore } from "./shared_store.ts";

/** Returns a plan with two tool calls, and the number of times that the tool was executed. */
function workingPlan(): { plan: TestPlan; did: { times: number } } {
  const did = { times: 0 };
  const use = tool("t", () => Promise.resolve(`ok ${++did.times}`));
  return { plan: { providers: [[calls(["t"]), calls(["t"]), "done"]], tools: [use] }, did };
}

const away = () => new PreampError("overloaded", "Cannot use the store: the database failed: ECONNREFUSED");

/** Lets the commits from number `first` on fail, before or after they are applied; returns their count. */
function failFrom({ store }: Service, first: number, when: "before" | "after", times = Infinity) {
  const commits = { count: 0, left: times };
  const fail = () => {
    if (commits.count >= first && commits.left-- > 0) throw away();
  };
  Object.assign(store as SharedStore, {
    committing() {
      commits.count++;
      if (when === "before") fail();
    },
    committed: () => when === "after" && fail(),
  });
  return commits;
}

const codeIn = (error: unknown) => (error as PreampError).code;

/** Advances time until a run has ended. */
async function untilEnded({ clock }: Service, run: RunHandle, step_ms = 250): Promise<void> {
  for (let step = 0; run.current().ended_at === null; step++) {
    assert(step < 1_000, "the run does not end");
    await settle();
    await clock.advance(step_ms);
  }
}

for (const when of ["before", "after"] as const) {
  Deno.test(`a store that is away from any commit on, failing ${when} it applies it, delays a run and changes nothing`, async () => {
    let rounds = 0;
    for (let first = 2, reached = true; reached; first++, rounds++) {
      const { plan, did } = workingPlan();
      const one = service({ plans: { plan }, store: shared });
      const commits = failFrom(one, first, when, 3);
      const run = await one.post("plan");
      await untilEnded(one, run);
      reached = commits.left < 3;
      const log = await one.entries(run.id);
      assertEquals([run.current().status, run.current().output_text, did.times], ["completed", "done", 2]);
      assertEquals(log.map(({ seq }) => seq), log.map((_, index) => index + 1));
      const names = log.map(({ event }) => event);
      assertEquals(names.filter((name) => name === "tool:post" || name === "run:end"), [
        "tool:post",
        "tool:post",
        "run:end",
      ]);
      assertEquals((await one.runs.get(CALLER, run.id)).status, "completed");
      await one.runs.close();
    }
    assert(rounds > 5, `${rounds} rounds`);
  });
}

Deno.test("while the store is away new runs are refused, and a run in progress is running for its clients", async () => {
  const { plan } = workingPlan();
  const one = service({ plans: { plan }, store: shared });
  failFrom(one, 3, "before");
  const run = await one.post("plan");
  await settle();
  assertEquals(await codeOf(() => one.post("plan")), "overloaded");
  assertEquals((await one.runs.get(CALLER, run.id)).status, "running");
  assertEquals(one.logs, []);
  failFrom(one, Infinity, "before");
  await untilEnded(one, run);
  assertEquals(run.current().status, "completed");
});

Deno.test("who begins to read the log of a run while the store is away waits for it", async () => {
  const { plan } = workingPlan();
  const one = service({ plans: { plan }, store: shared });
  const run = await one.post("plan");
  await untilEnded(one, run);
  let left = 3;
  const get = one.store.get.bind(one.store);
  Object.assign(one.store, {
    get: (kind: string, key: string) => left-- > 0 ? Promise.reject(away()) : get(kind, key),
  });
  const reading = Array.fromAsync(one.runs.follow(CALLER, run.id, {}));
  for (let step = 0; left >= 0 && step < 100; step++) {
    await settle();
    await one.clock.advance(250);
  }
  assertEquals((await reading).flat().at(-1)?.event, "run:end");
  await one.runs.close();
});

Deno.test("a run whose store stays away for store_wait_s is left, and continued once the store is back", async () => {
  const { plan, did } = workingPlan();
  const one = service({ plans: { plan }, store: shared });
  const commits = failFrom(one, 4, "before");
  const run = await one.post("plan");
  const ended = run.settled("end");
  for (let waited_ms = 0; waited_ms < 59_000; waited_ms += 250) await one.clock.advance(250);
  await settle();
  assertEquals(one.logs, []);
  for (let waited_ms = 0; waited_ms < 10_000; waited_ms += 250) await one.clock.advance(250);
  await settle();
  assert(one.logs.some(({ event }) => event === "run_left"));
  commits.left = 0;
  const before = did.times;
  assertEquals(await one.runs.recover(), [run.id]);
  await one.clock.advance(2_000);
  assertEquals([(await ended).status, did.times], ["completed", Math.max(before, did.times)]);
  const log = await one.entries(run.id);
  assertEquals(log.map(({ seq }) => seq), log.map((_, index) => index + 1));
  assertEquals(log.filter(({ event }) => event === "run:end").length, 1);
});

Deno.test("a steering text that was acknowledged is delivered, also when the process stops before the next model call", async () => {
  for (const text of ["look here", "again", "look here"]) {
    const started = Promise.withResolvers<void>();
    let times = 0;
    const plan: TestPlan = {
      tools: [tool("t", () => {
        started.resolve();
        return ++times === 1 ? new Promise(() => {}) : "ok";
      })],
      providers: [[calls(["t"]), "done"]],
    };
    const one = service({ plans: { plan }, store: shared });
    const run = await one.post("plan");
    await started.promise;
    for (const said of ["look here", text]) await one.runs.steer(CALLER, run.id, said);
    const drained = one.runs.drain(1_000);
    for (let step = 0; step < 4; step++) await one.clock.advance(500);
    await drained;
    const other = service({ plans: { plan }, beside: one, store: shared });
    await one.clock.advance(5_001);
    assertEquals(await other.runs.recover(), [run.id]);
    const ended = await (await other.runs.handle(CALLER, run.id)).settled("end");
    const { data } = await other.runs.sessions.messages(CALLER, run.session_id);
    assertEquals([ended.status, data.filter(({ role }) => role === "user").map(({ content }) => content)], [
      "completed",
      ["hello", "look here", text],
    ]);
    assertEquals(await replayed(other, run.id), { equal: true });
  }
});

Deno.test("a question is stored, and its answer recorded, although the store is away in between", async () => {
  for (let first = 2; first < 8; first++) {
    const one = service({ plans: { asking: asking() }, store: shared });
    failFrom(one, first, "after", 2);
    const run = await one.post("asking");
    for (let step = 0; step < 10; step++) await one.clock.advance(250);
    const [approval] = (await run.settled("attention")).approvals;
    const decide = () =>
      one.runs.decide(CALLER, run.id, approval!.id, { decision: "allow" }).then(() => "done", codeIn);
    const deciding = decide();
    const asked_ms = one.clock.now();
    await untilEnded(one, run, 1_000);
    assertEquals(run.current().status, "completed", await deciding);
    assert(one.clock.now() - asked_ms < 60_000, "the answer was found at the deadline only");
    const names = await one.names(run.id);
    assertEquals(names.filter((name) => name.startsWith("approval:")), [
      "approval:required",
      "approval:granted",
    ]);
    await one.runs.close();
  }
});
