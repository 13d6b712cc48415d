/** Questions of a run to people, and their answers. */
import { closedApprovalError } from "../../../src/runs/run/approval_queue.ts";
import type { Approval } from "../../../src/runs/types.ts";
import type { Entry } from "../../../src/kernel/host.ts";
import { type Change, ConflictError } from "../../../src/store/store.ts";
import { assertEquals, assertRejects } from "../../assert.ts";
import { calls, hook, tool, until } from "../../support/sessions.ts";
import { CALLER, service, SlowStore, type TestPlan } from "../../support/runs.ts";
import { asking, codeOf, plain, waiting } from "../../support/asking_runs.ts";

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

Deno.test("the record of an approval outlives its run, and expires", async () => {
  const { decide, handle, approval, memory, clock } = await waiting();
  await decide("allow");
  await handle.settled("end");
  const key = `${handle.id}/${approval.id}`;
  await clock.advance(29 * 86_400_000);
  assertEquals(memory.get("approval", key)?.value.status, "granted");
  await clock.advance(2 * 86_400_000);
  assertEquals(memory.get("approval", key), null);
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

Deno.test("`ask` of create() answers; null denies at once; an error leaves it to the timeout", async () => {
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

Deno.test("a question that cannot be stored ends the run, and its call does not run", async () => {
  let isRefused = false;
  const { post, names } = service({
    plans: { asking: asking() },
    store: (memory) => {
      const commit = memory.commit.bind(memory);
      memory.commit = (changes, fence) => {
        const asks = changes.some((change) => "put" in change && change.put.kind === "approval");
        if (asks && !isRefused) {
          isRefused = true;
          throw new Error("disk full");
        }
        return commit(changes, fence);
      };
      return memory;
    },
  });
  const run = await (await post("asking")).settled("end");
  assertEquals([isRefused, run.status, run.tool_call_count], [true, "failed", 0]);
  assertEquals((await names(run.id)).filter((name) => name === "approval:granted"), []);
});

Deno.test("a question and its entry are stored in one commit, so that any reader can answer it", async () => {
  const stored: string[][] = [];
  const made = await waiting(asking(), {
    store: (memory) => {
      const commit = memory.commit.bind(memory);
      memory.commit = (changes, fence) => {
        stored.push(
          changes.flatMap((change) =>
            "append" in change
              ? change.entries.map((entry) => (entry as Entry).event)
              : "put" in change && change.put.kind === "approval"
              ? [`${change.put.value.status}`]
              : []
          ),
        );
        return commit(changes, fence);
      };
      return memory;
    },
  });
  await made.decide("allow");
  await made.handle.settled("end");
  assertEquals(stored.filter((of) => of.includes("pending")).map((of) => of.includes("approval:required")), [
    true,
  ]);
});

Deno.test("a question whose answer is refused and cannot be read is denied, and the run ends", async () => {
  const { handle, runs, memory, entries } = await waiting();
  const commit = memory.commit.bind(memory);
  memory.commit = (changes, fence) => {
    if (changes.some((change) => "put" in change && change.put.kind === "approval")) {
      memory.get = () => {
        throw new Error("connection lost");
      };
      throw new ConflictError("approval");
    }
    return commit(changes, fence);
  };
  await runs.cancel(CALLER, handle.id, "immediate");
  assertEquals((await handle.settled("end")).status, "cancelled");
  Reflect.deleteProperty(memory, "get");
  const denied = (await entries(handle.id)).find(({ event }) => event === "approval:denied");
  assertEquals(denied?.data.reason, "The answer could not be stored");
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

Deno.test("cancel() aborts the tools of a run with an open question also while the store hangs", async () => {
  const aborted = Promise.withResolvers<void>();
  const plan: TestPlan = {
    ...asking(),
    providers: [[calls(["t"], ["long"])]],
    tools: [
      tool("t"),
      tool("long", (_input, context) => {
        context!.signal!.addEventListener("abort", () => aborted.resolve());
        return new Promise(() => {});
      }),
    ],
    hooks: [
      hook(
        "tool:pre",
        (_event, { tool_name }) =>
          tool_name === "t" ? { action: "ask_user", approval_prompt: "Allow t?" } : { action: "continue" },
      ),
    ],
  };
  const { handle, runs, store, approval } = await waiting(plan, { store: (memory) => new SlowStore(memory) });
  const answer = (store as SlowStore).hold();
  const cancelled = runs.cancel(CALLER, handle.id, "immediate");
  await aborted.promise;
  answer();
  await cancelled;
  assertEquals((await handle.settled("end")).status, "cancelled");
  const [denied] = await runs.approvals(CALLER, handle.id);
  assertEquals([denied?.id, denied?.status, denied?.reason], [approval.id, "denied", "cancelled"]);
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

Deno.test("an answer whose success was not reported continues the run at the next answer", async () => {
  class LosingStore extends SlowStore {
    is_losing = false;
    override async commit(changes: readonly Change[]): Promise<void> {
      await super.commit(changes);
      if (this.is_losing) throw new Error("the connection was lost");
    }
  }
  const { decide, handle, store } = await waiting(asking(), { store: (memory) => new LosingStore(memory) });
  const losing = store as LosingStore;
  losing.is_losing = true;
  await assertRejects(() => decide("allow"), Error, "the connection was lost");
  losing.is_losing = false;
  assertEquals(await codeOf(() => decide("allow")), "approval_already_resolved");
  const run = await handle.settled("end");
  assertEquals([run.status, run.tool_call_count], ["completed", 1]);
});

Deno.test("closedApprovalError() says why a question takes no answer, also of a run that ended without one", () => {
  const messageOf = (status: string) =>
    closedApprovalError({ status, expires_at: "2026-01-01T00:00:00Z" }).message;
  assertEquals(["granted", "expired", "pending"].map(messageOf), [
    "Cannot answer the approval: it is already granted",
    "Cannot answer the approval: it expired at 2026-01-01T00:00:00Z",
    "Cannot answer the approval: its run has ended",
  ]);
});
