import type { AdmissionSlot } from "../../../src/runs/run/run_options.ts";
import { Admission, CallerSlots } from "../../../src/runs/scheduler/admission.ts";
import { HeldLeases } from "../../../src/runs/scheduler/leases.ts";
import type { PreampError } from "../../../src/sdk/errors.ts";
import { FakeClock } from "../../../src/testing/clocks.ts";
import { MemoryStore } from "../../../src/store/memory.ts";
import { assertEquals, assertRejects } from "../../assert.ts";
import { CALLER, STRANGER } from "../../support/runs.ts";

const never = () => Promise.resolve(false);
const always = () => Promise.resolve(true);

/**
 * Calls `body` with the admissions of processes that share a store, with two runs at once for each caller.
 */
async function withProcesses(
  body: (admissions: readonly [Admission, Admission], clock: FakeClock) => Promise<void>,
): Promise<void> {
  const clock = new FakeClock();
  const store = new MemoryStore({ now: () => clock.now() });
  const held = ["one", "two"].map((owner) =>
    new HeldLeases({ store, clock, newId: () => owner, log: () => {} })
  );
  const limits = { max_concurrent_runs: 64, max_runs_per_key: 2 };
  const [one, two] = held.map((leases) => new Admission(() => limits, new CallerSlots(leases), clock));
  try {
    await body([one!, two!], clock); // one for each of the two owners
  } finally {
    await one!.close();
    await two!.close();
    for (const leases of held) leases.close();
  }
}

/** Reserves and counts a slot; resolves to null when the caller has none left. */
async function admit(admission: Admission, session_id: string, replaces = never, caller = CALLER) {
  let slot: AdmissionSlot | undefined;
  try {
    slot = admission.reserve(caller, session_id, "reject");
    await admission.count(slot, replaces);
    return slot;
  } catch (error) {
    if (slot) await admission.release(slot);
    assertEquals((error as PreampError).code, "too_many_runs");
    return null;
  }
}

Deno.test("Admission counts the runs of a caller in all processes, also of concurrent requests", () =>
  withProcesses(async ([one, two]) => {
    const all = [one, two, one, two, two].map((admission, index) => admit(admission, `s${index}`));
    const admitted = (await Promise.all(all)).map((slot, index) => ({ slot, index }))
      .filter((one): one is { slot: AdmissionSlot; index: number } => one.slot !== null);
    assertEquals(admitted.length, 2);
    assertEquals((await admit(two, "foreign", never, STRANGER)) !== null, true);
    for (const { slot, index } of admitted) await [one, two, one, two, two][index]!.release(slot);
    assertEquals([await admit(two, "a"), await admit(two, "b")].includes(null), false);
    assertEquals(await admit(one, "c"), null);
  }));

Deno.test("Admission admits a run that replaces another at the limit, and counts it when that one has ended", () =>
  withProcesses(async ([one, two], clock) => {
    const first = await admit(one, "a");
    const second = await admit(one, "b");
    const replacing = await admit(two, "a", always);
    assertEquals([first?.taken !== null, replacing?.taken], [true, null]);
    await one.release(first!);
    await clock.advance(1_000);
    assertEquals(typeof replacing?.taken, "string");
    assertEquals(await admit(one, "c"), null);
    const here = await admit(one, "b", always);
    await one.release(second!); // its slot is inherited
    assertEquals([typeof here?.taken, await admit(two, "d")], ["string", null]);
    await one.release(here!);
    assertEquals((await admit(two, "d")) !== null, true);
  }));

Deno.test("Admission counts a recovered run when its caller has a slot again", () =>
  withProcesses(async ([one, two], clock) => {
    const slots = [await admit(one, "a"), await admit(one, "b")];
    const recovered = two.reserveAdmitted(CALLER, "c");
    await clock.advance(3_000);
    assertEquals(recovered.taken, null);
    await one.release(slots[0]!);
    await clock.advance(1_000);
    assertEquals(typeof recovered.taken, "string");
    const error = await assertRejects(() => one.count(one.reserve(CALLER, "d", "queue"), never));
    assertEquals(error.message, "Cannot start a run: max_runs_per_key is 2");
  }));

Deno.test("Admission takes no slot for a run of a crashed process after close()", () =>
  withProcesses(async ([one, two], clock) => {
    await one.close();
    one.reserveAdmitted(CALLER, "a");
    await clock.advance(2_000);
    const admitted = [await admit(two, "b"), await admit(two, "c")];
    assertEquals(admitted.includes(null), false);
  }));
