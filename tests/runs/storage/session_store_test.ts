/** One active run per session, and the state of a session between runs. */
import { assertToolPairs } from "../../../src/testing/assertions.ts";
import { PreampError } from "../../../src/sdk/errors.ts";
import type { FakeClock } from "../../../src/testing/clocks.ts";
import { MockProvider } from "../../../src/testing/mock_provider.ts";
import type { Message } from "../../../src/sdk/types.ts";
import { assert, assertEquals, assertRejects } from "../../assert.ts";
import { calls, hook, nextTurn, tool, until } from "../../support/sessions.ts";
import { shared } from "../shared_store.ts";
import {
  CALLER,
  service,
  type ServiceOptions,
  SlowStore,
  storedSession,
  type TestPlan,
} from "../../support/runs.ts";

/** Resolves to the code that `run` rejects with. */
async function codeOf(run: () => Promise<unknown>): Promise<string> {
  return (await assertRejects(run) as PreampError).code;
}

const SLOW: TestPlan = { providers: [[{ text: "slow", delay_ms: 1_000 }]] };
const ASKING: TestPlan = {
  providers: [[calls(["t"]), "done"]],
  tools: [tool("t")],
  hooks: [hook("tool:pre", () => ({ action: "ask_user", approval_prompt: "Allow t?" }))],
};

/** Lets the slow provider respond, after it was called; does not advance the clock of the run. */
async function answer(clock: FakeClock): Promise<void> {
  await until(() => clock.pending > 1);
  await clock.advance(1_000);
}

const STORES: [string, ServiceOptions["store"]][] = [
  ["memory", undefined],
  ["a slow store", (memory) => new SlowStore(memory)],
  ["a shared store", shared],
];

