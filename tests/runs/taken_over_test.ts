/**
 * Runs that another process takes over: each is executed once, with its session as the run before left it.
 */
import { assertEquals } from "../assert.ts";
import { asking, codeOf } from "../support/asking_runs.ts";
import type { Entry } from "../../src/kernel/host.ts";
import type { MemoryStore } from "../../src/store/memory.ts";
import { CALLER, replayed, type Service, service, SlowStore, type TestPlan } from "../support/runs.ts";
import { calls, hook, tool } from "../support/sessions.ts";
import { capturedIntervals, settle, shared, type SharedStore } from "./shared_store.ts";

Deno.test("a run that is being stored as waiting is not recovered by its own process", async () => {
  const release = Promise.withResolvers<string>();
  const one = service({
    plans: {
      slow: { tools: [tool("t", () => release.promise)], providers: [[calls(["t"]), "first"]] },
      next: { providers: [["second"]] },
    },
    store: shared,
  });
  const first = await one.post("slow");
  const recovered: string[][] = [];
  (one.store as SharedStore).committed = async (changes) => {
    const waits = changes.some((change) => "put" in change && change.put.index?.status === "queued");
    if (waits) recovered.push(await one.runs.recover());
  };
  const { session_id } = first;
  const next = await one.post("next", { session_id, if_busy: "queue" });
  release.resolve("ok");
  await settle();
  assertEquals(recovered, [[]]);
  assertEquals(next.current().status, "completed");
});

Deno.test("a waiting run whose process dies while it begins continues from the messages of the run before", async () => {
  const release = Promise.withResolvers<string>();
  const plans = {
    slow: { tools: [tool("t", () => release.promise)], providers: [[calls(["t"]), "first"]] },
    next: { providers: [["second"]] },
  };
  const one = service({ plans, store: shared });
  const first = await one.post("slow");
  const { session_id } = first;
  const next = await one.post("next", { session_id, if_busy: "queue" });
  let begins = false;
  (one.store as SharedStore).committing = (changes) => {
    begins ||= changes.some((change) =>
      "put" in change && change.put.key === `input/${next.id}` && change.put.value.surface !== null
    );
    const is_status = changes.length === 1 && "append" in changes[0]!;
    if (begins && !is_status) return new Promise(() => {}); // the process dies
  };
  release.resolve("ok");
  await settle();
  assertEquals(begins, true);
  await one.clock.advance(6_000);
  const other = service({ plans, beside: one, store: shared });
  assertEquals(await other.runs.recover(), [next.id]);
  assertEquals((await (await other.runs.handle(CALLER, next.id)).settled("end")).status, "completed");
  const { data: messages } = await other.runs.sessions.messages(CALLER, session_id);
  assertEquals(messages.map(({ role }) => role), [
    ...["user", "assistant", "tool", "assistant"],
    ...["user", "assistant"],
  ]);
  const { run_count } = await other.runs.sessions.get(CALLER, session_id);
  assertEquals(run_count, 2);
});

Deno.test("runs are not recovered while their sessions cannot be read, and then with all of their messages", async () => {
  const release = Promise.withResolvers<string>();
  const plans = {
    first: { providers: [["first"]] },
    slow: { tools: [tool("t", () => release.promise)], providers: [[calls(["t"]), "slow"]] },
    next: { providers: [["next"]] },
  };
  const one = service({ plans, store: shared });
  const { session_id } = await one.finish("first");
  const slow = await one.post("slow", { session_id });
  const next = await one.post("next", { session_id, if_busy: "queue" });
  await one.clock.advance(6_000); // without renewals: the process is dead
  const other = service({ plans, beside: one, store: shared });
  const get = other.store.get.bind(other.store);
  other.store.get = (kind, key) => {
    if (kind === "session") throw new Error("connection lost");
    return get(kind, key);
  };
  assertEquals([await other.runs.recover(), other.logs.map(({ event }) => event)], [
    [],
    ["run_not_recovered", "run_not_recovered"],
  ]);
  other.store.get = get;
  assertEquals((await other.runs.recover()).sort(), [slow.id, next.id].sort());
  release.resolve("ok");
  for (const { id } of [slow, next]) {
    const handle = await other.runs.handle(CALLER, id);
    assertEquals((await handle.settled("end")).status, "completed");
  }
  const { data: messages } = await other.runs.sessions.messages(CALLER, session_id);
  assertEquals(messages.filter(({ role }) => role === "user").length, 3);
});

