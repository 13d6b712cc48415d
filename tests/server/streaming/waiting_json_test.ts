import { systemClock } from "../../../src/process/system_clock.ts";
import type { Answer } from "../../../src/server/answers.ts";
import { withHeartbeat } from "../../../src/server/streaming/waiting_json.ts";
import { assertEquals, assertRejects } from "../../assert.ts";

const OPTIONS = { heartbeat_ms: 20, clock: systemClock(), headers: { "preamp-run-id": "run_1" } };

const ACCEPTED: Answer = { status: 202, headers: {}, body: '{"id":1}\n' };

Deno.test("withHeartbeat() returns an answer that is there in time unchanged", async () => {
  assertEquals(await withHeartbeat(Promise.resolve(ACCEPTED), OPTIONS) === ACCEPTED, true);
});

Deno.test("withHeartbeat() sends spaces until a late answer is there", async () => {
  const late = Promise.withResolvers<Answer>();
  const { status, headers, body } = await withHeartbeat(late.promise, OPTIONS);
  assertEquals([status, headers["content-type"], headers["preamp-run-id"]], [
    200,
    "application/json",
    "run_1",
  ]);
  const reader = new Response(body).body!.getReader();
  const decoder = new TextDecoder();
  const read = async () => decoder.decode((await reader.read()).value);
  assertEquals([await read(), await read()], [" ", " "]);
  late.resolve(ACCEPTED);
  let text = "";
  for (let part = await read(); part !== ""; part = await read()) text += part;
  assertEquals(text.trimStart(), '{"id":1}\n');
});

Deno.test("withHeartbeat() passes on an error, before and after the first space", async () => {
  await assertRejects(() => withHeartbeat(Promise.reject(new Error("early")), OPTIONS), Error, "early");
  const late = Promise.withResolvers<Answer>();
  const { body } = await withHeartbeat(late.promise, OPTIONS);
  late.reject(new Error("late"));
  await assertRejects(() => new Response(body).text(), Error, "late");
});
