/** Data of a program whose runs kept the history of their session in their input is continued. */
import { textOf } from "../../../src/sdk/messages.ts";
import type { Message } from "../../../src/sdk/types.ts";
import { assertEquals, assertThrows } from "../../assert.ts";
import { OLDER_PLANS } from "../../fixtures/older_store.ts";
import { CALLER, replayed, type Service, service } from "../../support/runs.ts";
import { runToEnd } from "../play.ts";
import { shared } from "../shared_store.ts";
import type { Change } from "../../../src/store/store.ts";

const COMMITS = (await Deno.readTextFile(new URL("../../fixtures/older_store.jsonl", import.meta.url)))
  .trim().split("\n").map((line) => JSON.parse(line) as Change[]);

type Content = Message["content"];

/** Returns a service on the data, some of whose runs have lost their process. */
function opened(): Service {
  const made = service({
    plans: OLDER_PLANS,
    store: shared,
    ids: (prefix, count) => `${prefix}_new${count}`,
  });
  for (const changes of COMMITS) made.memory.commit(changes);
  return made;
}

const contents = async ({ runs }: Service, session_id: string) =>
  (await runs.sessions.messages(CALLER, session_id)).data.map(({ content }) => textOf(content as Content));

Deno.test("a session of an older version is listed, read and continued", async () => {
  const made = opened();
  const { data } = await made.runs.sessions.list(CALLER, {});
  const totals = Object.fromEntries(data.map(({ id, status }) => [id, status.total_messages]));
  assertEquals([totals.ses_1, totals.ses_2, totals.ses_3], [6, 2, 2]);
  assertEquals(await contents(made, "ses_1"), ["hello 1", "one", "hello 2", "two", "hello 3", "three"]);
  const fourth = await made.finish(null, { prompt: "hello 4", session_id: "ses_1" });
  assertEquals(fourth.output_text, "four"); // the module's state has how many answers it gave
  assertEquals((await contents(made, "ses_1")).slice(-3), ["three", "hello 4", "four"]);
  const fifth = await made.finish(null, { prompt: "hello 5", session_id: "ses_1" });
  assertEquals((await contents(made, "ses_1")).length, 10);
  for (const run of [fourth, fifth]) assertEquals(await replayed(made, run.id), { equal: true });
});

Deno.test("an ended run of an older version is replayed, read and forked, also when its session has a log", async () => {
  const made = opened();
  for (const continues of [false, true]) {
    if (continues) await made.finish(null, { prompt: "hello 4", session_id: "ses_1" });
    for (const run_id of ["run_1", "run_2", "run_3"]) {
      assertEquals(await replayed(made, run_id), { equal: true });
    }
    const { replay } = await made.runs.recording(CALLER, "run_2");
    assertEquals(replay.history.map(({ content }) => textOf(content)), ["hello 1", "one"]);
    const before = await made.runs.sessions.fork(CALLER, "ses_1", { before_run: "run_3" });
    assertEquals(await contents(made, before.id), ["hello 1", "one", "hello 2", "two"]);
    const turn = await made.runs.sessions.fork(CALLER, "ses_1", { turn: 1 });
    const again = await made.finish(null, { prompt: "hello again", session_id: turn.id });
    assertEquals([again.output_text, await contents(made, turn.id)], [
      "two",
      ["hello 1", "one", "hello again", "two"],
    ]);
  }
});

Deno.test("a run of an older version that waits for an answer continues with it", async () => {
  const made = opened();
  assertEquals((await made.runs.recover()).toSorted(), ["run_5", "run_7", "run_8"]);
  const run = await runToEnd(made, "run_5", {
    plan: OLDER_PLANS.asks!,
    react: (entry, { decide }) => entry.event === "approval:required" ? decide(entry, "allow") : undefined,
  });
  assertEquals([run.status, run.output_text], ["completed", "noted"]);
  assertEquals((await contents(made, "ses_2")).slice(0, 3), ["are you there?", "ready", "note it"]);
  const next = await made.finish(null, { prompt: "more", session_id: "ses_2" });
  assertEquals(await contents(made, "ses_2"), [
    ...["are you there?", "ready", "note it", "", "ok", "noted", "more", next.output_text],
  ]);
});

Deno.test("a run of an older version continues after a crash, and then the one queued behind it", async () => {
  const made = opened();
  await made.runs.recover();
  const run = await runToEnd(made, "run_7", { plan: OLDER_PLANS.slow! });
  const queued = await runToEnd(made, "run_8", { plan: OLDER_PLANS.slow! });
  assertEquals([run.output_text, queued.output_text], ["late", "last"]);
  assertEquals(await contents(made, "ses_3"), [
    ...["begin", "first", "take your time", "late", "and then?", "last"],
  ]);
  for (const { id } of [run, queued]) assertEquals(await replayed(made, id), { equal: true });
  assertEquals(await made.runs.recover(), []);
});

Deno.test("an older program beside this one finds no input of a run, and no history that it could continue", async () => {
  const made = opened();
  const older = async () => {
    const { records } = await made.store.list("run_input", {
      namespace: "",
      where: { open: "true" },
      limit: 9,
    });
    return records.map(({ key }) => key).toSorted();
  };
  assertEquals(await older(), ["input/run_5", "input/run_7", "input/run_8"]);
  const asking = await made.post("asks", { prompt: "there?" });
  await asking.settled("end");
  await made.post("slow", { session_id: "ses_1" });
  assertEquals(await older(), ["input/run_5", "input/run_7", "input/run_8"]);
  const { messages } = made.memory.get("session", "ses_1")!.value as { messages: string[] };
  assertEquals(messages.length, 6); // an older program lists the session
  assertThrows(() => [...messages], TypeError); // and fails before it stores anything
});