Deno.test("a waiting run whose process dies after it began counts once in its session", async () => {
  const release = Promise.withResolvers<string>();
  const plans = (hangs: boolean) => ({
    slow: { tools: [tool("t", () => release.promise)], providers: [[calls(["t"]), "first"]] },
    next: {
      tools: [tool("u", () => hangs ? new Promise(() => {}) : Promise.resolve("ok"))],
      providers: [hangs ? [calls(["u"])] : ["second"]],
    },
  });
  const one = service({ plans: plans(true), store: shared });
  const first = await one.post("slow");
  const { session_id } = first;
  const next = await one.post("next", { session_id, if_busy: "queue" });
  release.resolve("ok");
  await settle();
  assertEquals(next.current().status, "running");
  await one.clock.advance(6_000);
  const other = service({ plans: plans(false), beside: one, store: shared });
  assertEquals(await other.runs.recover(), [next.id]);
  await (await other.runs.handle(CALLER, next.id)).settled("end");
  const { run_count } = await other.runs.sessions.get(CALLER, session_id);
  assertEquals(run_count, 2);
});

Deno.test("a server that stood still before it began a waiting run leaves it as another one has executed it", async () => {
  const release = Promise.withResolvers<string>();
  const plans = {
    slow: { tools: [tool("t", () => release.promise)], providers: [[calls(["t"]), "first"]] },
    next: { providers: [["second"]] },
  };
  const one = service({ plans, store: shared });
  const { session_id } = await one.post("slow");
  const next = await one.post("next", { session_id, if_busy: "queue" });
  const still = Promise.withResolvers<void>();
  (one.store as SharedStore).acquiring = () => still.promise;
  release.resolve("ok");
  await settle();
  await one.clock.advance(6_000);
  const other = service({ plans, beside: one, store: shared });
  assertEquals(await other.runs.recover(), [next.id]);
  assertEquals((await (await other.runs.handle(CALLER, next.id)).settled("end")).status, "completed");
  const log = await other.names(next.id);
  still.resolve();
  await settle();
  assertEquals(one.memory.get("run", next.id)?.value.status, "completed");
  await one.clock.advance(6_000);
  assertEquals([await other.runs.recover(), await other.names(next.id)], [[], log]);
});

Deno.test("an answer that a server which was taken for dead receives is one for the run that another one continues", async () => {
  const { restore } = capturedIntervals(); // no heartbeat says so
  try {
    const one = service({ plans: { asking: asking() }, store: shared });
    const run = await one.post("asking");
    const { approvals: [approval] } = await run.settled("attention");
    await one.clock.advance(6_000);
    const plans = { asking: { ...asking(), providers: [["done"]] } };
    const other = service({ plans, beside: one, store: shared });
    assertEquals(await other.runs.recover(), [run.id]);
    const continued = await other.runs.handle(CALLER, run.id);
    await settle();
    const decide = (server: Service) =>
      server.runs.decide(CALLER, run.id, approval!.id, { decision: "allow" });
    assertEquals((await decide(one)).status, "granted");
    assertEquals(await codeOf(() => decide(other)), "approval_already_resolved");
    other.runs.shareStore();
    await settle();
    assertEquals((await continued.settled("end")).status, "completed");
    await other.runs.close();
  } finally {
    restore();
  }
});

Deno.test("a server that was found dead leaves a run that waits for a person to the other one", async () => {
  const { restore } = capturedIntervals();
  try {
    const one = service({ plans: { asking: asking() }, store: shared });
    const run = await one.post("asking");
    const { approvals: [approval] } = await run.settled("attention");
    const ended = run.settled("end");
    await one.clock.advance(6_000);
    const plans = { asking: { ...asking(), providers: [["done"]] } };
    const other = service({ plans, beside: one, store: shared });
    assertEquals(await other.runs.recover(), [run.id]);
    await settle();
    assertEquals(await one.runs.recover(), []); // with its next heartbeat
    await settle();
    assertEquals(one.logs.map(({ event }) => event), ["leases_lost", "run_handed_over"]);
    assertEquals((await one.runs.get(CALLER, run.id)).status, "awaiting_approval");
    await other.runs.decide(CALLER, run.id, approval!.id, { decision: "allow" });
    await settle();
    assertEquals((await one.runs.get(CALLER, run.id)).status, "completed");
    await one.clock.advance(1_000);
    assertEquals((await ended).output_text, "done");
  } finally {
    restore();
  }
});

