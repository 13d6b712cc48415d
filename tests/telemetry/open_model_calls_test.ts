import type { Entry } from "../../src/kernel/host.ts";
import { OpenModelCalls } from "../../src/telemetry/open_model_calls.ts";
import { assertEquals } from "../assert.ts";

const entryOf = (data: Entry["data"]): Entry => ({
  seq: 1,
  event: "provider:request",
  ts: "2026-11-21T10:00:00.000Z",
  run_id: "run_1",
  session_id: "ses_1",
  data,
});

Deno.test("OpenModelCalls: the oldest call of a provider ends first, and one of a module ends none", () => {
  const [mock, other] = [entryOf({ provider: "mock" }), entryOf({ provider: "other" })];
  const calls = new OpenModelCalls<number>();
  calls.add(mock, 1);
  calls.add(mock, 2);
  calls.add(other, 3);
  assertEquals(calls.take(entryOf({ provider: "mock", inner: true })), undefined);
  assertEquals([calls.get(mock), calls.take(mock), calls.take(mock), calls.take(mock)], [1, 1, 2, undefined]);
  assertEquals([calls.takeAll(), calls.takeAll()], [[3], []]);
});
