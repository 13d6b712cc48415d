/** RunService: idempotency, approvals, reading, limits, deletion, shutdown. */
import { RunProjection } from "../../src/runs/run/run_projection.ts";
import type { Caller, Run, RunHandle } from "../../src/runs/types.ts";
import type { PreampError } from "../../src/sdk/errors.ts";
import { estimateJsonBytes } from "../../src/sdk/json.ts";
import { MockProvider } from "../../src/testing/mock_provider.ts";
import { assert, assertEquals, assertMatch, assertNotEquals, assertRejects } from "../assert.ts";
import { nextTurn, tool, until } from "../support/sessions.ts";
import { CALLER, immediate, service, SlowStore, STRANGER, type TestPlan } from "../support/runs.ts";
import { asking, codeOf, plain, waiting } from "../support/asking_runs.ts";

Deno.test("create() returns the same run for the same key and body, at any time", async () => {
  for (const slow of [false, true]) {
    const provider = new MockProvider();
    const { post, runs, memory } = service({
      plans: { p: { providers: [provider] } },
      ...(slow ? { store: (store) => new SlowStore(store) } : {}),
    });
    const idempotency = { key: "k", body_hash: "h" };
    const together = await Promise.all([1, 2, 3].map(() => post("p", {}, { idempotency })));
    const run = await together[0]!.settled("end");
    const later = await post("p", {}, { idempotency });
    assertEquals([...together, later].map((handle) => handle.id), [run.id, run.id, run.id, run.id]);
    assertEquals(provider.call_count, 1);
    assertEquals((await runs.list(CALLER, {})).data.length, 1);
    assertEquals(
      await codeOf(() => post("p", {}, { idempotency: { key: "k", body_hash: "other" } })),
      "idempotency_conflict",
    );
    const stranger = await post("p", {}, { idempotency: { key: "k", body_hash: "other" } }, STRANGER);
    assertNotEquals(stranger.id, run.id);
    await stranger.settled("end");
    assert(memory.get("idempotency", "a/k"));
  }
});

Deno.test("an idempotency key is kept for `idempotency_hours`", async () => {
  const { post, clock } = service();
  const idempotency = { key: "k", body_hash: "h" };
  const first = await post("plain", {}, { idempotency });
  await first.settled("end");
  await clock.advance(24 * 3_600_000);
  assertNotEquals(
    (await post("plain", {}, { idempotency: { ...idempotency, body_hash: "new" } })).id,
    first.id,
  );
});

Deno.test("create() that fails leaves the key free for a concurrent request", async () => {
  let mounts = 0;
  const flaky: TestPlan = {
    orchestrator: async (coordinator) => {
      await nextTurn();
      if (++mounts === 1) throw new Error("not yet");
      await coordinator.mount("orchestrator", {
        execute: (_a: unknown, _b: unknown, _c: unknown, _d: unknown, _e: unknown) => Promise.resolve("done"),
      });
    },
  };
  const { post } = service({ plans: { flaky } });
  const tries = await Promise.allSettled(
    [1, 2, 3].map(() => post("flaky", {}, { idempotency: { key: "k", body_hash: "h" } })),
  );
  assertEquals(tries.map((one) => one.status), ["rejected", "fulfilled", "fulfilled"]);
  const ids = tries.map((one) => one.status === "fulfilled" ? one.value.id : null);
  assertEquals(ids[1], ids[2]);
});

Deno.test("two processes with the same key at the same time create one run", async () => {
  const one = service({ store: (memory) => new SlowStore(memory) });
  const other = service({ beside: one, store: (memory) => new SlowStore(memory) });
  const idempotency = { key: "k", body_hash: "h" };
  const handles = await Promise.all([one, other].map((server) => server.post("plain", {}, { idempotency })));
  assertEquals(handles[0]!.id, handles[1]!.id);
  assertEquals(one.memory.list("run", { namespace: "a", limit: 10 }).records.length, 1);
  await Promise.all([one, other].map((server) => server.runs.drain(0)));
});

Deno.test("the run object is computed from the log alone", async () => {
  const { decide, handle, entries } = await waiting();
  const compare = async (last: string) => {
    const log = await entries(handle.id);
    assertEquals(log.at(-1)?.event, last);
    const fold = new RunProjection({
      id: handle.id,
      session_id: handle.session_id,
      created_at: handle.current().created_at,
      events_url: "/v1/runs/run_1/events",
      warnings: [],
    });
    for (const entry of log) fold.add(entry);
    const { context: _a, ...folded } = fold.run;
    const { context: _b, ...current } = handle.current();
    assertEquals(plain(folded), plain(current));
  };
  await until(() => handle.current().status === "awaiting_approval");
  await immediate(); // entries without a waiting caller are stored too
  await compare("run:status");
  await decide("allow");
  await handle.settled("end");
  await compare("run:end");
});