Deno.test("the open question of a cancelled run whose process died is denied once", async () => {
  const plan = { asking: { ...asking(), providers: [[calls(["t"]), "done"]] } };
  const one = service({ plans: plan, store: shared });
  const run = await one.post("asking");
  await run.settled("attention");
  (one.store as SharedStore).committed = (changes) => {
    const stored = changes.flatMap((change) => "append" in change ? change.entries as Entry[] : []);
    if (!stored.some(({ event }) => event === "cancel:requested")) return;
    (one.store as SharedStore).committing = () => new Promise(() => {}); // the process dies
  };
  void one.runs.cancel(CALLER, run.id, "graceful");
  await settle();
  assertEquals((await one.names(run.id)).at(-1), "cancel:requested");
  await one.clock.advance(6_000);
  const other = service({ plans: plan, beside: one, store: shared });
  assertEquals(await other.runs.recover(), [run.id]);
  const ended = await (await other.runs.handle(CALLER, run.id)).settled("end");
  const denials = (await other.entries(run.id)).filter(({ event }) => event === "approval:denied");
  assertEquals([ended.status, denials.map(({ data }) => data.reason)], ["cancelled", ["cancelled"]]);
  assertEquals((await other.runs.approvals(CALLER, run.id)).map(({ status }) => status), ["denied"]);
  assertEquals((await replayed(other, run.id)).equal, true);
});

Deno.test("a server that has left a run to another one carries out no command for it", async () => {
  const plan = {
    tools: [tool("t", () => Promise.resolve("ok"))],
    hooks: [hook("tool:pre", () => ({ action: "ask_user", approval_prompt: "May it?" }))],
  };
  const one = service({ plans: { p: { ...plan, providers: [[calls(["t"])]] } }, store: shared });
  const handle = await one.post("p");
  await settle();
  assertEquals(handle.current().status, "awaiting_approval");
  const drained = one.runs.drain(5_000);
  for (let tick = 0; tick < 10; tick++) await one.clock.advance(500);
  await drained;
  const other = service({ plans: { p: { ...plan, providers: [["done"]] } }, beside: one, store: shared });
  assertEquals(await other.runs.recover(), [handle.id]);
  const continued = await other.runs.handle(CALLER, handle.id);
  await settle();
  assertEquals(continued.current().status, "awaiting_approval");
  other.runs.shareStore();
  const { approvals } = continued.current();
  const answered = one.runs.decide(CALLER, handle.id, approvals[0]!.id, { decision: "allow" });
  answered.catch(() => {});
  for (let tick = 0; tick < 20; tick++) {
    await one.clock.advance(1_000);
    await settle();
  }
  assertEquals((await answered).status, "granted");
  assertEquals((await continued.settled("end")).status, "completed");
  await other.runs.close();
});

Deno.test("a session starts when another process has stored the end of its run but not yet released it", async () => {
  const one = service({ store: shared });
  const released = Promise.withResolvers<void>();
  (one.store as SharedStore).releasing = released.promise;
  const { session_id, settled } = await one.post("plain").then((run) => ({
    session_id: run.session_id,
    settled: run.settled("end"),
  }));
  await settled;
  const other = service({ beside: one, store: shared });
  const next = other.post("plain", { session_id });
  next.catch(() => {}); // asserted below
  await settle();
  released.resolve();
  await settle();
  await one.clock.advance(1_000);
  assertEquals((await (await next).settled("end")).status, "completed");
});

Deno.test("a queue of several pages starts in its order and loses no run", async () => {
  const release = Promise.withResolvers<string>();
  const one = service({
    plans: {
      slow: { tools: [tool("t", () => release.promise)], providers: [[calls(["t"]), "first"]] },
    },
    store: shared,
  });
  const { session_id } = await one.post("slow");
  (one.store as SharedStore).page = 2;
  const runs = [];
  for (const prompt of ["a", "b", "c", "d"]) {
    runs.push(await one.post("plain", { session_id, if_busy: "queue", prompt }));
  }
  release.resolve("ok");
  for (let round = 0; round < 5; round++) await settle();
  assertEquals(runs.map((run) => run.current().status), ["completed", "completed", "completed", "completed"]);
  const { data: messages } = await one.runs.sessions.messages(CALLER, session_id);
  const prompts = messages.filter(({ role }) => role === "user").map(({ content }) => content);
  assertEquals(prompts, ["hello", "a", "b", "c", "d"]);
});

