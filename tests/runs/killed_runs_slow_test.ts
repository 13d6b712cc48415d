/**
 * Recovery and replay of all scenarios: the process is killed after each of their entries. Another process
 * recovers the run, which ends as without the crash: no event twice, no tool call twice, one result for every
 * call. It replays without a difference.
 */
import type { Run } from "../../src/runs/types.ts";
import { entrySchemaOf } from "../../src/sdk/schemas/entry_schemas.ts";
import { assertToolPairs } from "../../src/testing/assertions.ts";
import type { JsonObject, Message } from "../../src/sdk/types.ts";
import { assert, assertEquals, assertMatch } from "../assert.ts";
import { someOf } from "../support/cases.ts";
import { CALLER, replayed } from "../support/runs.ts";
import { killAndResume, type Resumed } from "./killed.ts";
import { play } from "./play.ts";
import { SCENARIOS } from "./scenarios.ts";

/** Events that a turn or a run emits once; a resumed session emits `session:end` again. */
const ONCE = ["execution:start", "execution:end", "orchestrator:complete", "prompt:complete", "run:end"];

function holds(
  name: string,
  last: number,
  { entries, run }: Resumed,
  messages: readonly JsonObject[],
  whole: Run,
): void {
  const at = `${name}, killed behind ${last}`;
  const count = (event: string) => entries.filter((entry) => entry.event === event).length;
  assertEquals(entries.map(({ seq }) => seq), entries.map((_, index) => index + 1), at);
  for (const entry of entries) {
    const { success, error } = entrySchemaOf(entry.event).safeParse(entry);
    assert(success, `${at}: ${entry.event}: ${error?.message}`);
  }
  for (const event of ONCE) assert(count(event) <= 1, `${at}: ${event} ${count(event)} times`);
  const asked = entries.filter(({ event }) => event === "approval:required").map(({ data }) =>
    data.tool_call_id
  );
  assertEquals(new Set(asked).size, asked.length, at);
  const outcomes = entries.filter(({ event }) => event === "tool:post" || event === "tool:error")
    .map(({ data }) => data.tool_call_id);
  assertEquals(new Set(outcomes).size, outcomes.length, at);
  assertToolPairs(messages as unknown as Message[]);
  const of_user = messages.filter(({ role, metadata }) => role === "user" && metadata === undefined);
  assert(of_user.length <= 1, at);
  const interrupted = entries.some(({ event, data }) =>
    event === "tool:error" && (data.error as JsonObject).type === "interrupted"
  );
  // a call that may have run counts, and is not the call that a limit refuses
  if (interrupted) assertMatch(run.status, /^(completed|incomplete|denied)$/);
  else {
    const ended = [whole.status, whole.stop_reason, whole.output_text];
    assertEquals([run.status, run.stop_reason, run.output_text], ended, at);
  }
  const status = entries.find(({ event, data }) => event === "run:status" && data.resumed === true);
  assert(status, at);
}

/** Scenarios that end alike wherever their process is killed. */
const ALIKE: ReadonlySet<string> = new Set([
  "a text answer",
  "an answer with thinking",
  "a tool call with approval",
  "a denied approval",
  "two concurrent tools, the later one first",
  "a picture from a tool, while another call waits for approval",
  "two concurrent approvals",
  "tools that fail in every way",
  "hooks that deny, modify and inject",
  "a denied prompt",
  "a denied provider request",
  "the limit of tool calls",
  "the loop's own limit",
  "a provider that fails",
  "a retry",
  "a request that is too long",
  "structured output, repaired",
  "hooks select the tool",
]);

for (const name of ALIKE) assert(name in SCENARIOS, name);

for (const [name, scenario] of Object.entries(SCENARIOS)) {
  if (scenario.before) continue; // the second run is killed: see resume_test.ts
  const ends = ALIKE.has(name) ? "ends as without the crash and replays" : "replays";
  Deno.test(`a run that is killed after any of its entries ${ends} equal: ${name}`, async () => {
    const { run: whole, entries } = await play(scenario);
    const accepted = entries.findIndex(({ event }) => event === "session:start");
    const kills = Array.from({ length: entries.length - accepted }, (_, index) => accepted + index);
    for (const last of someOf(kills, 4)) {
      const resumed = await killAndResume(scenario, last, scenario.step_ms);
      const { next, run } = resumed;
      if (ALIKE.has(name)) {
        holds(name, last, resumed, (await next.runs.sessions.messages(CALLER, run.session_id)).data, whole);
      }
      assertEquals([last, await replayed(next, run.id)], [last, { equal: true }]);
    }
  });
}