Deno.test("runs, approvals and sessions of other callers are not_found, like unknown ones", async () => {
  const { handle, runs, approval, post } = await waiting();
  const { id, session_id } = handle;
  const attempts = (caller: Caller, run_id: string, ses: string): [string, () => Promise<unknown>][] => [
    ["get", () => runs.get(caller, run_id)],
    ["handle", () => runs.handle(caller, run_id)],
    ["remove", () => runs.remove(caller, run_id)],
    ["cancel", () => runs.cancel(caller, run_id, "immediate")],
    ["steer", () => runs.steer(caller, run_id, "x")],
    ["approvals", () => runs.approvals(caller, run_id)],
    ["decide", () => runs.decide(caller, run_id, approval.id, { decision: "allow" })],
    ["events", () => runs.events(caller, run_id, {})],
    ["follow", () => runs.follow(caller, run_id, {})[Symbol.asyncIterator]().next()],
    ["session", () => runs.sessions.get(caller, ses)],
    ["messages", () => runs.sessions.messages(caller, ses)],
    ["session remove", () => runs.sessions.remove(caller, ses)],
    ["create", () => post("plain", { session_id: ses, if_busy: "cancel" }, {}, caller)],
  ];
  for (
    const [[name, foreign], [, unknown]] of attempts(STRANGER, id, session_id).map((one, index) =>
      [
        one,
        attempts(CALLER, "run_none", "ses_none")[index]!,
      ] as const
    )
  ) {
    const [a, b] = [await assertRejects(foreign), await assertRejects(unknown)] as PreampError[];
    assertEquals([a!.code, b!.code], ["not_found", "not_found"], name);
    const hidden = (message: string) => message.replace(/"[^"]*"/, '""');
    assertEquals(hidden(a!.message), hidden(b!.message));
  }
  assertEquals((await runs.list(STRANGER, {})).data, []);
  assertEquals((await runs.sessions.list(STRANGER, {})).data, []);
  assertEquals(await codeOf(() => runs.decide(CALLER, id, "apr_none", { decision: "allow" })), "not_found");
  assertEquals(handle.current().status, "awaiting_approval");
  await runs.cancel(CALLER, id, "immediate");
  await handle.settled("end");
});

Deno.test("list() is newest first, by session and status, in pages", async () => {
  const { finish, runs, clock, post } = service({
    plans: { asking: asking(), bad: { providers: [[{ error: { message: "no" } }]] } },
  });
  const made: Run[] = [];
  for (const name of ["plain", "bad", "plain"]) {
    made.push(await finish(name));
    await clock.advance(1_000);
  }
  const open = await post("asking", { session_id: made[0]!.session_id });
  await open.settled("attention");
  const ids = async (filter: Parameters<typeof runs.list>[1]) =>
    (await runs.list(CALLER, filter)).data.map((run) => run.id);
  const [a, b, c] = made.map((run) => run.id);
  assertEquals(await ids({}), [open.id, c, b, a]);
  assertEquals(await ids({ status: "completed" }), [c, a]);
  assertEquals(await ids({ status: "failed" }), [b]);
  assertEquals(await ids({ status: "awaiting_approval" }), [open.id]);
  assertEquals(await ids({ status: "running" }), []);
  assertEquals(await ids({ session_id: made[0]!.session_id }), [open.id, a]);
  const page = await runs.list(CALLER, { limit: 3 });
  assertEquals(page.data.length, 3);
  assertEquals(await ids({ limit: 3, cursor: page.next_cursor! }), [a]);
  assertEquals(await codeOf(() => runs.list(CALLER, { cursor: "nonsense" })), "request_invalid");
  await runs.cancel(CALLER, open.id, "immediate");
  await open.settled("end");
});

Deno.test("follow() yields every entry in pages of about 8 MiB", async () => {
  const { post, runs } = service();
  const run = await (await post("plain", { prompt: "x".repeat(5 * 1024 * 1024) })).settled("end");
  const pages = await Array.fromAsync(runs.follow(CALLER, run.id, {}));
  const entries = pages.flat();
  assertEquals(entries.map(({ seq }) => seq), entries.map((_, index) => index + 1));
  assertEquals(entries.at(-1)!.event, "run:end");
  const large = pages.map((page) => page.filter((entry) => estimateJsonBytes(entry) > 5_000_000).length);
  assertEquals([Math.max(...large), large.length > 1], [2, true]);
});

