/**
 * Commands that reach another server than the one that executes the run: they are acknowledged when they are
 * stored, and take effect when the run's server reads them, or the next one.
 */
import type { Caller } from "../../src/runs/types.ts";
import type { JsonObject } from "../../src/sdk/types.ts";
import { assertEquals } from "../assert.ts";
import { asking, codeOf } from "../support/asking_runs.ts";
import { CALLER, replayed, type Service, service, STRANGER, type TestPlan } from "../support/runs.ts";
import { calls, hook, tool } from "../support/sessions.ts";
import { settle, shared, type SharedStore } from "./shared_store.ts";

/** Starts a run on a server, and a second one that shares its store. */
async function started(plan: TestPlan, limits = {}) {
  const one = service({ plans: { p: plan }, store: shared, limits });
  const handle = await one.post("p");
  await settle();
  const other = service({ plans: { p: plan }, beside: one, store: shared, limits });
  return { one, other, handle, id: handle.id };
}

/** Lets a server find the first one dead, and continue its run with a plan whose model answers these. */
async function continued(one: Service, id: string, plan: TestPlan, ...answers: unknown[]): Promise<Service> {
  await one.clock.advance(6_000); // without heartbeats: the first server is dead
  const next = service({
    plans: { p: { ...plan, providers: [answers as never] } },
    beside: one,
    store: shared,
  });
  assertEquals(await next.runs.recover(), [id]);
  return next;
}

const commands = ({ memory }: Service) =>
  memory.list("run_command", { namespace: "internal", limit: 100 }).records;

const texts = (messages: readonly JsonObject[]) =>
  messages.filter(({ role }) => role === "user").map(({ content }) => content);

const HANGS: TestPlan = {
  tools: [tool("t", () => new Promise(() => {}))],
  providers: [[calls(["t"])]],
};

Deno.test("a decision while no server executes the run is acknowledged, and is the answer when another one continues it", async () => {
  const plan = asking();
  const { one, other, id, handle } = await started(plan);
  const [approval] = handle.current().approvals;
  const decided = await other.runs.decide(CALLER, id, approval!.id, { decision: "allow", reason: "fine" });
  const { status, decision, reason, decided_by, decided_at } = decided;
  assertEquals([status, decision, reason, decided_by], ["granted", "allow", "fine", CALLER.name]);
  assertEquals(typeof decided_at, "string");
  for (const { runs } of [other, service({ beside: one, store: shared })]) { // before the log has the answer
    assertEquals((await runs.approvals(CALLER, id)).map(({ status }) => status), ["granted"]);
    const run = await runs.get(CALLER, id);
    assertEquals([run.status, run.approvals], ["running", []]);
    const again = () => runs.decide(CALLER, id, approval!.id, { decision: "deny" });
    assertEquals(await codeOf(again), "approval_already_resolved");
  }
  const next = await continued(one, id, plan, "done");
  const ended = await (await next.runs.handle(CALLER, id)).settled("end");
  assertEquals([ended.status, ended.tool_call_count], ["completed", 1]);
  assertEquals((await next.runs.approvals(CALLER, id)).map(({ reason }) => reason), ["fine"]);
  await settle();
  assertEquals(commands(next), []);
});

Deno.test("a question whose time is over while no server executes the run is open until another one continues it", async () => {
  const plan = asking({ approval_timeout: 60 });
  for (const isAnswered of [true, false]) {
    const { one, other, id, handle } = await started(plan);
    (one.store as SharedStore).committing = () => new Promise(() => {}); // the process dies
    await one.clock.advance(61_000);
    const decide = (server: Service) =>
      server.runs.decide(CALLER, id, handle.current().approvals[0]!.id, { decision: "allow" });
    if (isAnswered) assertEquals((await decide(other)).status, "granted");
    const next = await continued(one, id, plan, "done");
    await settle();
    await next.clock.advance(1);
    await settle();
    if (!isAnswered) assertEquals(await codeOf(() => decide(other)), "approval_expired");
    const ended = await (await next.runs.handle(CALLER, id)).settled("end");
    assertEquals([ended.status, ended.tool_call_count], ["completed", isAnswered ? 1 : 0]);
  }
});

Deno.test("an answer that allows a limit raises it in the server that continues the run", async () => {
  const plan: TestPlan = {
    providers: [[calls(["t"]), calls(["t"]), calls(["t"]), "done"]],
    tools: [tool("t")],
    limits: { max_tool_calls: 1, on_limit: "pause" },
  };
  const { one, other, id, handle } = await started(plan);
  const [approval] = handle.current().approvals;
  await other.runs.decide(CALLER, id, approval!.id, { decision: "allow" });
  const next = await continued(one, id, plan, "done");
  const ended = await (await next.runs.handle(CALLER, id)).settled("end");
  assertEquals([ended.status, ended.tool_call_count, ended.limits.max_tool_calls], ["completed", 2, 2]);
  assertEquals((await next.names(id)).filter((name) => name === "run:limits").length, 1);
  assertEquals((await replayed(next, id)).equal, true);
});

