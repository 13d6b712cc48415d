/** RunService: idempotency, approvals, reading, limits, deletion, shutdown. */
import type { Entry } from "../../src/kernel/host.ts";
import { RunProjection } from "../../src/runs/run/run_projection.ts";
import type { Approval, Caller, Run, RunHandle } from "../../src/runs/types.ts";
import type { PreampError } from "../../src/sdk/errors.ts";
import { MockProvider } from "../../src/sdk/testing/mock_provider.ts";
import type { HookResult, JsonObject } from "../../src/sdk/types.ts";
import { ConflictError } from "../../src/store/store.ts";
import { assert, assertEquals, assertMatch, assertNotEquals, assertRejects } from "../assert.ts";
import { calls, hook, nextTurn, tool, until } from "../support/sessions.ts";
import {
  CALLER,
  immediate,
  service,
  type ServiceOptions,
  SlowStore,
  STRANGER,
  type TestPlan,
} from "../support/runs.ts";

async function codeOf(run: () => Promise<unknown>): Promise<string> {
  return (await assertRejects(run) as PreampError).code;
}

const asking = (result: Partial<HookResult> & JsonObject = {}): TestPlan => ({
  providers: [[calls(["t", { a: 1 }]), "done"]],
  tools: [tool("t")],
  hooks: [
    hook("tool:pre", () => ({ action: "ask_user", approval_prompt: "Allow t?", ...result }) as HookResult),
  ],
});

const plain = (value: unknown) => JSON.parse(JSON.stringify(value));

/** A run that awaits approval, and its approval. */
async function waiting(plan: TestPlan = asking(), options: ServiceOptions = {}) {
  const made = service({ plans: { asking: plan }, ...options });
  const handle = await made.post("asking");
  const { approvals: [approval] } = await handle.settled("attention");
  const decide = (decision: string, more: { reason?: string; args_hash?: string } = {}, id = approval!.id) =>
    made.runs.decide(CALLER, handle.id, id, { decision, ...more });
  return { ...made, handle, approval: approval!, decide };
}

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

Deno.test("decide() grants an approval: the run continues, the resource has who and when", async () => {
  const { decide, handle, approval, runs, clock } = await waiting();
  const { created_at, expires_at, args_hash } = approval;
  assertEquals(plain(approval), {
    id: "apr_1",
    object: "approval",
    run_id: handle.id,
    session_id: handle.session_id,
    tool_name: "t",
    tool_call_id: "c1",
    tool_input: { a: 1 },
    args_hash,
    action: "execute",
    risk_level: "low",
    prompt: "Allow t?",
    options: ["Allow", "Deny"],
    default: "deny",
    hook_name: "test-hook",
    status: "pending",
    created_at,
    expires_at,
  });
  await clock.advance(5_000);
  const granted = await decide("allow", { reason: "looks right", args_hash });
  const { status, decision, reason, decided_by, decided_at } = granted;
  assertEquals({ status, decision, reason, decided_by, decided_at }, {
    status: "granted",
    decision: "allow",
    reason: "looks right",
    decided_by: "key:ci",
    decided_at: "2026-01-01T00:00:05.000Z",
  });
  const run = await handle.settled("end");
  assertEquals([run.status, run.tool_call_count, run.approvals], ["completed", 1, []]);
  assertEquals((await runs.approvals(CALLER, handle.id)).map((one) => one.status), ["granted"]);
});

Deno.test("decide() denies an approval: the call does not run, the run continues", async () => {
  const { decide, handle, entries } = await waiting();
  assertEquals((await decide("deny", { reason: "no" })).status, "denied");
  const run = await handle.settled("end");
  assertEquals([run.status, run.tool_call_count], ["completed", 0]);
  const events = (await entries(run.id)).map((entry) => entry.event);
  assertEquals(events.slice(events.indexOf("tool:pre"), events.indexOf("tool:pre") + 6), [
    ...["tool:pre", "approval:required", "run:status", "approval:denied", "run:status", "context:message"],
  ]);
});