Deno.test("a run that is being stored as waiting when the only server stops is cancelled", async () => {
  const one = service({
    plans: { slow: { tools: [tool("t", () => new Promise(() => {}))], providers: [[calls(["t"])]] } },
    store: (memory) => new SlowStore(memory),
  });
  const { session_id } = await one.post("slow");
  const next = one.post("plain", { session_id, if_busy: "queue" });
  const drained = one.runs.drain(5_000);
  for (let tick = 0; tick < 10; tick++) {
    await one.clock.advance(500);
    await settle();
  }
  await drained;
  assertEquals((await next).current().status, "cancelled");
});

Deno.test("close() leaves runs that it continues for a crashed server, or has found, to the next one", async () => {
  const plans = (answer: Promise<string>) => {
    const plan = { tools: [tool("t", () => answer)], providers: [[calls(["t"]), "done"]] };
    return { p: plan, q: plan };
  };
  const dead = service({ plans: plans(new Promise(() => {})), store: shared });
  const { id: continued } = await dead.post("p");
  await dead.clock.advance(6_000);
  let closed: Promise<void> | undefined;
  const slow = { providers: [[{ text: "slow", delay_ms: 60_000 }]] };
  const closing = {
    ...slow,
    get secrets() { // read when a run is restored
      closed = two.runs.close();
      return [];
    },
  };
  const two = service({ plans: { p: slow, q: closing }, beside: dead, store: shared });
  assertEquals(await two.runs.recover(), [continued]);
  const { id: own } = await two.post("p");
  const found = [(await dead.post("q")).id, (await dead.post("q")).id];
  await dead.clock.advance(6_000);
  assertEquals(await two.runs.recover(), []);
  await closed;
  await settle();
  const statuses = [continued, ...found, own].map((id) => dead.memory.get("run", id)?.value.status);
  assertEquals(statuses, ["running", "running", "running", "cancelled"]);
  const says = two.logs.map(({ event, facts }) => [event, facts.run_id]);
  assertEquals(says, [["run_continued", continued], ["run_handed_over", continued]]);
  const three = service({ plans: plans(Promise.resolve("ok")), beside: dead, store: shared });
  assertEquals((await three.runs.recover()).sort(), [continued, ...found].sort());
  assertEquals((await (await three.runs.handle(CALLER, continued)).settled("end")).status, "completed");
});

Deno.test("recovery reads the values only of runs whose process is gone", async () => {
  const held: TestPlan = { tools: [tool("t", () => new Promise(() => {}))], providers: [[calls(["t"])]] };
  const one = service({ plans: { held }, store: shared });
  const { session_id, id } = await one.post("held");
  const queued = await one.post("held", { session_id, if_busy: "queue" });
  const read: string[] = [];
  const reading = (memory: MemoryStore) =>
    Object.assign(shared(memory), {
      get: (kind: string, key: string) => {
        read.push(key);
        return Promise.resolve(memory.get(kind, key));
      },
    });
  const other = service({ plans: { held }, beside: one, store: reading });
  assertEquals([await other.runs.recover(), read], [[], []]);
  // as an older version stored it
  const { index: _, ...input } = one.memory.get("input", `input/${id}`)!;
  one.memory.commit([{ put: { ...input, index: { open: "true" } } }]);
  assertEquals(await other.runs.recover(), []);
  await one.clock.advance(6_000);
  assertEquals((await other.runs.recover()).toSorted(), [id, queued.id].toSorted());
});

Deno.test("a run that a failing store does not let continue is tried again, and is not interrupted", async () => {
  const used: string[] = [];
  const plan = (hangs: boolean): TestPlan => ({
    providers: [hangs ? [calls(["t"]), { text: "late", delay_ms: 60_000 }] : ["done"]],
    tools: [tool("t", () => {
      used.push("t");
      return Promise.resolve("ok");
    })],
  });
  const one = service({ plans: { plan: plan(true) }, store: shared });
  const run = await one.post("plan");
  await settle();
  await one.clock.advance(6_000);
  const other = service({ plans: { plan: plan(false) }, beside: one, store: shared });
  for (let failures = 1; failures <= 4; failures++) {
    (other.store as SharedStore).committing = () => Promise.reject(new Error("disk full"));
    assertEquals(await other.runs.recover(), []);
  }
  assertEquals(other.logs.map(({ event }) => event), Array(4).fill("run_not_recovered"));
  (other.store as SharedStore).committing = () => {};
  assertEquals(await other.runs.recover(), [run.id]);
  const ended = await (await other.runs.handle(CALLER, run.id)).settled("end");
  assertEquals([ended.status, ended.output_text, used], ["completed", "done", ["t"]]);
});

