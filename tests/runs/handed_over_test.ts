/** A server that stops while other processes share its store: it leaves its runs to them. */
import type { Entry } from "../../src/kernel/host.ts";
import type { RunStatus } from "../../src/runs/types.ts";
import { assertEquals } from "../assert.ts";
import { CALLER, service, type TestPlan } from "../support/runs.ts";
import { calls, hook, tool, until } from "../support/sessions.ts";
import { settle, shared, type SharedStore } from "./shared_store.ts";

Deno.test("list() knows which runs of another server await an approval", async () => {
  const hooks = [hook("tool:pre", () => ({ action: "ask_user", approval_prompt: "May it?" }))];
  const plan: TestPlan = {
    hooks,
    tools: [tool("t", () => Promise.resolve("ok"))],
    providers: [[calls(["t"])]],
  };
  const one = service({ plans: { p: plan }, store: shared });
  const handle = await one.post("p");
  await until(() => handle.current().status === "awaiting_approval");
  const other = service({ beside: one, store: shared });
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
  const one = service({ plans: { waits }, store: shared });
  const { id } = await one.post("waits");
  await until(() => one.memory.entries(id, 0, 100)!.some((entry) => (entry as Entry).event === "tool:pre"));
  (one.store as SharedStore).failure = new Error("disk full");
  const drained = one.runs.drain(5_000);
  for (let tick = 0; tick < 10; tick++) await one.clock.advance(500);
  await drained;
  assertEquals(await stopped.promise, "stopped");
  const other = service({
    plans: { waits: { ...waits, providers: [["done"]] } },
    beside: one,
    store: shared,
  });
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
  one.memory.heartbeat("proc_1", 5_000); // as its process does
  assertEquals([await other.runs.recover(), one.logs], [[], []]);
  answer.resolve();
  await settle();
  assertEquals(one.logs, [{ level: "info", event: "run_handed_over", facts: { run_id: id } }]);
  assertEquals(await other.runs.recover(), [id]);
  assertEquals((await (await other.runs.handle(CALLER, id)).settled("end")).status, "completed");
  assertEquals((await other.names(id)).includes("user:notification"), true);
});