Deno.test("decide() accepts an offered option in any case and refuses others", async () => {
  const options = [{ label: "Go", effect: "allow" }, { label: "Stop", effect: "deny" }, "Maybe"];
  for (
    const [decision, label, status] of [["go", "Go", "granted"], ["STOP", "Stop", "denied"], [
      "maybe",
      "Maybe",
      "denied",
    ]]
  ) {
    const { decide, handle } = await waiting(asking({ approval_options: options }));
    assertEquals(await codeOf(() => decide("Allow once")), "request_invalid");
    assertEquals(await codeOf(() => decide("")), "request_invalid");
    const decided = await decide(decision!);
    assertEquals([decided.status, decided.decision], [status, label]);
    await handle.settled("end");
  }
});

Deno.test("decide() accepts one answer and refuses later ones, also when they are concurrent", async () => {
  for (const slow of [false, true]) {
    const { decide, handle } = await waiting(
      asking(),
      slow ? { store: (memory) => new SlowStore(memory) } : {},
    );
    const answers = await Promise.allSettled([decide("allow"), decide("deny"), decide("allow")]);
    assertEquals(answers.filter((one) => one.status === "fulfilled").length, 1);
    for (const one of answers) {
      if (one.status === "rejected") assertEquals(one.reason.code, "approval_already_resolved");
    }
    assertEquals(await codeOf(() => decide("allow")), "approval_already_resolved");
    await handle.settled("end");
    assertEquals(await codeOf(() => decide("allow")), "approval_already_resolved");
  }
});

Deno.test("decide() refuses an answer for other arguments, and the question stays open", async () => {
  const { decide, approval, handle } = await waiting();
  assertEquals(await codeOf(() => decide("allow", { args_hash: "sha256-other" })), "approval_args_mismatch");
  assertEquals(handle.current().status, "awaiting_approval");
  await decide("allow", { args_hash: approval.args_hash });
  assertEquals((await handle.settled("end")).status, "completed");
});

Deno.test("an approval expires without an answer: its default applies, a late answer is refused", async () => {
  for (const approval_default of ["deny", "allow"]) {
    const { decide, handle, runs, clock, entries } = await waiting(
      asking({ approval_timeout: 60, approval_default }),
    );
    await clock.advance(60_000);
    const run = await handle.settled("end");
    assertEquals([run.status, run.tool_call_count], ["completed", approval_default === "allow" ? 1 : 0]);
    const [approval] = await runs.approvals(CALLER, handle.id);
    assertEquals([approval?.status, approval?.decision, approval?.decided_by], ["expired", "timeout", null]);
    const event = approval_default === "allow" ? "approval:granted" : "approval:denied";
    const entry_of_event = (await entries(handle.id)).find((entry) => entry.event === event);
    assertEquals([entry_of_event?.data.decision, entry_of_event?.data.decided_by], ["timeout", null]);
    assertEquals(await codeOf(() => decide("allow")), "approval_expired");
  }
});

Deno.test("decide() refuses an answer between the expiry and the end of the run", async () => {
  const plan = asking({ approval_timeout: 60 });
  const { decide, clock, handle } = await waiting({
    ...plan,
    providers: [[calls(["t"]), { text: "late", delay_ms: 5_000 }]],
  });
  await clock.advance(60_000);
  await until(() => handle.current().status === "running" && clock.pending > 1);
  assertEquals(await codeOf(() => decide("allow")), "approval_expired");
  await clock.advance(5_000);
  await handle.settled("end");
});

Deno.test("decide() accepts an answer by a reader that answers as soon as the question is readable", async () => {
  const { post, runs } = service({ plans: { asking: asking() }, store: (memory) => new SlowStore(memory) });
  const handle = await post("asking");
  for await (const page of runs.follow(CALLER, handle.id, {})) {
    const required = page.find((entry) => entry.event === "approval:required");
    if (required) {
      await runs.decide(CALLER, handle.id, String(required.data.approval_id), { decision: "allow" });
    }
  }
  assertEquals(handle.current().tool_call_count, 1);
});

