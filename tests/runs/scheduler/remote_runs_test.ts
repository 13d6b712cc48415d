import { setImmediate } from "node:timers/promises";
import { RemoteRuns } from "../../../src/runs/scheduler/remote_runs.ts";
import type { RunsDeps } from "../../../src/runs/ports.ts";
import { FakeClock } from "../../../src/testing/clocks.ts";
import { MemoryStore } from "../../../src/store/memory.ts";
import { assertEquals } from "../../assert.ts";

const DAY_MS = 24 * 3_600_000;

Deno.test("RemoteRuns.send() reaches a server whose clock is two days ahead", async () => {
  const [sender, receiver] = [new FakeClock(), new FakeClock()];
  await receiver.advance(2 * DAY_MS);
  let looks = 0;
  const changed = async () => {
    await setImmediate();
    if (++looks === 200) await sender.advance(15_000); // the timeout of a command
  };
  const store = Object.assign(new MemoryStore({ now: () => receiver.now() }), { changed });
  store.commit([{
    put: { kind: "run", key: "run_1", namespace: "a", value: {}, index: { open: "true" } },
  }]);
  const handled: unknown[] = [];
  const remote = (clock: FakeClock, is_active: boolean) =>
    new RemoteRuns(
      { store, clock, newId: (prefix: string) => `${prefix}_1`, log: () => {} } as unknown as RunsDeps, // all it uses
      () => is_active,
      (run_id, command) => {
        handled.push([run_id, command]);
        return Promise.resolve();
      },
    );
  const executing = remote(receiver, true);
  executing.start(() => {}, () => false);
  const command = { kind: "steer", text: "faster" } as const;
  await remote(sender, false).send("run_1", command);
  executing.stop();
  assertEquals(handled, [["run_1", command]]);
});
