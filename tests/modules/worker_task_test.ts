import { inWorker, type TaskOptions, type WorkerFile } from "../../modules/worker/worker_task.ts";
import { assertEquals, assertRejects } from "../assert.ts";

// deno-lint-ignore no-explicit-any -- the worker returns what it was sent
const FILE: WorkerFile<Record<string, unknown>, any> = {
  source: new URL("../fixtures/task_worker.ts", import.meta.url),
  compiled: "",
  inline: () => Promise.resolve("inline"),
};

function ask(input: Record<string, unknown>, options: Partial<TaskOptions> = {}): Promise<unknown> {
  return inWorker(FILE, input, { timeout_ms: 600_000, ...options });
}

Deno.test("inWorker() resolves to the output, or rejects with the message of what the function throws", async () => {
  assertEquals(await ask({ say: { a: [1, "b"] } }), { a: [1, "b"] });
  await assertRejects(() => ask({ fail: "no such page" }), Error, "no such page");
});

Deno.test("inWorker() gives the function no permission of this program", async () => {
  await assertRejects(() => ask({ variable: "PATH" }), Error, "Requires env access");
});

Deno.test("inWorker() runs the function here where the file of the worker is not there", async () => {
  const missing = { ...FILE, source: new URL("../fixtures/no_such_worker.ts", import.meta.url) };
  assertEquals(await inWorker(missing, { say: 1 }, { timeout_ms: 600_000 }), "inline");
});

Deno.test("inWorker() ends a function that never ends, by its time or by the signal", async () => {
  await assertRejects(() => ask({ loops: true }, { timeout_ms: 20 }), Error, "it took more than 0.02 s");
  const controller = new AbortController();
  const endless = ask({ loops: true }, { signal: controller.signal });
  controller.abort(new Error("stopped"));
  await assertRejects(() => endless, Error, "stopped");
  await assertRejects(() => ask({ say: 1 }, { signal: controller.signal }), Error, "stopped");
});

Deno.test("inWorker() serves all in turn, and one that is given up while it waits takes no place", async () => {
  const controllers = [1, 2, 3].map(() => new AbortController());
  const endless = controllers.map(({ signal }) => ask({ loops: true }, { signal }));
  const waiting = [1, 2, 3, 4].map((say) => ask({ say }));
  const settled = Promise.allSettled(endless);
  controllers[2]!.abort(new Error("it waits"));
  controllers[0]!.abort(new Error("it runs"));
  assertEquals(await Promise.all(waiting), [1, 2, 3, 4]);
  controllers[1]!.abort(new Error("it runs too"));
  const reasons = (await settled).map((result) => result.status === "rejected" && result.reason.message);
  assertEquals(reasons, ["it runs", "it runs too", "it waits"]);
});