Deno.test("`ask` of create() answers; null applies the default at once; an error leaves it to the timeout", async () => {
  const ask = async (answer: (approval: Approval) => Promise<{ decision: string } | null>) => {
    const { post, clock, logs } = service({ plans: { asking: asking({ approval_timeout: 60 }) } });
    const handle = await post("asking", {}, { ask: answer });
    const failed = () => logs.some((log) => log.event === "ask_failed");
    await until(() => handle.current().ended_at !== null || failed());
    if (failed()) await clock.advance(60_000);
    return (await handle.settled("end")).tool_call_count;
  };
  assertEquals(
    await ask(({ prompt }) => Promise.resolve({ decision: prompt === "Allow t?" ? "allow" : "deny" })),
    1,
  );
  assertEquals(await ask(() => Promise.resolve(null)), 0);
  assertEquals(await ask(() => Promise.reject(new Error("no terminal"))), 0);
});

Deno.test("a question that cannot be stored is denied, and the run ends", async () => {
  const { post, logs } = service({
    plans: { asking: asking() },
    store: (memory) => {
      const commit = memory.commit.bind(memory);
      memory.commit = (changes, fence) => {
        if (changes.some((change) => "put" in change && change.put.kind === "approval")) {
          throw new Error("disk full");
        }
        return commit(changes, fence);
      };
      return memory;
    },
  });
  const run = await (await post("asking")).settled("end");
  assertEquals([run.status, run.tool_call_count], ["completed", 0]);
  assert(logs.some((log) => log.event === "approval_failed"));
});

Deno.test("waiting for approval does not count for max_duration_s", async () => {
  const { decide, handle, clock } = await waiting({
    ...asking({ approval_timeout: 7_200 }),
    limits: { max_duration_s: 10 },
  }, { limits: { approval_timeout: 7_200 } });
  await clock.advance(3_600_000);
  await decide("allow");
  assertEquals((await handle.settled("end")).status, "completed");
});

Deno.test("cancel() denies the open question of a run that awaits approval", async () => {
  const { handle, runs, entries } = await waiting();
  await runs.cancel(CALLER, handle.id, "graceful");
  const run = await handle.settled("end");
  assertEquals([run.status, run.approvals], ["cancelled", []]);
  const denied = (await entries(run.id)).filter((entry) => entry.event === "approval:denied");
  assertEquals(denied.map((entry) => entry.data.reason), ["cancelled"]);
  assertEquals(plain(await runs.cancel(CALLER, handle.id, "immediate")), plain(run));
});

Deno.test("a run with two questions waits until both are answered", async () => {
  const plan = { ...asking(), providers: [[calls(["t"], ["t"]), "done"]] };
  const { handle, runs, decide, names } = await waiting(plan);
  await until(() => handle.current().approvals.length === 2);
  await decide("allow");
  assertEquals(handle.current().status, "awaiting_approval");
  await decide("deny", {}, "apr_2");
  const run = await handle.settled("end");
  assertEquals(run.tool_call_count, 1);
  assertEquals((await names(run.id)).filter((name) => name === "run:status").length, 2);
  assertEquals((await runs.approvals(CALLER, run.id)).map((one) => one.status), ["granted", "denied"]);
});

Deno.test("follow() yields every entry after `after` once, and ends with the run", async () => {
  for (const slow of [false, true]) {
    const { post, runs, clock } = service({
      plans: {
        p: { providers: [[calls(["t"]), { text: "x".repeat(400), delay_ms: 10 }]], tools: [tool("t")] },
      },
      ...(slow ? { store: (memory) => new SlowStore(memory) } : {}),
    });
    const handle = await post("p");
    const read = async (after: number) => {
      const seqs: number[] = [];
      for await (const page of runs.follow(CALLER, handle.id, { after })) {
        seqs.push(...page.map((entry) => entry.seq));
      }
      return seqs;
    };
    const readers = [0, 5, 17].map(read);
    for (let turn = 0; turn < 100 && handle.current().ended_at === null; turn++) await clock.advance(10);
    const last =
      (await handle.settled("end"), (await runs.events(CALLER, handle.id, { limit: 1_000 })).at(-1)!.seq);
    const range = (from: number) => Array.from({ length: last - from }, (_, index) => from + index + 1);
    assertEquals(await Promise.all(readers), [range(0), range(5), range(17)]);
    assertEquals(await Promise.all([0, last - 1, last, last + 99].map(read)), [range(0), [last], [], []]);
  }
});

