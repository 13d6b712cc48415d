import { CancellationToken } from "../../src/sdk/cancellation.ts";
import { assert, assertEquals } from "../assert.ts";

Deno.test("requestGraceful() and requestImmediate() return whether they changed the state", () => {
  const token = new CancellationToken();
  const answers = [
    token.requestGraceful(),
    token.requestGraceful(),
    token.requestImmediate(),
    token.requestGraceful(),
    token.requestImmediate(),
  ];
  assertEquals(answers, [true, false, true, false, false]);
  assertEquals([token.state, token.is_cancelled, token.is_graceful, token.is_immediate], [
    "immediate",
    true,
    false,
    true,
  ]);
});

Deno.test("registerChild() hands down the state and every later request", () => {
  const parent = new CancellationToken();
  parent.requestGraceful();
  const [child, grandchild] = [new CancellationToken(), new CancellationToken()];
  child.registerChild(grandchild);
  parent.registerChild(child);
  assertEquals([child.state, grandchild.state], ["graceful", "graceful"]);
  parent.requestImmediate();
  assertEquals([child.state, grandchild.state], ["immediate", "immediate"]);
});

Deno.test("unregisterChild() lets a child go its own way, and a child never cancels its parent", () => {
  const [parent, child] = [new CancellationToken(), new CancellationToken()];
  parent.registerChild(child);
  child.requestImmediate();
  assertEquals(parent.state, "none");
  const other = new CancellationToken();
  parent.registerChild(other);
  parent.unregisterChild(other);
  parent.requestGraceful();
  assertEquals(other.state, "none");
});

Deno.test("triggerCallbacks() runs all callbacks though one throws", async () => {
  const token = new CancellationToken();
  const ran: string[] = [];
  token.onCancel(() => ran.push("first"));
  token.onCancel(() => {
    throw new Error("bad");
  });
  token.onCancel(() => Promise.reject(new Error("worse")));
  const remove = token.onCancel(() => ran.push("removed"));
  token.onCancel(() => ran.push("last"));
  remove();
  const failures = await token.triggerCallbacks();
  assertEquals(ran, ["first", "last"]);
  assertEquals(failures.map((failure) => (failure as Error).message), ["bad", "worse"]);
});

Deno.test("signals abort per level: any on graceful, both on immediate", () => {
  const token = new CancellationToken();
  const [signal, any_signal] = [token.signal, token.any_signal];
  token.requestGraceful();
  assertEquals([signal.aborted, any_signal.aborted], [false, true]);
  token.requestImmediate();
  assertEquals([signal.aborted, any_signal.aborted], [true, true]);
});

Deno.test("reset() clears the state and keeps children and callbacks", async () => {
  const [token, child] = [new CancellationToken(), new CancellationToken()];
  let calls = 0;
  token.onCancel(() => calls++);
  token.registerChild(child);
  token.registerToolStart("call_1", "bash");
  token.requestImmediate();
  token.reset();
  assertEquals([token.state, token.signal.aborted, token.any_signal.aborted, token.running_tools], [
    "none",
    false,
    false,
    [],
  ]);
  child.reset();
  assert(token.requestGraceful());
  assertEquals(child.state, "graceful");
  await token.triggerCallbacks();
  assertEquals(calls, 1);
});

Deno.test("running_tools lists the calls that run, in order", () => {
  const token = new CancellationToken();
  token.registerToolStart("call_1", "bash");
  token.registerToolStart("call_2", "bash");
  token.registerToolComplete("call_1");
  token.registerToolComplete("unknown");
  assertEquals([token.running_tools, token.running_tool_names], [["call_2"], ["bash"]]);
});

Deno.test("the token speaks snake_case too", () => {
  const token = new CancellationToken() as unknown as { request_graceful(): boolean; state: string };
  assert(token.request_graceful());
  assertEquals(token.state, "graceful");
});