Deno.test("follow() of a running run yields pages of about 8 MiB, also of what was stored at once", async () => {
  const flood: NonNullable<TestPlan["hooks"]>[number] = ({ hooks }) => {
    hooks.register("prompt:submit", () => {
      for (let n = 0; n < 6; n++) void hooks.emit("my:event", { text: "x".repeat(4 * 1024 * 1024) });
      return null;
    });
  };
  const { post, runs } = service({ plans: { plan: { providers: [["done"]], hooks: [flood] } } });
  const { id } = await post("plan");
  const pages = await Array.fromAsync(runs.follow(CALLER, id, {}));
  const floods = pages.map((page) => page.filter(({ event }) => event === "my:event").length);
  assertEquals(floods.reduce((sum, count) => sum + count), 6);
  assert(Math.max(...floods) <= 3, String(floods));
});

Deno.test("remove() deletes a run with its log and its approvals", async () => {
  const { handle, decide, runs, memory } = await waiting();
  assertEquals(await codeOf(() => runs.remove(CALLER, handle.id)), "session_busy");
  await decide("allow");
  await handle.settled("end");
  assert(memory.get("approval", `${handle.id}/apr_1`));
  await runs.remove(CALLER, handle.id);
  assertEquals(memory.get("approval", `${handle.id}/apr_1`), null);
  assertEquals(memory.entries(handle.id, 0, 1), null);
  assertEquals(await codeOf(() => runs.remove(CALLER, handle.id)), "not_found");
});

Deno.test("create() limits concurrent runs, in total and for each key; queued runs count", async () => {
  const plans = { asking: asking() };
  const { post, runs } = service({ plans, limits: { max_concurrent_runs: 4, max_runs_per_key: 2 } });
  const together = await Promise.allSettled([1, 2, 3, 4].map(() => post("asking")));
  assertEquals(together.map((one) => one.status), ["fulfilled", "fulfilled", "rejected", "rejected"]);
  const error = (together[2] as PromiseRejectedResult).reason as PreampError;
  assertEquals([error.code, /max_runs_per_key is 2/.test(error.message)], ["too_many_runs", true]);
  const [first, second] = together.map((one) => (one as PromiseFulfilledResult<RunHandle>).value);
  const { session_id } = await first!.settled("attention");
  const replacing = await post("asking", { session_id });
  assertEquals((await first!.settled("end")).status, "cancelled");
  assertEquals(await codeOf(() => post("plain", { session_id, if_busy: "queue" })), "too_many_runs");
  for (let n = 0; n < 2; n++) await post("asking", {}, {}, { ...STRANGER, name: `key:${n}` });
  assertMatch(
    (await assertRejects(() => post("plain", {}, {}, { ...STRANGER, name: "key:3" }))).message,
    /max_concurrent_runs is 4/,
  );
  for (const handle of [replacing, second!]) {
    await runs.cancel(CALLER, handle.id, "immediate");
    await handle.settled("end");
  }
  assertEquals((await (await post("plain")).settled("end")).status, "completed");
  await runs.drain(0);
});

Deno.test("create() that fails releases its slot", async () => {
  const broken: TestPlan = {
    context: () => {
      throw new Error("no");
    },
  };
  const { post, finish } = service({ plans: { broken }, limits: { max_runs_per_key: 1 } });
  for (let n = 0; n < 3; n++) assertEquals(await codeOf(() => post("broken")), "module_load_failed");
  assertEquals((await finish("plain")).status, "completed");
});

Deno.test("an unpriced call ends the run when the plan or request sets max_cost_usd, not when the policy does", async () => {
  const { finish } = service();
  const asked = await finish("plain", { limits: { max_cost_usd: "1" } });
  assertEquals([asked.status, asked.stop_reason, asked.usage.cost_usd], [
    "incomplete",
    "limit:max_cost_usd",
    null,
  ]);
  assertEquals((await finish("plain")).status, "completed");
});

Deno.test("a client that disconnects cancels its run only with on_disconnect: cancel", async () => {
  for (const on_disconnect of [undefined, "continue", "cancel"] as const) {
    const { post, clock } = service({
      plans: { slow: { providers: [[{ text: "slow", delay_ms: 1_000 }]] } },
    });
    const gone = new AbortController();
    const handle = await post("slow", on_disconnect ? { on_disconnect } : {}, { signal: gone.signal });
    await until(() => clock.pending > 1);
    gone.abort();
    await clock.advance(1_000);
    assertEquals(
      (await handle.settled("end")).status,
      on_disconnect === "cancel" ? "cancelled" : "completed",
    );
  }
});

