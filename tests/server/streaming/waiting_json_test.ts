import { systemClock } from "../../../src/process/system_clock.ts";
import { withHeartbeat } from "../../../src/server/streaming/waiting_json.ts";
import { assertEquals, assertRejects } from "../../assert.ts";

const OPTIONS = { heartbeat_ms: 20, clock: systemClock(), headers: { "preamp-run-id": "run_1" } };

Deno.test("withHeartbeat() returns a response that is there in time unchanged, and one that has no heartbeat", async () => {
  const response = new Response("{}", { status: 202 });
  assertEquals(await withHeartbeat(Promise.resolve(response), OPTIONS) === response, true);
  const late = new Promise<Response>((resolve) => setTimeout(() => resolve(response), 50));
  assertEquals(await withHeartbeat(late, { ...OPTIONS, heartbeat_ms: null }) === response, true);
});

Deno.test("withHeartbeat() sends spaces until a late response is there", async () => {
  const late = Promise.withResolvers<Response>();
  const response = await withHeartbeat(late.promise, OPTIONS);
  const { status, headers } = response;
  assertEquals([status, headers.get("content-type"), headers.get("preamp-run-id")], [
    200,
    "application/json",
    "run_1",
  ]);
  const reader = response.body!.getReader();
  const decoder = new TextDecoder();
  const read = async () => decoder.decode((await reader.read()).value);
  assertEquals([await read(), await read()], [" ", " "]);
  late.resolve(new Response('{"id":1}\n', { status: 202 }));
  let text = "";
  for (let part = await read(); part !== ""; part = await read()) text += part;
  assertEquals(text.trimStart(), '{"id":1}\n');
});

Deno.test("withHeartbeat() passes on an error, before and after the first space", async () => {
  await assertRejects(() => withHeartbeat(Promise.reject(new Error("early")), OPTIONS), Error, "early");
  const late = Promise.withResolvers<Response>();
  const response = await withHeartbeat(late.promise, OPTIONS);
  late.reject(new Error("late"));
  await assertRejects(() => response.text(), Error, "late");
});
