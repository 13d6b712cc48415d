import { setImmediate } from "node:timers";
import { errorCode } from "../../../src/sdk/errors.ts";
import { createApp } from "../../../src/server/app.ts";
import { ProcessLoad } from "../../../src/server/middleware/shed_load.ts";
import { assertEquals, assertMatch, assertRejects } from "../../assert.ts";
import { testRuntime } from "../../support/http.ts";

/** A process whose clock, turns and heap the test sets. */
function controlled() {
  const process = { now_ms: 0, part: 0.1, turns: [] as (() => void)[] };
  const load = new ProcessLoad({
    now: () => process.now_ms,
    nextTurn: (then) => process.turns.push(then),
    heapPart: () => process.part,
  });
  const turn = () => process.turns.splice(0).forEach((then) => then());
  return { process, load, turn };
}

Deno.test("ProcessLoad takes work until a turn of the event loop takes more than a second", () => {
  const { process, load, turn } = controlled();
  assertEquals(load.reason(), null);
  process.now_ms = 1_000;
  assertEquals(load.reason(), null);
  process.now_ms = 1_001;
  assertEquals(load.reason(), "its event loop is 1.0 s late");
  turn();
  process.now_ms = 5_000;
  assertEquals(load.reason(), "its event loop is 1.0 s late"); // the turn before this one; this one is asked for
  turn();
  assertEquals(load.reason(), null);
});

Deno.test("ProcessLoad asks for one turn at a time, and for none while it is not asked", () => {
  const { process, load, turn } = controlled();
  for (let time = 0; time < 3; time++) load.reason();
  assertEquals(process.turns.length, 1);
  turn();
  assertEquals(process.turns.length, 0);
});

Deno.test("ProcessLoad takes no work while the heap is above 80 %, and measures it now and then", () => {
  const { process, load } = controlled();
  process.part = 0.81;
  assertEquals(load.reason(), "81 % of its memory are used");
  process.part = 0.8;
  assertEquals(load.reason(), "81 % of its memory are used");
  process.now_ms += 100;
  assertEquals(load.reason(), null);
});

Deno.test("ProcessLoad lets eight runs begin in a turn, and the others in order in later ones", async () => {
  const { load, turn } = controlled();
  const begun: number[] = [];
  const all = Array.from({ length: 20 }, (_, number) => load.turn().then(() => begun.push(number)));
  for (const expected of [8, 16, 20]) {
    await new Promise((resolve) => setImmediate(resolve));
    assertEquals(begun, Array.from({ length: expected }, (_, number) => number));
    turn();
  }
  await Promise.all(all);
});

Deno.test("ProcessLoad refuses a run that has waited ten seconds for its turn", async () => {
  const { process, load, turn } = controlled();
  const all = Array.from({ length: 9 }, () => load.turn());
  await Promise.all(all.slice(0, 8));
  process.now_ms = 10_001;
  turn();
  const error = await assertRejects(() => all[8]!);
  assertEquals(errorCode(error), "overloaded");
});

Deno.test("an overloaded server refuses runs with 503 and Retry-After, and answers all else", async () => {
  const { process, load } = controlled();
  const { runtime } = testRuntime();
  const app = createApp({ runtime, authenticate: null, load });
  const post = () =>
    app.fetch(
      new Request("http://localhost/v1/runs", {
        method: "POST",
        body: JSON.stringify({ prompt: "answer 42" }),
        headers: { "content-type": "application/json" },
      }),
    );
  const { id } = await (await post()).json();
  process.now_ms += 200;
  process.part = 0.9;
  const refused = await post();
  assertEquals([refused.status, refused.headers.get("retry-after")], [503, "2"]);
  const { error } = await refused.json();
  assertEquals(error.code, "overloaded");
  assertMatch(error.message, /90 % of its memory/);
  for (const path of ["/healthz", "/readyz", `/v1/runs/${id}`]) {
    const response = await app.fetch(new Request(`http://localhost${path}`));
    assertEquals(response.status, 200, path);
    await response.body?.cancel();
  }
});