Deno.test("follow() yields pages of stored entries only", async () => {
  const many = Array.from(
    { length: 300 },
    (_, index) => ["t", { n: index }, `c${index}`] as [string, JsonObject, string],
  );
  const { post, runs, memory } = service({
    plans: {
      p: { providers: [[calls(...many), "done"]], tools: [tool("t")], limits: { max_tool_calls: 300 } },
    },
    limits: { max_answer_tool_calls: 300 },
    store: (store) => new SlowStore(store, 1),
  });
  const handle = await post("p");
  let most = 0;
  let read = 0;
  for await (const page of runs.follow(CALLER, handle.id, {})) {
    most = Math.max(most, page.length);
    read += page.length;
    const stored = memory.entries(handle.id, 0, Number.MAX_SAFE_INTEGER)!;
    assert(page.at(-1)!.seq <= stored.length);
    if (read % 3 === 0) await nextTurn();
  }
  assertEquals([most <= 256, handle.current().status], [true, "completed"]);
  assertEquals(read, memory.entries(handle.id, 0, Number.MAX_SAFE_INTEGER)!.length);
});

Deno.test("follow() ends when its reader stops, and leaves no listener behind", async () => {
  const { post, runs, clock } = service({
    plans: { slow: { providers: [[{ text: "slow", delay_ms: 1_000 }]] } },
  });
  const handle = await post("slow");
  const gone = new AbortController();
  let listeners = 0;
  const { addEventListener, removeEventListener } = gone.signal;
  gone.signal.addEventListener = (...args: unknown[]) => {
    listeners++;
    return addEventListener.apply(gone.signal, args as never);
  };
  gone.signal.removeEventListener = (...args: unknown[]) => {
    listeners--;
    return removeEventListener.apply(gone.signal, args as never);
  };
  const read = (async () => {
    for await (const _page of runs.follow(CALLER, handle.id, { signal: gone.signal }));
  })();
  await until(() => clock.pending > 1 && listeners > 0);
  assertEquals(listeners, 1);
  gone.abort();
  await read;
  assertEquals(listeners, 0);
  assertEquals(handle.current().status, "running");
  await clock.advance(1_000);
  await handle.settled("end");
});

Deno.test("events() returns stored entries in pages", async () => {
  const { finish, runs } = service();
  const { id } = await finish("plain");
  const all = await runs.events(CALLER, id, {});
  assertEquals((await runs.events(CALLER, id, { after: 3, limit: 2 })).map((entry) => entry.seq), [4, 5]);
  assertEquals(await runs.events(CALLER, id, { after: all.length }), []);
});

