/** Ends that the store refuses at first: no client sees an end that is not stored, and a run ends once. */
import type { Run, RunHandle } from "../../src/runs/types.ts";
import type { Change } from "../../src/store/store.ts";
import { openSqliteStore } from "../../src/store/sqlite/sqlite_store.ts";
import { assertEquals, assertRejects } from "../assert.ts";
import { asking, codeOf } from "../support/asking_runs.ts";
import type { ActiveRun } from "../../src/runs/run/run.ts";
import { CALLER, type Service, service, type TestPlan } from "../support/runs.ts";
import { calls, tool, until } from "../support/sessions.ts";
import { settle, shared, type SharedStore } from "./shared_store.ts";

/** Returns a plan that counts its model calls and the calls of its tool. */
function countingPlan(): { plan: TestPlan; did: string[] } {
  const did: string[] = [];
  const use = tool("t", () => {
    did.push("tool");
    return Promise.resolve("ok");
  });
  const answer = () => {
    did.push("model");
    return "done";
  };
  return { plan: { providers: [[calls(["t"]), answer, answer]], tools: [use] }, did };
}

const isEnd = (changes: readonly Change[]) =>
  changes.some((change) =>
    "append" in change && change.entries.some((entry) => "event" in entry && entry.event === "run:end")
  );

/** Makes the store refuse the next `times` commits with the end of a run. */
function refuseEnds({ store }: Service, times = Infinity): void {
  let left = times;
  (store as SharedStore).committing = (changes) => {
    if (isEnd(changes) && left-- > 0) throw new Error("disk full");
  };
}

const isDone = async (promise: Promise<unknown>) =>
  await Promise.race([promise.then(() => true), settle().then(() => false)]);

const ends = async ({ names }: Service, run_id: string) =>
  (await names(run_id)).filter((event) => event === "run:end").length;

async function untilRefused({ logs }: Service): Promise<void> {
  await until(() => logs.some(({ event }) => event === "run_end_not_stored"));
}

Deno.test("an end that is refused some times is stored once; until then the run is running, for its clients, other servers and recovery", async () => {
  const { plan, did } = countingPlan();
  const one = service({ plans: { plan }, store: shared });
  const other = service({ plans: { plan }, beside: one, store: shared });
  refuseEnds(one, 3);
  const run = await one.post("plan");
  await untilRefused(one);
  const ended = run.settled("end");
  const elsewhere = (await other.runs.handle(CALLER, run.id)).settled("end");
  for (let step = 0; step < 6; step++) {
    assertEquals([await isDone(ended), await isDone(elsewhere)], [false, false]);
    for (const { runs } of [one, other]) {
      assertEquals((await runs.get(CALLER, run.id)).status, "running");
      assertEquals((await runs.list(CALLER, {})).data.map(({ status }) => status), ["running"]);
      assertEquals(await runs.recover(), []);
      assertEquals(await codeOf(() => runs.remove(CALLER, run.id)), "session_busy");
    }
    assertEquals((await one.runs.cancel(CALLER, run.id, "immediate")).status, "running");
    await one.clock.advance(250);
  }
  const steered = await assertRejects(() => one.runs.steer(CALLER, run.id, "x"));
  assertEquals(steered.message, "Cannot steer the run: it is ending or has ended");
  await one.clock.advance(500);
  assertEquals([(await ended).status, (await elsewhere).status], ["completed", "completed"]);
  assertEquals([did, await ends(one, run.id)], [["tool", "model"], 1]);
  assertEquals(one.logs.map(({ event }) => event), ["run_end_not_stored", "run_end_stored"]);
  assertEquals(one.clock.pending, 0);
});

Deno.test("a cancelled run whose end is refused stays cancelled", async () => {
  const started = Promise.withResolvers<void>();
  const plan: TestPlan = {
    providers: [[calls(["t"]), "done"]],
    tools: [tool("t", () => {
      started.resolve();
      return new Promise(() => {});
    })],
  };
  const one = service({ plans: { plan }, store: shared });
  const other = service({ plans: { plan }, beside: one, store: shared });
  refuseEnds(one, 2);
  const run = await one.post("plan");
  await started.promise;
  await one.runs.cancel(CALLER, run.id, "immediate");
  await untilRefused(one);
  assertEquals(await other.runs.recover(), []);
  await one.clock.advance(1_000);
  assertEquals((await run.settled("end")).status, "cancelled");
  assertEquals([(await other.runs.get(CALLER, run.id)).status, await ends(other, run.id)], ["cancelled", 1]);
});

Deno.test("a run with an answered approval whose end is refused asks no one again", async () => {
  const one = service({ plans: { asking: asking() }, store: shared });
  const other = service({ plans: { asking: asking() }, beside: one, store: shared });
  refuseEnds(one, 2);
  const run = await one.post("asking");
  const { approvals: [approval] } = await run.settled("attention");
  await one.runs.decide(CALLER, run.id, approval!.id, { decision: "allow" });
  await untilRefused(one);
  const decide = () => one.runs.decide(CALLER, run.id, approval!.id, { decision: "deny" });
  assertEquals([await codeOf(decide), await other.runs.recover()], ["approval_already_resolved", []]);
  await one.clock.advance(1_000);
  assertEquals((await run.settled("end")).status, "completed");
  const asked = (await other.names(run.id)).filter((event) => event.startsWith("approval:"));
  assertEquals(asked, ["approval:required", "approval:granted"]);
});

