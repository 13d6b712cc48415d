/** Lists of runs: they answer from stored records, also for the runs of other processes. */
import type { MemoryStore } from "../../src/store/memory.ts";
import type { RunStatus } from "../../src/runs/types.ts";
import { assertEquals } from "../assert.ts";
import { asking } from "../support/asking_runs.ts";
import { CALLER, immediate, service, SlowStore, type TestPlan } from "../support/runs.ts";
import { calls, hook, tool } from "../support/sessions.ts";

/** A store that has no logs to read. */
class RecordStore extends SlowStore {
  override entries(): never {
    throw new Error("a log was read");
  }
}

const records = (memory: MemoryStore) => new RecordStore(memory);

Deno.test("list() has the status of another process's run, and filters by it, without its log", async () => {
  const answered = Promise.withResolvers<string>();
  const plan = { ...asking(), tools: [tool("t", () => answered.promise)] };
  const one = service({ plans: { asking: plan }, store: (memory) => new SlowStore(memory) });
  const other = service({ beside: one, store: records });
  const list = async (status: RunStatus) =>
    (await other.runs.list(CALLER, { status })).data.map((run) => [run.id, run.status, run.approvals.length]);
  const run = await one.post("asking");
  const { id } = run;
  const { approvals: [approval] } = await run.settled("attention");
  assertEquals(await list("awaiting_approval"), [[id, "awaiting_approval", 1]]);
  assertEquals(await list("running"), []);
  await one.runs.decide(CALLER, id, approval!.id, { decision: "allow" });
  await immediate();
  assertEquals(await list("awaiting_approval"), []);
  assertEquals(await list("running"), [[id, "running", 0]]);
  answered.resolve("ok");
  await run.settled("end");
  assertEquals(await list("running"), []);
  assertEquals(await list("completed"), [[id, "completed", 0]]);
});

Deno.test("list() has every pending approval of another process's run", async () => {
  const plan = {
    providers: [[calls(["t", { n: 1 }], ["t", { n: 2 }]), "done"]],
    tools: [tool("t")],
    hooks: [hook("tool:pre", () => ({ action: "ask_user" as const, approval_prompt: "Allow t?" }))],
  };
  const one = service({ plans: { asking: plan }, store: (memory) => new SlowStore(memory) });
  const other = service({ beside: one, store: records });
  const pending = async () => (await other.runs.list(CALLER, {})).data[0]!.approvals.map(({ id }) => id);
  const run = await one.post("asking");
  await run.settled("attention");
  await immediate();
  const [first, second] = run.current().approvals;
  assertEquals(await pending(), [first!.id, second!.id]);
  await one.runs.decide(CALLER, run.id, first!.id, { decision: "allow" });
  assertEquals(await pending(), [second!.id]);
  await one.runs.decide(CALLER, run.id, second!.id, { decision: "allow" });
  assertEquals(await pending(), []);
  await run.settled("end");
});

Deno.test("get() and approvals() of another process's run read each part of its log once, and no history twice", async () => {
  const plan: TestPlan = {
    ...asking(),
    providers: [[calls(["t", { a: 1 }]), calls(["t", { a: 2 }]), "done"]],
  };
  const one = service({ plans: { asking: plan }, store: (memory) => new SlowStore(memory) });
  const read: number[] = [];
  class CountingStore extends SlowStore {
    override async entries(...args: Parameters<SlowStore["entries"]>): ReturnType<SlowStore["entries"]> {
      const entries = await super.entries(...args);
      read.push(...(entries ?? []).map(({ seq }) => seq));
      return entries;
    }
  }
  const other = service({ beside: one, store: (memory) => new CountingStore(memory) });
  const run = await one.post("asking");
  const { id } = run;
  for (let round = 1; round <= 2; round++) {
    const now = await run.settled("attention");
    assertEquals((await other.runs.get(CALLER, id)).approvals, now.approvals);
    assertEquals((await other.runs.get(CALLER, id)).turn_count, round);
    const approvals = await other.runs.approvals(CALLER, id);
    assertEquals([approvals, approvals.length], [await one.runs.approvals(CALLER, id), round]);
    approvals[0]!.status = "denied"; // of the caller only
    assertEquals(read, Array.from(read, (_, index) => index + 1));
    await one.runs.decide(CALLER, id, approvals.at(-1)!.id, { decision: "allow" });
  }
  const ended = await run.settled("end");
  const all = await Promise.all([1, 2, 3].map(() => other.runs.approvals(CALLER, id)));
  assertEquals(all.map((some) => some.map(({ status }) => status)), Array(3).fill(["granted", "granted"]));
  assertEquals(await other.runs.get(CALLER, id), ended);
});