for (const [where, store] of STORES) {
  const make = (options: ServiceOptions = {}) => service({ ...options, ...(store ? { store } : {}) });

  Deno.test(`a whole run, in ${where}: log, record, session`, async () => {
    const { post, runs, entries, memory } = make({
      plans: { p: { providers: [[calls(["t"]), "done"]], tools: [tool("t")] } },
    });
    const handle = await post("p", { metadata: { team: "blue" } });
    const run = await handle.settled("end");
    assertEquals([run.status, run.stop_reason, run.output_text, run.turn_count, run.tool_call_count], [
      "completed",
      "end_turn",
      "done",
      2,
      1,
    ]);
    const log = await entries(run.id);
    assertEquals(log.map((entry) => entry.seq), log.map((_, index) => index + 1));
    assertEquals([log[0]?.event, log.at(-1)?.event], ["run:start", "run:end"]);
    assertEquals(log[0]?.data.metadata, { team: "blue" });
    assertEquals(log.at(-1)?.data.run, JSON.parse(JSON.stringify(run)));
    assertEquals(JSON.parse(JSON.stringify(await runs.get(CALLER, run.id))), JSON.parse(JSON.stringify(run)));
    assertEquals(memory.get("run", run.id)?.value.status, "completed");
    const session = await runs.sessions.get(CALLER, run.session_id);
    assertEquals([session.run_count, session.plan_hash, session.metadata], [1, run.plan_hash, {
      team: "blue",
    }]);
    const messages = (await runs.sessions.messages(CALLER, run.session_id)).data as unknown as Message[];
    assertEquals(messages.map((message) => message.role), ["user", "assistant", "tool", "assistant"]);
    assertToolPairs(messages);
  });

  Deno.test(`a busy session refuses a run, in ${where}`, async () => {
    const { post, clock, runs } = make({ plans: { slow: SLOW } });
    const first = await post("slow");
    const { session_id } = first;
    assertEquals(await codeOf(() => post("plain", { session_id })), "session_busy");
    assertEquals(await codeOf(() => post("plain", { session_id, if_busy: "reject" })), "session_busy");
    assertEquals(await codeOf(() => runs.sessions.remove(CALLER, session_id)), "session_busy");
    assertEquals(await codeOf(() => runs.remove(CALLER, first.id)), "session_busy");
    await answer(clock);
    await first.settled("end");
    assertEquals((await (await post("plain", { session_id })).settled("end")).status, "completed");
  });

  Deno.test(`queued runs start in order, in ${where}`, async () => {
    const { post, clock, runs } = make({ plans: { slow: SLOW } });
    const first = await post("slow", { prompt: "one" });
    const { session_id } = first;
    const queued = [];
    for (const prompt of ["two", "three"]) {
      queued.push(await post("slow", { prompt, session_id, if_busy: "queue" }));
    }
    assertEquals(queued.map((handle) => handle.current().status), ["queued", "queued"]);
    const listed = await runs.list(CALLER, { status: "queued" });
    assertEquals(listed.data.map((run) => run.id).sort(), queued.map((handle) => handle.id).sort());
    for (const handle of [first, ...queued]) {
      await answer(clock);
      assertEquals((await handle.settled("end")).status, "completed");
    }
    const { data: messages } = await runs.sessions.messages(CALLER, session_id);
    assertEquals(messages.filter((message) => message.role === "user").map((message) => message.content), [
      "one",
      "two",
      "three",
    ]);
    assertEquals((await runs.sessions.get(CALLER, session_id)).run_count, 3);
  });

  Deno.test(`of concurrent runs with if_busy: queue in a free session, all run, one after another, in ${where}`, async () => {
    const { post, clock, runs } = make({ plans: { slow: SLOW } });
    const { session_id } = await (await post("plain")).settled("end");
    const prompts = ["a", "b", "c", "d", "e"];
    const posts = prompts.map((prompt) => post("slow", { prompt, session_id, if_busy: "queue" }));
    const handles = await Promise.all(posts);
    for (const _ of handles) await answer(clock);
    const ended = await Promise.all(handles.map((handle) => handle.settled("end")));
    assertEquals(new Set(ended.map(({ status }) => status)), new Set(["completed"]));
    assertEquals((await runs.sessions.get(CALLER, session_id)).run_count, 6);
  });

  Deno.test(`if_busy: cancel ends the active run first, also with two concurrent requests, in ${where}`, async () => {
    const { post, clock, runs } = make({ plans: { slow: SLOW } });
    const first = await post("slow");
    const { session_id } = first;
    await until(() => clock.pending > 1);
    const both = Promise.allSettled([1, 2].map(() => post("plain", { session_id, if_busy: "cancel" })));
    await answer(clock);
    const settled = await both;
    assert(first.current().ended_at !== null);
    const started = settled.filter((one) => one.status === "fulfilled").map((one) => one.value);
    assertEquals(settled.map((one) => one.status === "rejected" && one.reason.message), [false, false]);
    for (const handle of started) {
      assert(["completed", "cancelled"].includes((await handle.settled("end")).status));
    }
    const { data: messages } = await runs.sessions.messages(CALLER, session_id);
    assertToolPairs(messages as unknown as Message[]);
    assertEquals((await runs.sessions.get(CALLER, session_id)).run_count, 3);
  });

  Deno.test(`a run that awaits approval is superseded for every if_busy, in ${where}`, async () => {
    for (const if_busy of [undefined, "reject", "queue", "cancel"] as const) {
      const { post, entries } = make({ plans: { asking: ASKING } });
      const first = await post("asking");
      const waiting = await first.settled("attention");
      assertEquals([waiting.status, waiting.approvals.length], ["awaiting_approval", 1]);
      const second = await post("plain", { session_id: first.session_id, ...(if_busy ? { if_busy } : {}) });
      assertEquals((await first.settled("end")).status, "cancelled");
      assertEquals((await second.settled("end")).status, "completed");
      const log = await entries(first.id);
      const denied = log.find((entry) => entry.event === "approval:denied");
      assertEquals([denied?.data.decision, denied?.data.reason], ["deny", `superseded by ${second.id}`]);
      assertEquals(log.filter((entry) => entry.event === "cancel:requested").length, 1);
      assertEquals(log.at(-1)?.event, "run:end");
    }
  });

  Deno.test(`a run that starts while another ends begins with the session that it left, in ${where}`, async () => {
    const { post, clock, runs } = make({ plans: { slow: SLOW } });
    const first = await post("slow", { prompt: "one" });
    const { session_id } = first;
    await answer(clock);
    const attempts: Promise<unknown>[] = [];
    const reasons: string[] = [];
    for (let turn = 0; turn < 200 && attempts.length < 1_000; turn++) {
      if (first.current().ended_at !== null) turn += 40; // a few more turns once it has ended
      attempts.push(
        post("plain", { prompt: `try ${turn}`, session_id }).then(
          (handle) => handle.settled("end"),
          (error) => (reasons.push(error.message), null),
        ),
      );
      await nextTurn();
    }
    const ended = (await Promise.all(attempts)).filter((run) => run !== null);
    assert(ended.length >= 1, reasons.join("; "));
    const { data: messages } = await runs.sessions.messages(CALLER, session_id);
    const prompts = messages.filter((message) => message.role === "user").map((message) => message.content);
    assertEquals(prompts[0], "one");
    assertEquals(prompts.length, ended.length + 1);
    assertEquals((await runs.sessions.get(CALLER, session_id)).run_count, ended.length + 1);
  });
}