Deno.test("no client has seen an end that its killed process could not store: the next process ends the run", async () => {
  const { plan, did } = countingPlan();
  const one = service({ plans: { plan }, store: shared });
  refuseEnds(one);
  const run = await one.post("plan");
  await untilRefused(one);
  const ended = run.settled("end");
  const other = service({ plans: { plan }, beside: one, store: shared });
  await one.clock.advance(6_000); // without renewals: the process is dead
  assertEquals(await other.runs.recover(), [run.id]);
  const end = await (await other.runs.handle(CALLER, run.id)).settled("end");
  assertEquals([end.status, did.filter((what) => what === "tool")], ["completed", ["tool"]]);
  // the dead process lives after all: the end that its clients get is that of the other one
  refuseEnds(one, 0);
  for (let step = 0; step < 40; step++) await one.clock.advance(1_000);
  assertEquals([await ended, await ends(one, run.id)], [end, 1]);
});

Deno.test("a server that stops tries once more to store an end, then leaves the run to the others at once", async () => {
  for (const repaired of [true, false]) {
    const { plan } = countingPlan();
    const one = service({ plans: { plan }, store: shared });
    refuseEnds(one);
    const run = await one.post("plan");
    await untilRefused(one);
    const ended = run.settled("end");
    if (repaired) (one.store as SharedStore).committing = () => {};
    const drained = one.runs.drain(5_000);
    for (let step = 0; step < 10; step++) await one.clock.advance(10); // less than the first delay
    for (let step = 0; step < 10; step++) await one.clock.advance(500);
    await drained;
    const other = service({ plans: { plan }, beside: one, store: shared });
    assertEquals(await other.runs.recover(), repaired ? [] : [run.id]);
    assertEquals(await isDone(ended), repaired);
    assertEquals((await (await other.runs.handle(CALLER, run.id)).settled("end")).status, "completed");
    assertEquals(await ends(other, run.id), 1);
  }
});

Deno.test("an end that is stored although its commit failed is the end of the run, and frees its session at once", async () => {
  const { plan } = countingPlan();
  const one = service({ plans: { plan }, store: shared });
  const other = service({ plans: { next: {} }, beside: one, store: shared });
  (one.store as SharedStore).committed = (changes) => {
    if (isEnd(changes)) throw new Error("connection lost");
  };
  const run = await one.post("plan");
  await untilRefused(one);
  const ended = run.settled("end");
  const { session_id } = run;
  const next = await other.finish("next", { session_id });
  assertEquals([next.status, await isDone(ended)], ["completed", false]);
  for (let step = 0; step < 3; step++) await one.clock.advance(1_000);
  assertEquals([(await ended).status, await ends(one, run.id)], ["completed", 1]);
  (one.store as SharedStore).committed = () => {};
  assertEquals((await one.finish("plan", { session_id })).status, "completed");
});

Deno.test("runs whose end is refused count for the limits: there are not more than those in memory", async () => {
  const { plan } = countingPlan();
  const one = service({ plans: { plan }, store: shared, limits: { max_concurrent_runs: 3 } });
  refuseEnds(one);
  const runs: RunHandle[] = [];
  for (let count = 0; count < 3; count++) runs.push(await one.post("plan"));
  await settle();
  assertEquals(await codeOf(() => one.post("plan")), "too_many_runs");
  refuseEnds(one, 0);
  await one.clock.advance(30_000);
  for (const run of runs) assertEquals((await run.settled("end")).status, "completed");
  assertEquals((await one.finish("plan")).status, "completed");
});

Deno.test("a queued run that is cancelled while its end is refused does not start, and those behind it do after it", async () => {
  const release = Promise.withResolvers<string>();
  const slow: TestPlan = { tools: [tool("t", () => release.promise)], providers: [[calls(["t"]), "first"]] };
  const one = service({ plans: { slow, next: { providers: [["second"]] } }, store: shared });
  const { session_id, ...first } = await one.post("slow");
  const queued = await one.post("next", { session_id, if_busy: "queue" });
  const behind = await one.post("next", { session_id, if_busy: "queue" });
  refuseEnds(one, 1);
  assertEquals((await one.runs.cancel(CALLER, queued.id, "graceful")).status, "queued");
  assertEquals(first.id, "run_1");
  release.resolve("ok");
  await settle();
  assertEquals([queued.current().status, behind.current().status], ["queued", "queued"]);
  await one.clock.advance(300);
  assertEquals((await queued.settled("end")).status, "cancelled");
  assertEquals((await behind.settled("end")).status, "completed");
});

