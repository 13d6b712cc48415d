import type { Entry } from "../../src/kernel/host.ts";
import { CANONICAL_EVENTS } from "../../src/sdk/event_table.ts";
import { Metrics } from "../../src/telemetry/metrics.ts";
import { runObservers } from "../../src/telemetry/run_observers.ts";
import { Tracing } from "../../src/telemetry/tracing.ts";
import { assert } from "../assert.ts";

/** Values that cannot be converted to a text, and others of the wrong type. */
const ODD: unknown[] = [
  null,
  undefined,
  7,
  -1,
  "x",
  [],
  {},
  { toString: 1, valueOf: 1 },
  Object.create(null),
];
const FIELDS = [
  ..."status stop_reason run error usage provider model response result prompt agent attempt".split(" "),
  ..."tool_name tool_call_id sub_session_id error_type tool_input traceparent".split(" "),
];

Deno.test("entries with odd data of modules neither throw nor add labels", async () => {
  const metrics = new Metrics();
  const observe = runObservers(metrics, new Tracing(true), () => {});
  assert(observe);
  for (const value of ODD) {
    const entries = [...CANONICAL_EVENTS].flatMap((event) =>
      [
        Object.fromEntries(FIELDS.map((field) => [field, value])),
        { run: { status: value, created_at: value, ended_at: value, error: { code: value }, usage: value } },
        {
          usage: { input_tokens: value, cost_usd: value },
          response: { content: [value], tool_calls: [value] },
        },
        { error: { type: value }, result: { success: value }, tool_call_id: "1", tool_name: "t" },
      ].map((data): Entry => ({
        seq: 1,
        ts: "2026-11-22T10:00:00.000Z",
        run_id: "run_1",
        session_id: "ses_1",
        event,
        data: data as Entry["data"],
      }))
    );
    const run = observe({ id: "run_1", session_id: "ses_1", earlier: entries.slice(0, 1) });
    run.stored(entries);
    run.ended();
  }
  const text = await metrics.text();
  metrics.close();
  assert(!/NaN|undefined|object/.test(text), text);
  assert(text.split("\n").length < 200, text);
});
