/** Validates every entry of all scenarios against the published schemas. */
import { Validator } from "@cfworker/json-schema";
import { assert, assertEquals } from "../assert.ts";
import type { Entry } from "../../src/kernel/host.ts";
import { EVENT_DATA } from "../../src/sdk/schemas/event_data.ts";
import { entrySchemaOf, eventsJsonSchema } from "../../src/sdk/schemas/entry_schemas.ts";
import { play } from "./play.ts";
import { SCENARIOS } from "./scenarios.ts";

// deno-lint-ignore no-explicit-any -- the validator's own type of a schema
const published = new Validator(JSON.parse(JSON.stringify(eventsJsonSchema())) as any, "2020-12", true);

/** Events that no built-in module emits, or only with network access. */
const NOT_SEEN: ReadonlySet<string> = new Set([
  "session:fork",
  "plan:start",
  "plan:end",
  "module:skipped",
  "module:load_failed",
  "module:on_session_ready_failed",
  "provider:throttle",
  "provider:tool_sequence_repaired",
  "provider:concurrency",
  "llm:request",
  "llm:response",
  "thinking:delta",
  "thinking:final",
  "context:reset",
  "context:compaction-skipped",
  "content_block:void", // after a crash: resume_test.ts
  "context:tool_result_ingress_truncated",
  "context:token_meter",
  "context:summary",
  "context:include",
  "artifact:write",
  "artifact:read",
  "policy:violation",
  "orchestrator:goal_progress",
  "task:agent_spawned",
  "task:agent_resumed",
  "task:agent_completed",
  "delegate:agent_spawned",
  "delegate:agent_completed",
  "delegate:error",
]);

function problemsOf(entry: Entry): string[] {
  const own = entrySchemaOf(entry.event).safeParse(entry);
  const found = own.success
    ? []
    : own.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
  const { valid, errors } = published.validate(entry);
  if (!valid) found.push(`published: ${JSON.stringify(errors[0])}`);
  return found.map((problem) => `${entry.seq} ${entry.event}: ${problem}`);
}

const seen = new Set<string>();

for (const [name, scenario] of Object.entries(SCENARIOS)) {
  Deno.test(`every entry is valid against its published schema: ${name}`, async () => {
    const { entries } = await play(scenario);
    assertEquals(entries.flatMap(problemsOf), []);
    assertEquals(entries.map(({ seq }) => seq), entries.map((_, index) => index + 1));
    for (const { event } of entries) seen.add(event);
  });
}

Deno.test("the scenarios emit every canonical event that needs no network, file or sub-agent", () => {
  assertEquals(Object.keys(EVENT_DATA).filter((event) => !seen.has(event) && !NOT_SEEN.has(event)), []);
  assertEquals([...seen].filter((event) => NOT_SEEN.has(event)), []);
});

Deno.test("the schemas refuse malformed entries and accept events of modules", () => {
  const entry = {
    seq: 1,
    event: "tool:pre",
    ts: "2026-11-21T10:00:00.000Z",
    run_id: "run_1",
    session_id: "ses_1",
    data: { tool_name: "a", tool_call_id: "c1", tool_input: {} },
  };
  assertEquals(problemsOf(entry), []);
  assert(problemsOf({ ...entry, data: { tool_name: "a", tool_call_id: "c1" } }).length >= 2);
  assert(problemsOf({ ...entry, seq: 0 }).length >= 2);
  assertEquals(problemsOf({ ...entry, event: "mine:own", data: { anything: true } }), []);
});