Deno.test("a limit that is raised while no server executes the run is acknowledged, and the run continues with it", async () => {
  const plan: TestPlan = {
    providers: [[calls(["t"]), calls(["t"]), "done"]],
    tools: [tool("t")],
    limits: { max_tool_calls: 1, on_limit: "pause" },
  };
  const { one, other, id } = await started(plan, { max_tool_calls: 10 });
  const refused = (limits: JsonObject, caller: Caller = CALLER) =>
    codeOf(() => other.runs.raiseLimits(caller, id, limits));
  assertEquals([
    await refused({ max_tool_calls: 1 }),
    await refused({ max_tool_calls: 11 }),
    await refused({ max_cost_usd: "4.99" }),
    await refused({ max_tool_calls: 5 }, STRANGER),
  ], ["request_invalid", "policy_refused", "request_invalid", "not_found"]);
  assertEquals(commands(one), []);
  const raised = await other.runs.raiseLimits(CALLER, id, { max_tool_calls: 9 });
  assertEquals(raised.limits.max_tool_calls, 9);
  const next = await continued(one, id, plan, "done");
  const ended = await (await next.runs.handle(CALLER, id)).settled("end");
  assertEquals([ended.status, ended.tool_call_count, ended.limits.max_tool_calls], ["completed", 2, 9]);
  await settle();
  assertEquals(commands(next), []);
});

Deno.test("a run is cancelled while no server executes it, before another one has executed a step", async () => {
  const { one, other, id } = await started(HANGS);
  assertEquals((await other.runs.cancel(CALLER, id, "graceful")).status, "running");
  const next = await continued(one, id, HANGS, "never");
  const ended = await (await next.runs.handle(CALLER, id)).settled("end");
  assertEquals([ended.status, ended.turn_count], ["cancelled", 1]);
  assertEquals((await next.names(id)).filter((name) => name === "cancel:requested").length, 1);
  await settle();
  assertEquals(commands(next), []);
});

Deno.test("steering texts join the turn of the server that continues the run, once and in their order", async () => {
  const { one, other, id, handle } = await started(HANGS);
  for (const text of ["first", "second"]) await other.runs.steer(CALLER, id, text);
  const next = await continued(one, id, HANGS, "done");
  await (await next.runs.handle(CALLER, id)).settled("end");
  const { data: messages } = await next.runs.sessions.messages(CALLER, handle.session_id);
  assertEquals(texts(messages as unknown as JsonObject[]), ["hello", "first", "second"]);
  assertEquals((await next.names(id)).filter((name) => name === "run:steered").length, 2);
  await settle();
  assertEquals(commands(next), []);
});

Deno.test("a server refuses texts that the loop of another one's run cannot read", async () => {
  const { other, id } = await started({ ...HANGS, loop: { steering: false } });
  assertEquals(await codeOf(() => other.runs.steer(CALLER, id, "x")), "not_steerable");
  assertEquals(await codeOf(() => other.runs.steer(CALLER, id, " ")), "request_invalid");
  assertEquals(await codeOf(() => other.runs.steer(STRANGER, id, "x")), "not_found");
});

Deno.test("a waiting run of another server takes no text, and is cancelled by its server", async () => {
  const { one, other, handle } = await started(HANGS);
  const waiting = await one.post("plain", { session_id: handle.session_id, if_busy: "queue" });
  assertEquals(await codeOf(() => other.runs.steer(CALLER, waiting.id, "x")), "not_steerable");
  one.runs.shareStore();
  assertEquals((await other.runs.cancel(CALLER, waiting.id, "graceful")).status, "queued");
  await one.clock.advance(1_000);
  await settle();
  assertEquals((await waiting.settled("end")).status, "cancelled");
  await one.clock.advance(1_000);
  await settle();
  assertEquals(commands(one), []);
  await one.runs.close();
});

Deno.test("of the answers of two servers to one question at once, one wins", async () => {
  const { one, other, id, handle } = await started(asking());
  one.runs.shareStore();
  const [approval] = handle.current().approvals;
  const third = service({ beside: one, store: shared });
  const answers = await Promise.allSettled(
    [one, other, third].map(({ runs }, index) =>
      runs.decide(CALLER, id, approval!.id, { decision: index === 1 ? "deny" : "allow" })
    ),
  );
  const won = answers.flatMap((answer) => answer.status === "fulfilled" ? answer.value.status : []);
  const lost = answers.flatMap((answer) => answer.status === "rejected" ? answer.reason.code : []);
  assertEquals([won.length, lost], [1, ["approval_already_resolved", "approval_already_resolved"]]);
  await one.clock.advance(1_000);
  await settle();
  const ended = await handle.settled("end");
  assertEquals([ended.status, ended.tool_call_count], ["completed", won[0] === "granted" ? 1 : 0]);
  assertEquals((await other.runs.approvals(CALLER, id)).map(({ status }) => status), won);
  await one.runs.close();
});