Deno.test("steer() works for a loop that supports it; refuses other loops, blank text and ended runs", async () => {
  const { handle, runs, decide } = await waiting();
  assertEquals(await codeOf(() => runs.steer(CALLER, handle.id, " ")), "request_invalid");
  await runs.steer(CALLER, handle.id, "look here");
  await decide("allow");
  const run = await handle.settled("end");
  const { data: messages } = await runs.sessions.messages(CALLER, run.session_id);
  assertEquals(messages.filter((message) => message.role === "user").map((message) => message.content), [
    "hello",
    "look here",
  ]);
  assertEquals(await codeOf(() => runs.steer(CALLER, handle.id, "too late")), "run_ended");
  const deaf = await waiting({ ...asking(), loop: { steering: false } });
  assertEquals(await codeOf(() => deaf.runs.steer(CALLER, deaf.handle.id, "x")), "not_steerable");
  await deaf.runs.cancel(CALLER, deaf.handle.id, "immediate");
});

Deno.test("drain() refuses new runs, stops running ones, and cancels queued ones", async () => {
  const { post, runs, clock } = service({
    plans: { slow: { providers: [[{ text: "slow", delay_ms: 60_000 }]] } },
  });
  const first = await post("slow");
  const queued = await post("plain", { session_id: first.session_id, if_busy: "queue" });
  await until(() => clock.pending > 1);
  const drained = runs.drain(5_000);
  assertEquals(await codeOf(() => post("plain")), "draining");
  await until(() => clock.pending > 2);
  await clock.advance(3_000);
  await drained;
  assertEquals([first.current().status, queued.current().status], ["cancelled", "cancelled"]);
});

Deno.test("close() resolves when the cancelled runs are stored", async () => {
  const { post, runs, clock, logs, memory } = service({
    plans: { slow: { providers: [[{ text: "slow", delay_ms: 60_000 }]] } },
    store: (memory) => new SlowStore(memory),
  });
  const first = await post("slow");
  const queued = await post("plain", { session_id: first.session_id, if_busy: "queue" });
  await until(() => clock.pending > 1);
  await runs.close();
  const statuses = [first, queued].map(({ id }) => memory.get("run", id)?.value.status);
  assertEquals([statuses, logs], [["cancelled", "cancelled"], []]);
});

Deno.test("a module that emits after the end changes nothing", async () => {
  let emit: (() => Promise<unknown>) | null = null;
  const { finish, entries, memory } = service({
    plans: {
      p: {
        hooks: [(coordinator) => {
          emit = () => coordinator.hooks.emit("late:event", {});
          coordinator.hooks.register("x", () => null);
        }],
      },
    },
  });
  const run = await finish("p");
  const before = await entries(run.id);
  await emit!();
  await nextTurn();
  assertEquals(await entries(run.id), before);
  assertEquals(memory.get("run", run.id)?.value.status, "completed");
});

Deno.test("the numbers of a context's status are on the run object", async () => {
  const context = (status: unknown): TestPlan => ({
    hooks: [(coordinator) => {
      coordinator.registerCapability("context.status", status);
      coordinator.hooks.register("x", () => null);
    }],
  });
  const { finish, logs } = service({
    plans: {
      good: context(() => ({ tokens: 61, budget: 93_790, level: 0, compactions: 0, secret: "no" })),
      odd: context(() => ({ tokens: "many", budget: Infinity })),
      broken: context(() => {
        throw new Error("no status");
      }),
    },
  });
  assertEquals((await finish("good")).context, { tokens: 61, budget: 93_790, level: 0, compactions: 0 });
  assertEquals((await finish("odd")).context, { tokens: 0, budget: 0, level: 0, compactions: 0 });
  assertEquals((await finish("broken")).status, "completed");
  assert(logs.some((log) => log.event === "context_status_failed"));
});

Deno.test("warnings of modules are on the run object", async () => {
  const { finish } = service({
    plans: {
      p: {
        tools: [
          () => {
            throw new Error("no key");
          },
          async (coordinator) => await coordinator.mount("tools", tool("own_name"), "other-name"),
        ],
      },
    },
  });
  const run = await finish("p");
  assertEquals(run.warnings.map((warning) => warning.code), ["module_mount_failed", "tool_name_mismatch"]);
  assertEquals(Object.keys(run.isolation), ["loop-streaming", "context-test", "provider-0", "tool-1"]);
});