Deno.test("events() of an expired log fails with the run object", async () => {
  const { finish, runs, memory } = service();
  const run = await finish("plain");
  memory.commit([{ deleteLog: run.id }]);
  const error = await assertRejects(() => runs.events(CALLER, run.id, {})) as PreampError;
  assertEquals([error.code, (error.facts.run as Run).id], ["log_expired", run.id]);
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
      history: [],
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

Deno.test("a full log ends the run; deltas do not count", async () => {
  const chatty: TestPlan = {
    providers: [[calls(["t"]), "never"]],
    tools: [async (coordinator) =>
      await coordinator.mount(
        "tools",
        tool("t", async () => {
          for (let n = 0; n < 100; n++) {
            await coordinator.hooks.emit("my:event", { text: "x".repeat(1_000) });
          }
        }),
      )],
  };
  const streaming: TestPlan = {
    providers: [new MockProvider({ response: "x".repeat(4_000), chunk_chars: 10 })],
  };
  for (
    const [limits, stop_reason] of [
      [{ max_log_entries: 60 }, "limit:max_log_entries"],
      [{ max_log_bytes: 40_000 }, "limit:max_log_bytes"],
    ] as const
  ) {
    const { finish, names } = service({ plans: { chatty, streaming }, limits });
    const run = await finish("chatty");
    assertEquals([run.status, run.stop_reason], ["incomplete", stop_reason]);
    assertEquals((await names(run.id)).at(-1), "run:end");
    assertEquals((await finish("streaming")).status, "completed");
  }
});

Deno.test("deltas do not grow a log without bound: very many are joined, very much text ends the run", async () => {
  const response = "x".repeat(40_000);
  const streaming: TestPlan = { providers: [new MockProvider({ response, chunk_chars: 10 })] };
  const joined = service({ plans: { streaming }, limits: { max_log_entries: 100 } });
  const run = await joined.finish("streaming");
  const pieces = (await joined.entries(run.id)).filter(({ event }) => event === "content_block:delta");
  assertEquals([run.status, pieces.map(({ data }) => data.delta).join("")], ["completed", response]);
  assert(pieces.length < 110, `${pieces.length} pieces`);
  const endless = new MockProvider();
  endless.complete = async (_request, options = {}) => {
    while (!options.signal?.aborted) {
      options.onDelta?.({ block_index: 0, block_type: "text", delta: "for ever and " });
      await immediate();
    }
    throw options.signal.reason;
  };
  const much = service({ plans: { endless: { providers: [endless] } }, limits: { max_log_bytes: 5_000 } });
  assertEquals((await much.finish("endless")).stop_reason, "limit:max_log_bytes");
});

Deno.test("a secret that is split over deltas is in none of them, nor in the joined text", async () => {
  const secret = "sk-live-0123456789";
  for (const chunk_chars of [1, 2, 5, 7]) {
    const provider = new MockProvider({ response: `the key is ${secret}, keep it`, chunk_chars });
    const { finish, entries } = service({ plans: { leak: { secrets: [secret], providers: [provider] } } });
    const run = await finish("leak");
    const pieces = (await entries(run.id)).filter(({ event }) => event === "content_block:delta");
    const text = pieces.map(({ data }) => data.delta).join("");
    assertEquals(text, "the key is [REDACTED], keep it");
    assertEquals(text, run.output_text);
    assertEquals(pieces.map(({ data }) => data.sequence), pieces.map((_, index) => index + 1));
  }
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

Deno.test("secrets are in no entry, no record and no object, whatever their way there", async () => {
  const secret = "sk-live-0123456789";
  const plan: TestPlan = {
    secrets: [secret],
    providers: [
      new MockProvider({
        responses: [calls(["t", { key: secret, api_key: "short", total_tokens: 5 }]), `the key is ${secret}`],
        chunk_chars: 1_000,
      }),
    ],
    tools: [async (coordinator) => {
      coordinator.session_state.note = `kept ${secret}`;
      await coordinator.mount("tools", tool("t", () => ({ password: "hunter2", text: `got ${secret}` })));
    }],
    hooks: [
      hook(
        "tool:pre",
        () => ({ action: "inject_context", context_injection: `remember ${secret}`, reason: secret }),
      ),
      hook("tool:post", () => ({ action: "continue", user_message: `used ${secret}` })),
      hook("session:end", () => {
        throw new Error(secret);
      }),
    ],
  };
  const failing: TestPlan = { secrets: [secret], providers: [[{ error: { message: `401 for ${secret}` } }]] };
  const { finish, entries, memory, runs } = service({ plans: { plan, failing } });
  for (const name of ["plan", "failing"]) {
    const run = await finish(name, { prompt: `my key is ${secret}`, metadata: { note: secret } });
    const log = JSON.stringify(await entries(run.id));
    for (const text of [log, JSON.stringify(run), JSON.stringify(memory.get("run", run.id))]) {
      assert(
        !text.includes(secret),
        text.slice(Math.max(0, text.indexOf(secret) - 200), text.indexOf(secret) + 40),
      );
    }
    assert(!JSON.stringify(await runs.sessions.messages(CALLER, run.session_id)).includes(secret));
    if (name !== "plan") continue;
    // messages are redacted by value only, so tool:post and the next request agree
    const [post, answer] = (await entries(run.id)).filter(({ event, data }) =>
      event === "tool:post" || (data.message as JsonObject | undefined)?.role === "tool"
    );
    const input = { key: "[REDACTED]", api_key: "short", total_tokens: 5 };
    const output = { password: "hunter2", text: "got [REDACTED]" };
    assertEquals(post?.data.tool_input, input);
    assertEquals((post?.data.result as JsonObject).output, output);
    const { content } = answer?.data.message as JsonObject;
    assertEquals(JSON.parse(String(content).split("\n\n")[0]!), output);
  }
});

Deno.test("the plan in the log is redacted with `raw` too", async () => {
  const { finish, entries } = service({ plans: { p: { session: { raw: true } } } });
  const run = await finish(null, {
    plan: { name: "p", providers: [{ module: "x", config: { api_key: "sk-live", model: "m" } }] },
  });
  const start = (await entries(run.id)).find((entry) => entry.event === "session:start");
  assertEquals(start?.data.raw, {
    name: "p",
    providers: [{ module: "x", config: { api_key: "[REDACTED]", model: "m" } }],
  });
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
  const messages = await runs.sessions.messages(CALLER, run.session_id);
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

Deno.test("a store that fails ends the run, logs an error, and frees the session", async () => {
  for (let at = 2; at <= 9; at++) {
    let commits = 0;
    let failing: SlowStore | null = null;
    const { post, logs, runs } = service({
      plans: { p: { providers: [[calls(["t"]), "done"]], tools: [tool("t")] } },
      store: (memory) => {
        const commit = memory.commit.bind(memory);
        memory.commit = (changes, fence) => {
          if (++commits >= at) throw new Error("disk full");
          return commit(changes, fence);
        };
        return failing = new SlowStore(memory);
      },
    });
    const handle = await post("p");
    const run = await handle.settled("end");
    assertEquals(run.ended_at !== null, true);
    if (commits >= at) assert(logs.some((log) => log.event === "run_end_not_stored"), String(at));
    await nextTurn();
    await until(() => failing !== null);
    assertEquals((await runs.get(CALLER, run.id)).ended_at, run.ended_at, String(at));
  }
});

Deno.test("the commit after a failed one stores its entries too: the log has no gap", async () => {
  const { post, entries } = service({
    plans: { p: { providers: [[calls(["t"]), "done"]], tools: [tool("t")] } },
    store: (memory) => {
      const commit = memory.commit.bind(memory);
      let once = true;
      memory.commit = (changes, fence) => {
        const append = changes.find((change) => "append" in change);
        if (once && append && append.after > 0) {
          once = false;
          throw new Error("busy");
        }
        return commit(changes, fence);
      };
      return new SlowStore(memory);
    },
  });
  const run = await (await post("p")).settled("end");
  const log = await entries(run.id);
  assertEquals(log.map((entry) => entry.seq), log.map((_, index) => index + 1));
  assertEquals(log.at(-1)?.event, "run:end");
});

Deno.test("a run whose lease another process acquired cannot commit", async () => {
  const { post, memory, clock, runs } = service({
    plans: { slow: { providers: [[{ text: "slow", delay_ms: 1_000 }]] } },
  });
  const handle = await post("slow");
  await until(() => clock.pending > 1);
  const before = memory.entries(handle.id, 0, 1_000)!.length;
  memory.release(`session/${handle.session_id}`, "proc_1");
  memory.acquire(`session/${handle.session_id}`, "somebody", 60_000);
  await clock.advance(1_000);
  assertEquals((await handle.settled("end")).status, "failed");
  assertEquals(memory.entries(handle.id, 0, 1_000)!.length, before);
  assertEquals(memory.get("run", handle.id)?.value.status, "running");
  await runs.drain(0);
  assert(new ConflictError("x") instanceof Error);
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

Deno.test("all entries of one run have the expected envelope and order", async () => {
  const { finish, entries } = service();
  const run = await finish("plain");
  const log: Entry[] = await entries(run.id);
  assertEquals(Object.keys(log[0]!), ["seq", "event", "ts", "run_id", "session_id", "data"]);
  for (const entry of log) {
    assertEquals([entry.run_id, entry.session_id], [run.id, run.session_id]);
    assertMatch(entry.ts, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  }
});
