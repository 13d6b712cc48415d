/**
 * What becomes of a run when something fails at one of its steps: the table says it, each of its cells is a
 * test. A cell counts side effects, reads the log as a client does, and uses the session afterwards. See also
 * `killed_runs_slow_test.ts` for other runs, and `../e2e/kill_points_test.ts` for real processes and
 * databases.
 */
import { assertToolPairs } from "../../src/testing/assertions.ts";
import { assert, assertEquals } from "../assert.ts";
import { crash, type Failure, FAILURES, type Step, STEPS } from "../support/crashes.ts";
import { replayed } from "../support/runs.ts";

const TABLE = `
when                           | killed  | refused once | refused   | no answer | stood still | stopped | plan gone
it waits for its session       | next    | here         | next      | here      | next        | next    | fails
it begins                      | next    | here         | next      | here      | next        | next    | fails
its prompt is stored           | next    | here         | model 1-2 | here      | model 1-2   | next    | fails
its model is asked             | model 2 | here         | model 2   | here      | model 2     | model 2 | fails
its model has half answered    | model 2 | here         | model 2   | here      | model 2     | model 2 | fails
the answer is stored           | next    | here         | next      | here      | next        | next    | fails
a hook is asked about the call | next    | here         | next      | here      | next        | next    | fails
a question is open             | next    | here         | next      | here      | next        | next    | fails
the question is answered       | cut 0   | here         | cut 0-1   | here      | cut 0       | here    | fails
a tool runs                    | cut 1   | here         | cut 1     | here      | cut 1       | cut 1   | fails
the result is stored           | next    | here         | model 1-2 | here      | model 1-2   | here    | fails
an idempotent tool runs        | tool 2  | here         | tool 2    | here      | tool 2      | tool 2  | fails
the history is compacted       | next    | here         | model 1-2 | here      | model 1-2   | here    | fails
its sub-agent runs             | cut 1   | here         | cut 1     | here      | cut 1       | cut 1   | fails
its end is being stored        | next    | here         | next      | here      | next        | here    | fails
it has ended                   | here    | here         | here      | here      | here        | here    | here
`;

const FAILURE_TEXTS: Record<Failure, string> = {
  "killed": "its process is killed",
  "refused once": "the store refuses a commit",
  "refused": "the store refuses every commit until the server stops",
  "no answer": "the store does not answer for 3 s",
  "stood still": "its server stands still until another one has taken over the run",
  "stopped": "its server stops",
  "plan gone": "its process is killed and its plan is no longer allowed",
};

/** An outcome. Numbers are how often something may happen: exactly, or at least and at most. */
interface Outcome {
  text: string;
  /** The server that ends the run. */
  by: "its own" | "next";
  /** Calls of the model; {@link MODEL_CALLS} in a run without a failure. */
  asked: readonly [least: number, most: number];
  /** Executions of the idempotent tool. */
  looked: readonly [least: number, most: number];
  /** Effects of the call that is answered as interrupted. Absent: no call is. */
  cut?: readonly [least: number, most: number];
}

const MODEL_CALLS = 4;

const ONCE = { by: "next", asked: [MODEL_CALLS, MODEL_CALLS], looked: [1, 1] } as const;

const OUTCOMES = {
  "here": { ...ONCE, text: "its server completes it, and nothing is repeated", by: "its own" },
  "next": { ...ONCE, text: "the next server completes it, and nothing is repeated" },
  "model 2": {
    ...ONCE,
    text: "the next server completes it, and one model call is repeated",
    asked: [MODEL_CALLS + 1, MODEL_CALLS + 1],
  },
  "model 1-2": {
    ...ONCE,
    text: "the next server completes it, and at most one model call is repeated",
    asked: [MODEL_CALLS, MODEL_CALLS + 1],
  },
  "tool 2": {
    ...ONCE,
    text: "the next server completes it, and the idempotent tool is executed again",
    looked: [2, 2],
  },
  "cut 0": {
    ...ONCE,
    text: "the next server completes it; the call is answered as interrupted and had no effect",
    cut: [0, 0],
  },
  "cut 1": {
    ...ONCE,
    text: "the next server completes it; the call is answered as interrupted and had its effect once",
    cut: [1, 1],
  },
  "cut 0-1": {
    ...ONCE,
    text: "the next server completes it; the call is answered as interrupted and had its effect at most once",
    cut: [0, 1],
  },
  "fails": {
    text: "the next server ends it as failed and says why",
    by: "next",
    asked: [0, MODEL_CALLS],
    looked: [0, 1],
  },
} satisfies Record<string, Outcome>;