Deno.test("one search finds all runs of a dead server, however many they are", async () => {
  const limits = { max_concurrent_runs: 1_000, max_runs_per_key: 1_000 };
  const one = service({ plans: { asking: asking() }, limits, store: shared });
  const runs = [];
  for (let count = 0; count < 100; count++) runs.push((await one.post("asking")).id);
  await one.clock.advance(6_000);
  const plans = { asking: { ...asking(), providers: [["done"]] } };
  const other = service({ plans, limits, beside: one, store: shared });
  assertEquals((await other.runs.recover()).toSorted(), runs.toSorted());
});

/** Returns the calls of the store in twenty seconds of a server with runs that wait, and of an idle one. */
async function callsWhileWaiting(runs: number, tick: () => void): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  const stores: SharedStore[] = [];
  const counting = (memory: MemoryStore) => {
    const store = shared(memory);
    stores.push(store);
    return new Proxy(store, {
      get(target, name) {
        const value = Reflect.get(target, name, target);
        if (typeof value !== "function") return value;
        return (...args: unknown[]) => {
          counts[String(name)] = (counts[String(name)] ?? 0) + 1;
          return Reflect.apply(value, target, args);
        };
      },
    });
  };
  const held: TestPlan = { tools: [tool("t", () => new Promise(() => {}))], providers: [[calls(["t"])]] };
  const options = {
    plans: { held, asking: asking() },
    limits: { max_concurrent_runs: 500, max_runs_per_key: 500 },
  };
  const one = service({ ...options, store: counting });
  for (let count = 0; count < runs; count++) {
    await (await one.post("asking")).settled("attention");
    const { session_id } = await one.post("held");
    await one.post("held", { session_id, if_busy: "queue" });
  }
  await settle();
  const other = service({ ...options, beside: one, store: counting });
  for (const server of [one, other]) server.runs.shareStore();
  for (let second = 0; second < 25; second++) {
    await settle();
    if (second === 5) { for (const name of Object.keys(counts)) delete counts[name]; }
    for (const { living } of stores) living.clear(); // both live
    tick();
    await settle();
    await one.clock.advance(1_000);
  }
  await settle();
  const found = { ...counts };
  for (const server of [one, other]) void server.runs.close();
  return found;
}

Deno.test("a server asks its store as often with many running and waiting runs as with two", async () => {
  const { tick, restore } = capturedIntervals();
  try {
    const few = await callsWhileWaiting(2, tick);
    assertEquals(await callsWhileWaiting(60, tick), few);
    assertEquals([few.commit, few.acquire, few.get], [undefined, undefined, undefined]);
  } finally {
    restore();
  }
});

Deno.test("a server that stood still behind the entry of a call does not call: another one has the run", async () => {
  const { restore } = capturedIntervals();
  const dateNow = Date.now;
  try {
    const used: string[] = [];
    const plan = (where: string, providers: NonNullable<TestPlan["providers"]>): TestPlan => ({
      providers,
      tools: [tool("t", () => {
        used.push(where);
        return Promise.resolve("ok");
      })],
    });
    const one = service({ plans: { p: plan("one", [[calls(["t"]), "done"]]) }, store: shared });
    let taken: string[] | undefined;
    (one.store as SharedStore).committed = async (changes) => {
      const entries = changes.flatMap((change) => "append" in change ? change.entries as Entry[] : []);
      if (taken !== undefined || !entries.some(({ event }) => event === "tool:pre")) return;
      taken = [];
      Date.now = () => dateNow() + 6_000; // as after SIGCONT
      await one.clock.advance(6_000);
      const other = service({ plans: { p: plan("other", [["done"]]) }, beside: one, store: shared });
      taken = await other.runs.recover();
    };
    const run = await one.post("p");
    const ended = run.settled("end");
    await settle();
    await one.clock.advance(1_000); // it looks for the end elsewhere
    assertEquals((await ended).status, "completed");
    assertEquals([taken, used], [[run.id], []]); // its call is answered as interrupted
    assertEquals(one.logs.map(({ event }) => event).slice(0, 1), ["leases_lost"]);
  } finally {
    Date.now = dateNow;
    restore();
  }
});
