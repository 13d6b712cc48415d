import { setImmediate } from "node:timers";
import { errorCode, errorMessage } from "../../../src/sdk/errors.ts";
import { createApp } from "../../../src/server/app.ts";
import { ProcessLoad } from "../../../src/server/middleware/shed_load.ts";
import { assertEquals, assertMatch, assertRejects } from "../../assert.ts";
import { testRuntime } from "../../support/http.ts";

const HEAP_BYTES = 100 * 1024 * 1024;

/** A process whose clock, turns and heap the test sets. */
function controlled() {
  const process = {
    ...{ now_ms: 0, part: 0.1, executing: 0 },
    ...{ turns: [] as (() => void)[], timers: [] as (() => void)[] },
  };
  const load = new ProcessLoad(() => process.executing, {
    now: () => process.now_ms,
    nextTurn: (then) => process.turns.push(then),
    later: (_ms, then) => process.timers.push(then),
    heap: () => ({ used: process.part * HEAP_BYTES, limit: HEAP_BYTES }),
  });
  const all = (list: (() => void)[]) => list.splice(0).forEach((then) => then());
  /** Resolves to `begins`, `waits`, or why a run is refused. */
  const asked = async () => {
    const answer = load.turn().then(() => "begins", errorMessage);
    return await Promise.race([answer, settled().then(() => "waits")]);
  };
  return { process, load, asked, turn: () => all(process.turns), pass: () => all(process.timers) };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));
const refusal = (reason: string) => `Cannot start a run: the server is overloaded: ${reason}`;

Deno.test("ProcessLoad takes work until two turns of the event loop in a row take more than a second", async () => {
  const { process, asked, turn } = controlled();
  const late = refusal("its event loop is more than 1 s late");
  assertEquals(await asked(), "begins");
  process.now_ms = 1_001;
  assertEquals(await asked(), "begins"); // one may be that of a first run, which loads its modules
  turn();
  assertEquals(await asked(), "begins");
  process.now_ms = 2_003;
  turn();
  assertEquals(await asked(), late); // two of them
  process.now_ms = 2_100;
  turn(); // a fast one
  assertEquals(await asked(), "begins");
});

Deno.test("ProcessLoad takes work a second after a slow turn, although no other turn was measured", async () => {
  const { process, asked, turn } = controlled();
  assertEquals(await asked(), "begins");
  process.now_ms = 3_000; // it loaded the modules of a first run
  turn();
  process.now_ms = 4_000;
  assertEquals(await asked(), "begins");
});

Deno.test("ProcessLoad asks for one turn at a time, and for none while it is not asked", async () => {
  const { process, asked, turn } = controlled();
  for (let time = 0; time < 3; time++) await asked();
  assertEquals(process.turns.length, 1);
  turn();
  assertEquals([process.turns.length, process.timers.length], [0, 0]);
});

Deno.test("ProcessLoad takes no work while the heap is above 80 %, and lets it wait above 60 %", async () => {
  const { process, asked, load, turn, pass } = controlled();
  process.part = 0.81;
  assertEquals(await asked(), refusal("81 % of its memory are used"));
  process.part = 0.7;
  process.now_ms += 20; // it measures the heap now and then
  const waits = load.turn();
  turn();
  assertEquals([process.turns.length, process.timers.length], [0, 1]); // it does not spin meanwhile
  process.part = 0.5;
  process.now_ms += 20;
  pass();
  turn();
  await waits;
});

Deno.test("ProcessLoad lets a run wait until there is room for the answers of those that have begun", async () => {
  const { process, load, turn, pass } = controlled();
  process.executing = 49; // of a MiB each, and 10 MiB are used
  const begun = await load.turn();
  await load.turn();
  let waits = true;
  const last = load.turn().then(() => waits = false);
  turn();
  await settled();
  assertEquals(waits, true); // 61 of 100 MiB
  begun();
  begun(); // the second call changes nothing
  pass();
  turn();
  await last;
  assertEquals(waits, false);
});

Deno.test("ProcessLoad lets eight runs begin in a turn, and the others in order in later ones", async () => {
  const { load, turn } = controlled();
  const begun: number[] = [];
  const all = Array.from({ length: 20 }, (_, number) => load.turn().then(() => begun.push(number)));
  for (const expected of [8, 16, 20]) {
    await settled();
    assertEquals(begun, Array.from({ length: expected }, (_, number) => number));
    turn();
  }
  await Promise.all(all);
});

Deno.test("ProcessLoad refuses a run that has waited ten seconds for its turn", async () => {
  const { process, load, turn } = controlled();
  const all = Array.from({ length: 9 }, () => load.turn());
  await Promise.all(all.slice(0, 8));
  const last = assertRejects(() => all[8]!);
  process.now_ms = 10_001;
  turn();
  assertEquals(errorCode(await last), "overloaded");
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