Deno.test("a server that has drained tries no more to store the end of a queued run, although it has no other run", async () => {
  const release = Promise.withResolvers<string>();
  const slow: TestPlan = { tools: [tool("t", () => release.promise)], providers: [[calls(["t"]), "first"]] };
  const one = service({ plans: { slow, next: { providers: [["second"]] } }, store: shared });
  const { session_id } = await one.post("slow");
  const queued = await one.post("next", { session_id, if_busy: "queue" });
  let tries = 0;
  (one.store as SharedStore).committing = (changes) => {
    if (!isEnd(changes) || !changes.some((change) => "append" in change && change.append === queued.id)) {
      return;
    }
    tries++;
    throw new Error("disk full");
  };
  await one.runs.cancel(CALLER, queued.id, "graceful");
  release.resolve("ok");
  await settle();
  const drained = one.runs.drain(5_000);
  for (let step = 0; step < 20; step++) await one.clock.advance(500);
  await drained;
  await settle();
  const before = tries;
  for (let step = 0; step < 100; step++) await one.clock.advance(1_000);
  assertEquals([tries, one.clock.pending], [before, 0]);
});

Deno.test("a SQLite store that refuses an end some times has the run and its session once it takes it", async () => {
  const file = await Deno.makeTempFile();
  await Deno.remove(file);
  const store = await openSqliteStore(file, { now: () => 0 });
  const commit = store.commit.bind(store);
  let left = 2;
  store.commit = (changes, fence) => {
    if (isEnd(changes) && left-- > 0) throw new Error("database or disk is full");
    return commit(changes, fence);
  };
  const { plan } = countingPlan();
  const { post, clock, runs } = service({ plans: { plan }, store: () => store });
  const refused = Promise.withResolvers<Run>();
  const run = await post("plan", {}, { endNotStored: refused.resolve });
  assertEquals((await refused.promise).status, "completed");
  assertEquals((await store.get("run", run.id))?.value.status, "running");
  while (run.current().ended_at === null) await clock.advance(50);
  assertEquals(await run.settled("end"), await refused.promise);
  assertEquals((await runs.sessions.messages(CALLER, run.session_id)).data.length, 4);
  await runs.close();
  await store.close();
  await Deno.remove(file);
});

Deno.test("a run whose end fails in the process itself ends once, as failed, and frees its session", async () => {
  for (const always of [false, true]) {
    const { plan } = countingPlan();
    const { post, names, logs } = service({ plans: { plan } });
    const run = await post("plan") as ActiveRun;
    const end = run.projection.end.bind(run.projection);
    let tries = 0;
    run.projection.end = (...args) => {
      if (always || tries++ === 0) throw new Error("no projection");
      return end(...args);
    };
    const { status, error } = await run.settled("end");
    assertEquals([status, error?.message], always ? ["running", undefined] : ["failed", "no projection"]);
    assertEquals((await names(run.id)).filter((event) => event === "run:end").length, always ? 0 : 1);
    assertEquals(
      logs.map(({ event }) => event),
      always ? ["run_end_failed", "run_lost"] : ["run_end_failed"],
    );
    const next = await post("plan", { session_id: run.session_id });
    assertEquals((await next.settled("end")).status, "completed");
  }
});

Deno.test("an end whose records cannot be made is not tried again like one that the store refuses", async () => {
  const { plan } = countingPlan();
  const { post, names, logs } = service({ plans: { plan } });
  const run = await post("plan") as ActiveRun;
  const ended = run.records.ended.bind(run.records);
  let tries = 0;
  run.records.ended = (...args) => {
    if (tries++ === 0) throw new Error("no records");
    return ended(...args);
  };
  const { status, error } = await run.settled("end");
  assertEquals([status, error?.message, tries], ["failed", "no records", 2]);
  assertEquals((await names(run.id)).filter((event) => event === "run:end").length, 1);
  assertEquals(logs.map(({ event }) => event), ["run_end_failed"]);
});

Deno.test("a waiting run that can neither begin nor end frees its session", async () => {
  const release = Promise.withResolvers<string>();
  const slow = { tools: [tool("t", () => release.promise)], providers: [[calls(["t"]), "done"]] };
  const { post, logs } = service({ plans: { slow, plain: {} } });
  const { session_id } = await post("slow");
  const lost = await post("plain", { session_id, if_busy: "queue" }) as ActiveRun;
  lost.begin = () => Promise.reject(new Error("no modules"));
  lost.projection.end = () => {
    throw new Error("no projection");
  };
  release.resolve("ok");
  await lost.closed;
  await settle();
  assertEquals(logs.map(({ event }) => event), ["run_end_failed", "run_lost"]);
  const next = await post("plain", { session_id });
  assertEquals((await next.settled("end")).status, "completed");
});

Deno.test("an observer that throws changes no run", async () => {
  const fail = () => {
    throw new Error("no exporter");
  };
  const { plan } = countingPlan();
  const { post, finish, logs } = service({ plans: { plan }, observe: () => ({ stored: fail, ended: fail }) });
  const { session_id, status } = await finish("plan");
  assertEquals(status, "completed");
  assertEquals((await (await post("plan", { session_id })).settled("end")).status, "completed");
  assertEquals([...new Set(logs.map(({ event }) => event))], ["run_not_observed"]);
});