async function check(step: Step, failure: Failure, outcome: Outcome): Promise<void> {
  const { run, entries, seen, messages, effects, free_at_once, recovered, next } = await crash(step, failure);
  if (failure === "killed") assertEquals(free_at_once, step === "it has ended");
  const isAfter = (other: Step) => STEPS.indexOf(step) >= STEPS.indexOf(other);
  const interrupted = entries.filter(({ event, data }) =>
    event === "tool:error" && (data.error as { type: string }).type === "interrupted"
  );
  const [cut] = interrupted.map(({ data }) => data.tool_name === "note" ? "noted" : "spawned" as const);
  const fails = outcome === OUTCOMES.fails;
  assertEquals([run.status, recovered ? "next" : "its own"], [fails ? "failed" : "completed", outcome.by]);
  assertEquals(interrupted.length, outcome.cut ? 1 : 0, "calls that are answered as interrupted");
  assertBetween("model calls", effects.asked, outcome.asked);
  assertBetween("executions of the idempotent tool", effects.looked, outcome.looked);
  if (fails) {
    const reason = "Cannot continue the run: its process ended: no tools today";
    assertEquals([run.error?.code, run.error?.message], ["interrupted", reason]);
    assertEquals([effects.noted, effects.looked, effects.spawned], [
      isAfter("a tool runs") ? 1 : 0,
      isAfter("an idempotent tool runs") ? 1 : 0,
      isAfter("its sub-agent runs") ? 1 : 0,
    ]);
  } else {
    for (const effect of ["noted", "spawned"] as const) {
      assertBetween(effect, effects[effect], effect === cut ? outcome.cut! : [1, 1]);
    }
    assertEquals([run.output_text, run.tool_call_count], ["done", 3]);
  }
  assertEquals(entries.map(({ seq }) => seq), entries.map((_, index) => index + 1));
  assertEquals(seen, entries, "the client has seen other entries than those of the log");
  const of = (name: string) => entries.filter(({ event }) => event.startsWith(name));
  assertEquals([of("run:end").length, of("cancel:").length], [1, 0]);
  const asked = of("approval:required").map(({ data }) => data.approval_id);
  const granted = of("approval:granted").map(({ data }) => data.approval_id);
  assert(asked.length <= 1 && granted.length <= asked.length);
  if (!fails) assertEquals(granted, asked);
  assertToolPairs(messages);
  const prompts = messages.filter(({ role }) => role === "user").map(({ content }) => content);
  const hasPrompt = !fails || isAfter("its prompt is stored");
  const before = isAfter("it begins") ? [] : ["first"];
  assertEquals(prompts, [...before, ...(hasPrompt ? ["hello"] : [])]);
  assertEquals(await next.runs.recover(), []);
  const { session_id } = run;
  assertEquals((await next.finish("plain", { session_id })).status, "completed");
  if (failure !== "plan gone") assertEquals(await replayed(next, run.id), { equal: true });
}

function assertBetween(what: string, count: number, [least, most]: readonly [number, number]): void {
  assert(least <= count && count <= most, `${what}: ${count}, expected ${least} to ${most}`);
}

for (const line of TABLE.trim().split("\n").slice(1)) {
  const [step, ...cells] = line.split("|").map((cell) => cell.trim());
  FAILURES.forEach((failure, column) => {
    const outcome: Outcome = OUTCOMES[cells[column] as keyof typeof OUTCOMES];
    Deno.test(`when ${step}, and ${FAILURE_TEXTS[failure]}: ${outcome.text}`, () =>
      check(step as Step, failure, outcome));
  });
}