Deno.test("a client that has seen the end of a run can start the next one at once", async () => {
  const { post } = service({ store: (memory) => new SlowStore(memory) });
  let { session_id } = await (await post("plain")).settled("end");
  for (let turn = 0; turn < 3; turn++) {
    const run = await (await post(null, { session_id })).settled("end");
    assertEquals(run.status, "completed");
    session_id = run.session_id;
  }
});

Deno.test("a cancelled queued run never starts, and leaves no session", async () => {
  const { post, clock, runs, names } = service({ plans: { slow: SLOW } });
  const first = await post("slow");
  const second = await post("plain", { session_id: first.session_id, if_busy: "queue" });
  const third = await post("plain", { session_id: first.session_id, if_busy: "queue" });
  assertEquals((await runs.cancel(CALLER, second.id, "graceful")).status, "cancelled");
  assertEquals((await runs.cancel(CALLER, second.id, "immediate")).status, "cancelled");
  assertEquals(await names(second.id), ["run:start", "run:end"]);
  await answer(clock);
  assertEquals((await third.settled("end")).status, "completed");
  assertEquals((await runs.sessions.get(CALLER, first.session_id)).run_count, 2);
});

Deno.test("a queued run whose modules are not available fails, and the next one starts", async () => {
  const broken: TestPlan = {
    context: () => {
      throw new Error("no memory");
    },
  };
  const { post, clock, names } = service({ plans: { slow: SLOW, broken } });
  const first = await post("slow");
  const { session_id } = first;
  const second = await post("broken", { session_id, if_busy: "queue" });
  const third = await post("plain", { session_id, if_busy: "queue" });
  await answer(clock);
  const failed = await second.settled("end");
  assertEquals([failed.status, failed.error?.code], ["failed", "internal"]);
  assertEquals((await names(second.id)).filter((name) => name.startsWith("session:")), []);
  assertEquals((await third.settled("end")).status, "completed");
});

Deno.test("a queued run does not change the session before it starts", async () => {
  const { post, clock, runs } = service({ plans: { slow: SLOW, other: {} } });
  const first = await post("slow", { prompt: "one" });
  const { session_id } = first;
  const kept = async () => {
    // its counters advance with the first run
    const { status: _, ...rest } = await runs.sessions.get(CALLER, session_id);
    return rest;
  };
  const before = await kept();
  const second = await post("other", { session_id, if_busy: "queue" });
  assertEquals(await kept(), before);
  await answer(clock);
  await second.settled("end");
  const after = await runs.sessions.get(CALLER, session_id);
  assert(after.plan_hash !== before.plan_hash);
});

Deno.test("a session continues with its history, its plan and its modules' state", async () => {
  const provider = new MockProvider({ responses: ["first", "second"] });
  const plan: TestPlan = {
    providers: [provider],
    system: "Be brief.",
    tools: [async (coordinator) => {
      coordinator.session_state.count = Number(coordinator.session_state.count ?? 0) + 1;
      await coordinator.mount("tools", tool("t"));
    }],
  };
  const { finish, runs, memory, names } = service({ plans: { p: plan } });
  const first = await finish("p", { prompt: "one", metadata: { a: 1 } });
  const second = await finish(null, { prompt: "two", session_id: first.session_id });
  assertEquals(second.plan_hash, first.plan_hash);
  assertEquals(provider.requests[1]?.messages.map((message) => message.role), [
    "system",
    "user",
    "assistant",
    "user",
  ]);
  assertEquals((await storedSession(memory, first.session_id)).session_state, { count: 2 });
  assertEquals((await names(second.id)).filter((name) => name.startsWith("session:")), [
    ...["session:resume", "session:state", "session:end", "session:cleanup"],
  ]);
  const session = await runs.sessions.get(CALLER, first.session_id);
  assertEquals([session.run_count, session.metadata], [2, { a: 1 }]);
});

