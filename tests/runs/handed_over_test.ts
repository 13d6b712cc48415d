/** A server that stops while other processes share its store: it leaves its runs to them. */
import type { Entry } from "../../src/kernel/host.ts";
import type { RunStatus } from "../../src/runs/types.ts";
import type { MemoryStore } from "../../src/store/memory.ts";
import { assertEquals } from "../assert.ts";
import { CALLER, service, SlowStore, type TestPlan } from "../support/runs.ts";
import { calls, hook, tool, until } from "../support/sessions.ts";
import { settle, shared, type SharedStore } from "./shared_store.ts";

/** A store that other processes may share. */
const store = (memory: MemoryStore) =>
  Object.assign(new SlowStore(memory), {
    changed: (signal: AbortSignal) =>
      new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true })),
  });

/**
 * Starts a run that calls the tool `t`, stops its server once `is_reached`, and lets another one continue the
 * run.
 */
async function handOver(plan: TestPlan, is_reached: (status: string) => boolean) {
  const one = service({ plans: { p: { ...plan, providers: [[calls(["t"])]] } }, store });
  const handle = await one.post("p");
  await until(() => is_reached(handle.current().status));
  const drained = one.runs.drain(5_000);
  for (let tick = 0; tick < 10; tick++) await one.clock.advance(500);
  await drained;
  const other = service({ plans: { p: { ...plan, providers: [["done"]] } }, beside: one, store });
  assertEquals(await other.runs.recover(), [handle.id]);
  return { one, other, handle, continued: await other.runs.handle(CALLER, handle.id) };
}

Deno.test("drain() leaves a run whose tool works: the call is answered as interrupted and not repeated", async () => {
  const ran: string[] = [];
  const { one, other, continued } = await handOver({
    tools: [tool("t", (_input) => {
      ran.push("t");
      return new Promise(() => {}); // until the process ends
    })],
  }, () => ran.length > 0);
  assertEquals((await continued.settled("end")).status, "completed");
  const entries = await other.entries(continued.id);
  assertEquals(entries.map(({ seq }) => seq), entries.map((_, index) => index + 1));
  assertEquals(ran, ["t"]);
  assertEquals(entries.filter(({ event }) => event.startsWith("cancel:")), []);
  const results = entries.filter(({ event }) => event === "tool:post" || event === "tool:error");
  assertEquals(results.map(({ data }) => (data.error as { type: string }).type), ["interrupted"]);
  assertEquals(one.logs, [{ level: "info", event: "run_handed_over", facts: { run_id: continued.id } }]);
  assertEquals(other.logs, [{ level: "info", event: "run_continued", facts: { run_id: continued.id } }]);
});

Deno.test("drain() leaves an approval open: it is answered at the server that continues the run", async () => {
  const ran: string[] = [];
  const { other, handle, continued } = await handOver({
    tools: [tool("t", () => {
      ran.push("t");
      return Promise.resolve("ok");
    })],
    hooks: [hook("tool:pre", () => ({ action: "ask_user", approval_prompt: "May it?" }))],
  }, (status) => status === "awaiting_approval");
  const [approval] = handle.current().approvals;
  await until(() => continued.current().status === "awaiting_approval");
  await other.runs.decide(CALLER, continued.id, approval!.id, { decision: "allow" });
  assertEquals((await continued.settled("end")).status, "completed");
  assertEquals(ran, ["t"]);
});

Deno.test("list() knows which runs of another server await an approval", async () => {
  const hooks = [hook("tool:pre", () => ({ action: "ask_user", approval_prompt: "May it?" }))];
  const plan: TestPlan = {
    hooks,
    tools: [tool("t", () => Promise.resolve("ok"))],
    providers: [[calls(["t"])]],
  };
  const one = service({ plans: { p: plan }, store });
  const handle = await one.post("p");
  await until(() => handle.current().status === "awaiting_approval");
  const other = service({ beside: one, store });
  const listed = async (status: RunStatus) =>
    (await other.runs.list(CALLER, { status })).data.map(({ id, approvals }) => [id, approvals.length]);
  assertEquals(await listed("awaiting_approval"), [[handle.id, 1]]);
  assertEquals(await listed("running"), []);
});

Deno.test("drain() stops a run, and frees its session, although the store takes its last entries no more", async () => {
  const stopped = Promise.withResolvers<string>();
  const waits: TestPlan = {
    providers: [[calls(["t"])]],
    tools: [tool("t", (_input, call) => {
      call!.signal.addEventListener("abort", () => stopped.resolve("stopped"));
      void call!.progress!("half");
      return new Promise(() => {});
    })],
  };
  const one = service({ plans: { waits }, store });
  const { id } = await one.post("waits");
  await until(() => one.memory.entries(id, 0, 100)!.some((entry) => (entry as Entry).event === "tool:pre"));
  (one.store as SlowStore).failure = new Error("disk full");
  const drained = one.runs.drain(5_000);
  for (let tick = 0; tick < 10; tick++) await one.clock.advance(500);
  await drained;
  assertEquals(await stopped.promise, "stopped");
  const other = service({ plans: { waits: { ...waits, providers: [["done"]] } }, beside: one, store });
  assertEquals(await other.runs.recover(), [id]);
  assertEquals((await (await other.runs.handle(CALLER, id)).settled("end")).status, "completed");
});

Deno.test("drain() stops a run, and ends in time, although the store does not answer; others get the run once it has", async () => {
  const stopped = Promise.withResolvers<string>();
  let report = () => {};
  const waits: TestPlan = {
    providers: [[calls(["t"])]],
    tools: [tool("t", (_input, call) => {
      call!.signal.addEventListener("abort", () => stopped.resolve("stopped"));
      report = () => void call!.progress!("half");
      return new Promise(() => {});
    })],
  };
  const one = service({ plans: { waits }, store: shared });
  const answer = Promise.withResolvers<void>();
  const { id } = await one.post("waits");
  await settle();
  (one.store as SharedStore).committing = () => answer.promise;
  report();
  let has_drained = false;
  const drained = one.runs.drain(5_000).then(() => has_drained = true);
  for (let tick = 0; tick < 12; tick++) {
    await one.clock.advance(500);
    await settle();
  }
  assertEquals(has_drained, true);
  await drained;
  assertEquals(await stopped.promise, "stopped");
  const other = service({
    plans: { waits: { ...waits, providers: [["done"]] } },
    beside: one,
    store: shared,
  });
  one.memory.renew("session/ses_1", "proc_1", 5_000); // as its process does
  assertEquals([await other.runs.recover(), one.logs], [[], []]);
  answer.resolve();
  await settle();
  assertEquals(one.logs, [{ level: "info", event: "run_handed_over", facts: { run_id: id } }]);
  assertEquals(await other.runs.recover(), [id]);
  assertEquals((await (await other.runs.handle(CALLER, id)).settled("end")).status, "completed");
  assertEquals((await other.names(id)).includes("user:notification"), true);
});
