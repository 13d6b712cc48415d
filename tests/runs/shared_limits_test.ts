/** The limit of a caller's concurrent runs over all servers of a store. */
import { assertEquals } from "../assert.ts";
import { asking, codeOf } from "../support/asking_runs.ts";
import { CALLER, type Service, service, STRANGER } from "../support/runs.ts";
import { settle, shared } from "./shared_store.ts";

const OPTIONS = {
  plans: { asking: asking() },
  store: shared,
  limits: { max_runs_per_key: 2 },
};

/** Returns two servers on one store, where a caller may have two runs at once. */
function two(): [Service, Service] {
  const one = service(OPTIONS);
  return [one, service({ ...OPTIONS, beside: one })];
}

/** Allows what a run asks for, on a server; resolves once the run has ended. */
async function finish({ runs }: Service, run_id: string): Promise<void> {
  const handle = await runs.handle(CALLER, run_id);
  const { approvals: [approval] } = await handle.settled("attention");
  await runs.decide(CALLER, run_id, approval!.id, { decision: "allow" });
  assertEquals((await handle.settled("end")).status, "completed");
}

Deno.test("two servers start runs of a caller at once, and never more than the limit", async () => {
  const [one, other] = two();
  const posts = Array.from({ length: 8 }, (_, index) => (index % 2 ? one : other).post("asking"));
  const all = await Promise.allSettled(posts);
  const errors = all.flatMap((one) => one.status === "rejected" ? one.reason : []);
  assertEquals(errors.map(({ code }) => code), Array(6).fill("too_many_runs"));
  assertEquals(
    new Set(errors.map(({ message }) => message)),
    new Set(["Cannot start a run: max_runs_per_key is 2"]),
  );
  for (const { post } of [one, other]) {
    assertEquals(await codeOf(() => post("plain")), "too_many_runs");
    assertEquals((await (await post("plain", {}, {}, STRANGER)).settled("end")).status, "completed");
    assertEquals((await one.runs.list(CALLER, { status: "awaiting_approval" })).data.length, 2);
  }
});

Deno.test("a run that replaces one of its caller on another server does not count twice, and counts then", async () => {
  const [one, other] = two();
  const first = await one.post("asking");
  const second = await one.post("asking");
  await settle();
  const { session_id } = first;
  const replacing = await other.post("asking", { session_id });
  assertEquals([replacing.current().status, await codeOf(() => other.post("asking", { session_id }))], [
    "queued",
    "too_many_runs",
  ]);
  assertEquals(await codeOf(() => other.post("plain")), "too_many_runs");
  await one.runs.cancel(CALLER, first.id, "graceful");
  await first.settled("end");
  assertEquals(await codeOf(() => other.post("plain")), "too_many_runs");
  await finish(one, second.id);
  assertEquals((await other.finish("plain")).status, "completed");
});

Deno.test("the runs of a dead server count until another one has ended them, and no longer", async () => {
  const one = service(OPTIONS);
  const plans = { asking: { ...asking(), providers: [["done"]] }, fresh: asking() };
  const other = service({ ...OPTIONS, plans, beside: one });
  const runs = [await one.post("asking"), await one.post("asking")];
  await settle();
  await one.clock.advance(6_000); // without heartbeats: it is dead
  assertEquals(await codeOf(() => other.post("plain")), "too_many_runs");
  assertEquals((await other.runs.recover()).length, 2);
  assertEquals(await codeOf(() => other.post("plain")), "too_many_runs");
  for (const { id } of runs) {
    await finish(other, id);
    await other.post("fresh"); // in its place
    assertEquals(await codeOf(() => other.post("plain")), "too_many_runs");
  }
});

Deno.test("a run that was refused for the limit of its caller leaves nothing", async () => {
  const [one, other] = two();
  for (let count = 0; count < 2; count++) await one.post("asking");
  const { session_id } = await other.post("plain", {}, {}, STRANGER);
  assertEquals(await codeOf(() => other.post("plain")), "too_many_runs");
  const before = other.memory.list("run", { namespace: CALLER.namespace, limit: 100 }).records.length;
  assertEquals([before, (await other.runs.list(CALLER, {})).data.length], [2, 2]);
  assertEquals(other.memory.free(["session/ses_1b", "session/ses_2b"]).length, 2);
  assertEquals(
    (await (await other.post("plain", { session_id }, {}, STRANGER)).settled("end")).status,
    "completed",
  );
});