Deno.test("a plan sent with a session replaces its plan and its system text from that run on", async () => {
  const plans: Record<string, TestPlan> = { brief: { system: "Be brief." }, long: { system: "Be long." } };
  const { finish, runs, entries } = service({ plans });
  const first = await finish("brief", { prompt: "one" });
  const { session_id } = first;
  const second = await finish("long", { prompt: "two", session_id });
  const reset = (await entries(second.id)).filter((entry) => entry.event === "context:reset");
  assertEquals(reset.length, 1);
  const third = await finish(null, { prompt: "three", session_id });
  assertEquals([second.plan_hash === first.plan_hash, third.plan_hash], [false, second.plan_hash]);
  const { data: messages } = await runs.sessions.messages(CALLER, session_id);
  assertEquals(messages.map(({ role, content }) => role === "assistant" ? role : content), [
    ...["Be long.", "one", "assistant", "two", "assistant", "three", "assistant"],
  ]);
});

Deno.test("a failure before a run exists leaves no run, no session and no lease", async () => {
  const refused: TestPlan = { refused: new PreampError("policy_refused", "no") };
  const broken: TestPlan = {
    orchestrator: () => {
      throw new Error("no loop");
    },
  };
  const { post, finish, runs, memory } = service({
    plans: { refused, broken, keyless: { providers: [() => null] } },
  });
  const { session_id } = await finish("plain");
  const before = memory.list("run", { namespace: "a", limit: 10 }).records.length;
  for (const fields of [{}, { session_id }]) {
    assertEquals(await codeOf(() => post("refused", fields)), "policy_refused");
    assertEquals(await codeOf(() => post("broken", fields)), "module_load_failed");
    assertEquals(await codeOf(() => post("keyless", fields)), "module_load_failed");
  }
  assertEquals(memory.list("run", { namespace: "a", limit: 10 }).records.length, before);
  assertEquals((await runs.sessions.list(CALLER, {})).data.map((session) => session.id), [session_id]);
  assertEquals((await runs.sessions.get(CALLER, session_id)).run_count, 1);
  assertEquals((await finish("plain", { session_id })).status, "completed");
});

Deno.test("only one of two processes on one store has the lease of a session", async () => {
  const one = service({ plans: { slow: SLOW } });
  const other = service({ plans: { slow: SLOW }, beside: one });
  const first = await one.post("slow");
  const { session_id } = first;
  assertEquals(await codeOf(() => other.post("plain", { session_id })), "session_busy");
  await answer(one.clock);
  await first.settled("end");
  await nextTurn();
  assertEquals((await other.finish("plain", { session_id })).status, "completed");
});

Deno.test("a store that fails to acquire a lease leaves the session free", async () => {
  const one = service({
    store: (memory) => {
      const acquire = memory.acquire.bind(memory);
      let asked = 0;
      memory.acquire = (...args) => {
        if (++asked === 1) throw new Error("store is away");
        return acquire(...args);
      };
      return memory;
    },
  });
  await assertRejects(() => one.post("plain"), Error, "store is away");
  assertEquals((await one.finish("plain")).status, "completed");
});

Deno.test("a deleted run's messages stay in its session; a deleted session takes its runs with it", async () => {
  const { finish, runs, post } = service({ plans: { asking: ASKING } });
  const first = await finish("plain", { prompt: "one" });
  const second = await finish("plain", { prompt: "two", session_id: first.session_id });
  await runs.remove(CALLER, first.id);
  assertEquals(await codeOf(() => runs.get(CALLER, first.id)), "not_found");
  assertEquals(await codeOf(() => runs.events(CALLER, first.id, {})), "not_found");
  assertEquals((await runs.sessions.messages(CALLER, first.session_id)).data.length, 4);
  await runs.sessions.remove(CALLER, first.session_id);
  assertEquals(await codeOf(() => runs.sessions.get(CALLER, first.session_id)), "not_found");
  assertEquals(await codeOf(() => post("plain", { session_id: first.session_id })), "not_found");
  assertEquals(await codeOf(() => runs.get(CALLER, second.id)), "not_found");
});
