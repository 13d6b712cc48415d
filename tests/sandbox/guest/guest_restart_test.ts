/** A guest that died is started again within its session. */
import { TestCoordinator } from "../../../src/sdk/testing/coordinator.ts";
import { methodOf } from "../../../src/sdk/snake_case_aliases.ts";
import type { ToolResult } from "../../../src/sdk/types.ts";
import { assertEquals, assertMatch, assertRejects } from "../../assert.ts";
import { Lab, mounted, toolOf } from "../../support/sandbox.ts";

/** A module that counts its calls, dies on demand, and does everything that is to be done again. */
const MORTAL = `
  let count = 0;
  export const mount = async (c) => {
    c.session_state.mounts = (c.session_state.mounts ?? 0) + 1;
    const first = c.session_state.mounts === 1;
    await c.mount("tools", { name: "count", description: "d", execute: () => ++count });
    await c.mount("tools", { name: "die", description: "d", execute: () => "x".repeat(300_000) });
    if (first) await c.mount("tools", { name: "once", description: "d", execute: () => "once" });
    c.hooks.register("ask:mounts", () => ({ action: "continue", data: { mounts: c.session_state.mounts } }));
    c.registerCapability("count", () => count);
    c.registerContributor("counts", "me", () => count);
    c.registerCleanup(() => c.hooks.emit("cleaned", {}));
    return { name: "m", provides: [], cleanup: () => { c.session_state.cleaned = count } };
  };
  export const onSessionReady = (c) => { c.hooks.register("late", () => ({ action: "continue", data: { ready: true } })) };`;

Deno.test("a guest that died is started again, and everything of it stands where it stood", async () => {
  await using lab = new Lab();
  const { module, coordinator, returned, call } = await mounted(lab, MORTAL, { name: "mortal" });
  await methodOf(module, "onSessionReady")!(coordinator);
  assertEquals([await call("count"), await call("count"), await call("once")], [1, 2, "once"]);
  const codeOf = async (name: string) => ((await assertRejects(() => call(name))) as { code?: string }).code;
  assertEquals(await codeOf("die"), "tool_output_exceeded");
  assertEquals(lab.warnings, []);
  // two at once: one start
  assertEquals((await Promise.all([call("count"), call("count")])).sort(), [1, 2]);
  assertEquals(lab.warnings.map(({ code }) => code), ["module_restarted"]);
  assertMatch(
    lab.warnings[0]!.message,
    /^Module "mortal" is restarted \(1 of 3\): its answer has more than/,
  );
  assertEquals(coordinator.session_state.mounts, 2);
  assertEquals(await codeOf("once"), "tool_crashed");
  assertEquals((await coordinator.hooks.emitAndCollect("ask:mounts", {})).length, 1);
  assertEquals(await coordinator.hooks.emitAndCollect("late", {}), [{ ready: true }]);
  assertEquals(await (coordinator.getCapability("count") as () => unknown)(), 2);
  assertEquals(await coordinator.collectContributions("counts"), [2]);
  await (returned as { cleanup(): Promise<void> }).cleanup();
  assertEquals(coordinator.session_state.cleaned, 2);
  assertEquals(await coordinator.cleanup(), { ran: 1, failed: [] });
  assertEquals(coordinator.hooks.getEvents("cleaned").length, 1);
  for (const nth of [2, 3]) {
    assertEquals(await codeOf("die"), "tool_output_exceeded");
    assertEquals(await call("count"), 1);
    assertEquals(lab.warnings.length, nth);
  }
  assertEquals(await codeOf("die"), "tool_output_exceeded");
  assertEquals(await codeOf("count"), "tool_output_exceeded");
  assertEquals([lab.warnings.length, lab.sandbox.guests], [3, 0]);
});

Deno.test("a restarted guest has its returned instance and its context again, with the conversation", async () => {
  await using lab = new Lab();
  const { returned } = await mounted(
    lab,
    `export const mount = () => ({ name: "t", description: "d", execute: ({ die }) => die ? "x".repeat(300_000) : "alive" })`,
  );
  const execute = methodOf(returned, "execute")!;
  await assertRejects(async () => await execute({ die: true }));
  assertEquals((await execute({}) as ToolResult).output, "alive");
  const { coordinator } = await mounted(
    lab,
    `export const mount = (c) => { let messages = []; let factory = null;
       c.registerCapability("die", () => "x".repeat(2_000_000));
       return c.mount("context", { addMessage(m) { messages.push(m) }, getMessages: () => messages, setMessages(m) { messages = m }, clear() { messages = [] },
         setSystemPromptFactory(given) { factory = given },
         getMessagesForRequest: async () => [...factory ? [{ role: "system", content: await factory() }] : [], ...messages] }) };`,
    { type: "context" },
  );
  const context = coordinator.context!;
  await context.setMessages([{ role: "user", content: "before" }]);
  await context.clear();
  await context.setMessages([{ role: "user", content: "one" }]);
  await context.addMessage({ role: "assistant", content: "two" });
  context.setSystemPromptFactory!(() => "the system's");
  await context.getMessages();
  await assertRejects(() => (coordinator.getCapability("die") as () => Promise<unknown>)());
  assertEquals((await context.getMessagesForRequest()).map(({ content }) => content), [
    "the system's",
    "one",
    "two",
  ]);
});

Deno.test("a guest that dies while it is mounted, or whose session is over, is not started again", async () => {
  await using lab = new Lab();
  const module = await lab.open(
    `export const mount = (c) => c.mount("tools", { name: "t", description: "d", execute() {}, native_specs: { p: { s: "x".repeat(200_000) } } })`,
  );
  assertMatch(
    (await assertRejects(async () => await module.mount(new TestCoordinator(), {}))).message,
    /description and schema have/,
  );
  const flooding = await lab.open(
    `export const mount = () => ({ cleanup() {}, data: "x".repeat(1_000_000) })`,
  );
  await assertRejects(async () => await flooding.mount(new TestCoordinator(), {}));
  const { call } = await mounted(lab, toolOf(`return 1`));
  assertEquals(await call("t"), 1);
  await lab.end();
  assertEquals(((await assertRejects(() => call("t"))) as { code?: string }).code, "tool_crashed");
  assertEquals([lab.warnings, lab.sandbox.guests], [[], 0]);
});

Deno.test("a guest that is restarted while its session ends is ended too", async () => {
  await using lab = new Lab();
  const { call } = await mounted(lab, toolOf(`return input.die ? "x".repeat(300_000) : 1`));
  await assertRejects(() => call("t", { die: true }));
  const restarted = call("t");
  restarted.catch(() => {}); // awaited below
  await lab.end();
  assertEquals(((await assertRejects(() => restarted)) as { code?: string }).code, "tool_crashed");
  await lab.sandbox.close();
  assertEquals(lab.sandbox.guests, 0);
});
