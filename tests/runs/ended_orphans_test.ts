/** Runs of crashed processes that are ended, not continued: by the next message, or by an undo. */
import { assert, assertEquals, assertMatch } from "../assert.ts";
import type { PreampError } from "../../src/sdk/errors.ts";
import { CALLER, type Service, service, type TestPlan } from "../support/runs.ts";
import { calls, tool } from "../support/sessions.ts";
import { settle, shared } from "./shared_store.ts";

/** Starts a run whose second tool never returns, in a process that dies, and a process beside it. */
async function crashed(recovers: boolean): Promise<{ run_id: string; session_id: string; other: Service }> {
  const plans: Record<string, TestPlan> = {
    first: { providers: [["hello"]] },
    slow: {
      tools: [tool("quick"), tool("slow", () => new Promise(() => {}))],
      providers: [[calls(["quick"]), calls(["slow"]), "never"]],
    },
    next: { providers: [["continued"]] },
  };
  const one = service({ plans, store: shared });
  const { session_id } = await one.finish("first");
  const { id } = await one.post("slow", { session_id, prompt: "do it" });
  await settle();
  return { run_id: id, session_id, other: service({ plans, beside: one, store: shared, recovers }) };
}

const failure = (promise: Promise<unknown>) => promise.then(() => null, (error) => error as PreampError);

Deno.test("the next message ends a run whose process has died, and keeps what it said and did", async () => {
  const { run_id, session_id, other } = await crashed(false);
  await other.clock.advance(6_000); // its lease expires
  const next = await other.finish("next", { session_id, prompt: "continue" });
  assertEquals([next.status, next.output_text], ["completed", "continued"]);
  const ended = await other.runs.get(CALLER, run_id);
  assertEquals([ended.status, ended.error?.code], ["failed", "interrupted"]);
  assertEquals(ended.error?.message, "Cannot continue the run: its process ended");
  const { data } = await other.runs.sessions.messages(CALLER, session_id);
  assertEquals(data.map(({ role }) => role), [
    ...["user", "assistant", "user", "assistant", "tool", "assistant", "tool"],
    ...["user", "assistant"],
  ]);
  assertEquals(
    data[6]!.content,
    "Error: Tool 'slow' was interrupted: its process ended, and its effect is not known",
  );
  const session = await other.runs.sessions.get(CALLER, session_id);
  assertEquals([session.run_count, session.status.tool_invocations], [3, 1]);
});

Deno.test("an undo ends a run whose process has died, also where such runs are continued", async () => {
  for (const recovers of [true, false]) {
    const { run_id, session_id, other } = await crashed(recovers);
    await other.clock.advance(6_000);
    assertEquals((await other.runs.undo(CALLER, run_id)).run_id, run_id);
    assertEquals((await other.runs.get(CALLER, run_id)).error?.code, "interrupted");
    assertEquals((await other.finish("next", { session_id })).output_text, "continued");
    assertEquals(await other.runs.recover(), []);
  }
});

Deno.test("a run of a living process is not ended; the refusal says which it is, and how long to wait", async () => {
  const { run_id, session_id, other } = await crashed(false);
  const busy = await failure(other.post("next", { session_id }));
  const undone = await failure(other.runs.undo(CALLER, run_id));
  for (const error of [busy, undone]) {
    assertEquals(error?.code, "session_busy");
    assertMatch(error!.message, new RegExp(`another process executes run "${run_id}"; wait for its end`));
    assertMatch(
      error!.message,
      /If that process has died on another machine, the session is free within 10 s/,
    );
  }
  assertEquals((await other.runs.get(CALLER, run_id)).status, "running");
});

Deno.test("a message refuses a run that a server has left to its recovery", async () => {
  const { run_id, session_id, other } = await crashed(true);
  await other.clock.advance(6_000);
  const busy = await failure(other.post("next", { session_id }));
  assertEquals(busy?.code, "session_busy");
  assertEquals((await other.runs.get(CALLER, run_id)).status, "running");
  assertEquals(await other.runs.recover(), [run_id]);
  assert((await other.runs.get(CALLER, run_id)).ended_at === null);
});