Deno.test("two decisions of servers that do not execute the run: the second one is refused", async () => {
  const { one, other, id, handle } = await started(asking());
  const [approval] = handle.current().approvals;
  const third = service({ beside: one, store: shared });
  const answers = await Promise.allSettled(
    [other, third].map(({ runs }) => runs.decide(CALLER, id, approval!.id, { decision: "allow" })),
  );
  assertEquals(answers.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
});

Deno.test("a secret of the plan in the reason of another server's decision does not stay in the store", async () => {
  const { one, other, id, handle } = await started({ ...asking(), secrets: ["s3cret-of-the-plan"] });
  one.runs.shareStore();
  const [approval] = handle.current().approvals;
  const reason = "use s3cret-of-the-plan";
  await other.runs.decide(CALLER, id, approval!.id, { decision: "deny", reason });
  await one.clock.advance(1_000);
  await settle();
  await handle.settled("end");
  const { value } = one.memory.get("approval", `${id}/${approval!.id}`)!;
  assertEquals([value.status, String(value.reason).includes("s3cret")], ["denied", false]);
  assertEquals(JSON.stringify(await one.entries(id)).includes("s3cret"), false);
  await one.runs.close();
});

Deno.test("a cancellation aborts the tools of its server's run also while the store does not answer", async () => {
  const aborted = Promise.withResolvers<void>();
  const waits = tool("long", (_input, call) => {
    call!.signal.addEventListener("abort", () => aborted.resolve());
    return new Promise(() => {});
  });
  const { one, id } = await started({
    ...asking(),
    providers: [[calls(["long"], ["t"])]],
    tools: [tool("t"), waits],
    hooks: [
      hook(
        "tool:pre",
        (_event, { tool_name }) =>
          tool_name === "t" ? { action: "ask_user", approval_prompt: "May it?" } : null,
      ),
    ],
  });
  const store = one.store as SharedStore;
  const answer = store.hold();
  store.get = () => new Promise(() => {});
  store.list = () => new Promise(() => {});
  void one.runs.cancel(CALLER, id, "immediate");
  await aborted.promise;
  answer();
});

Deno.test("a server carries out what other servers have stored before its own command", async () => {
  const { one, other, id, handle } = await started(asking());
  await other.runs.steer(CALLER, id, "first");
  await one.runs.steer(CALLER, id, "second");
  const [approval] = handle.current().approvals;
  await one.runs.decide(CALLER, id, approval!.id, { decision: "allow" });
  await handle.settled("end");
  const { data: messages } = await one.runs.sessions.messages(CALLER, handle.session_id);
  assertEquals(texts(messages as unknown as JsonObject[]), ["hello", "first", "second"]);
});

Deno.test("a text is deleted in the commit of its entry: it is delivered once, wherever its server dies", async () => {
  for (const dies of ["before", "after"] as const) {
    const { one, other, id, handle } = await started(HANGS);
    await other.runs.steer(CALLER, id, "once");
    const store = one.store as SharedStore;
    const steered = (changes: readonly unknown[]) => JSON.stringify(changes).includes("run:steered");
    const never = new Promise<void>(() => {});
    if (dies === "before") store.committing = (changes) => steered(changes) ? never : undefined;
    else {store.committed = (changes) => {
        if (!steered(changes)) return;
        store.committing = () => never;
        return never;
      };}
    one.runs.shareStore();
    await settle();
    const next = await continued(one, id, HANGS, "done");
    await (await next.runs.handle(CALLER, id)).settled("end");
    const { data: messages } = await next.runs.sessions.messages(CALLER, handle.session_id);
    assertEquals([dies, texts(messages as unknown as JsonObject[])], [dies, ["hello", "once"]]);
  }
});

Deno.test("a command that cannot be carried out any more is a warning of the run", async () => {
  const { one, other, id, handle } = await started(asking(), { max_tool_calls: 500 });
  await other.runs.raiseLimits(CALLER, id, { max_tool_calls: 300 });
  await other.runs.raiseLimits(CALLER, id, { max_tool_calls: 250 }); // above what the log says of the limit
  one.runs.shareStore();
  await settle();
  const { limits, warnings } = handle.current();
  assertEquals([limits.max_tool_calls, warnings.map(({ code }) => code)], [300, ["command_refused"]]);
  assertEquals(commands(one), []);
  await one.runs.cancel(CALLER, id, "immediate");
  await one.runs.close();
});
