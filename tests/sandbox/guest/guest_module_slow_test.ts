/**
 * What a module is to its session when it runs elsewhere: everything that works inline, as far as a wire can
 * carry it.
 */
import { classifyMountReturn } from "../../../src/kernel/mount_diagnosis.ts";
import { FakeApproval, MockTool } from "../../../src/testing/mocks.ts";
import { FakeClock } from "../../../src/testing/clocks.ts";
import { TestCoordinator } from "../../../src/testing/coordinator.ts";
import { methodOf } from "../../../src/sdk/snake_case_aliases.ts";
import { objectProxy } from "../../../src/sandbox/guest/guest_proxies.ts";
import type { JsonObject } from "../../../src/sdk/json.ts";
import type { Module, ModuleType, StreamDelta, ToolResult } from "../../../src/sdk/types.ts";
import { assert, assertEquals, assertRejects, assertStrictEquals } from "../../assert.ts";
import { Lab, mounted, ROOMY, toolOf } from "../../support/sandbox.ts";

Deno.test("what a guest's mount returns is read as inline", async () => {
  await using lab = new Lab();
  const forms: readonly (readonly [type: ModuleType, returned: string])[] = [
    ["tool", "undefined"],
    ["tool", "null"],
    ["tool", "() => {}"],
    ["tool", `({ name: "t", description: "d", execute: () => 1 })`],
    ["tool", `({ name: "t", description: "d", execute: () => 1, close() {} })`],
    ["tool", `({ name: "t", description: "d", execute: () => 1, [Symbol.asyncDispose]() {} })`],
    ["tool", `new (class T { name = "t"; description = "d"; execute() {} dispose() {} })()`],
    ["tool", `({ skipped: "no key" })`],
    ["tool", `({ name: "m", provides: ["t"] })`],
    ["tool", `({ name: "m", provides: ["t"], cleanup() {} })`],
    ["tool", `({ cleanup() {} })`],
    ["tool", `({ odd: 1, other: [2] })`],
    ["tool", `({})`],
    ["tool", `"text"`],
    ["tool", `5`],
    ["tool", `true`],
    ["tool", `[1, 2]`],
    ["provider", `({ name: "p", complete() {} })`],
    ["context", `({ addMessage() {}, getMessages() {} })`],
    ["context", `({ add_message() {}, get_messages() {} })`],
    ["orchestrator", `({ execute(a, b, c, d, e) {} })`],
    ["hook", `({ events: ["tool:pre"], handler() {} })`],
  ];
  const read = async (module: Module, type: ModuleType) => {
    const outcome = classifyMountReturn(
      await module.mount(new TestCoordinator(), {}),
      type,
    ) as unknown as JsonObject;
    const { kind, reason, received, metadata, cleanup, instance } = outcome;
    const named = instance as JsonObject | undefined;
    return {
      kind,
      reason,
      received,
      metadata,
      cleanup: typeof cleanup,
      instance: named && (named.name ?? "none"),
    };
  };
  for (const [type, returned] of forms) {
    const code = `export const mount = () => ${returned};`;
    const inline = await import(`data:text/javascript,${encodeURIComponent(code)}`) as Module;
    const guest = await lab.open(code, { type });
    assertEquals(await read(guest, type), await read(inline, type), `${type}: ${returned}`);
    await lab.end();
  }
});

Deno.test("objectProxy() has no method then, whatever the guest says", () => {
  const shape = { data: { kept: 1 }, methods: ["then", "cleanup"] };
  const made = objectProxy(shape, () => Promise.resolve(), ROOMY);
  assertEquals(Object.keys(made), ["kept", "cleanup"]);
});

Deno.test("a returned function, instance and cleanup of a guest are called in the guest", async () => {
  await using lab = new Lab();
  const code = `export const mount = (c, { form }) => {
    const closed = () => { c.session_state.closed = form };
    const instance = { name: "t", description: "d", execute: ({ n }) => n + 1 };
    return { function: closed, close: { ...instance, close: closed }, dispose: { ...instance, [Symbol.dispose]: closed },
      metadata: { name: "m", provides: [], cleanup: closed } }[form];
  };`;
  for (const form of ["function", "close", "dispose", "metadata"]) {
    const { coordinator, returned } = await mounted(lab, code, { config: { form } });
    const outcome = classifyMountReturn(returned, "tool");
    assert("cleanup" in outcome && outcome.cleanup);
    if (outcome.kind === "instance") {
      const result = await methodOf(outcome.instance, "execute")!({ n: 1 }) as ToolResult;
      assertEquals(result.output, 2);
    }
    await outcome.cleanup();
    assertEquals(coordinator.session_state.closed, form);
    await lab.end();
  }
});

Deno.test("modules in snake_case work as guests, and coordinators answer them", async () => {
  await using lab = new Lab();
  const code = `
    const said = [];
    export async function mount(coordinator) {
      coordinator.register_capability("port", { say_it: (text) => said.push(text) });
      coordinator.register_contributor("channel", "me", () => ["contributed"]);
      coordinator.register_cleanup(() => coordinator.hooks.emit("port:cleanup", {}));
      await coordinator.mount("context", { messages: [],
        add_message(m) { this.messages.push(m) }, get_messages() { return this.messages }, set_messages(m) { this.messages = m },
        get_messages_for_request({ token_budget } = {}) { return this.messages.slice(0, token_budget) }, clear() { this.messages = [] },
        set_system_prompt_factory(factory) { this.factory = factory; } });
      await coordinator.mount("providers", { name: "p", get_info: () => ({ id: "p", display_name: "P", defaults: {} }),
        list_models: () => [{ id: "m", context_window: 1, max_output_tokens: 1 }], complete: () => "text", parse_tool_calls: () => [] });
      coordinator.hooks.on("port:ask")(async () => ({ action: "continue", data: { said,
        collected: await coordinator.collect_contributions("channel"), handlers: coordinator.hooks.list_handlers("port:ask") } }));
    }
    export async function on_session_ready(coordinator) { coordinator.session_state.ready = coordinator.to_dict().providers; }`;
  const { module, coordinator } = await mounted(lab, code, { type: "context" });
  await methodOf(module, "onSessionReady")!(coordinator);
  assertEquals(coordinator.session_state.ready, ["p"]);
  const context = coordinator.context!;
  await context.addMessage({ role: "user", content: "a" });
  await context.addMessage({ role: "user", content: "b" });
  assertEquals((await context.getMessagesForRequest({ token_budget: 1 })).length, 1);
  await context.setMessages([{ role: "user", content: "c" }]);
  assertEquals((await context.getMessages()).map(({ content }) => content), ["c"]);
  const provider = coordinator.providers.p!;
  assertEquals([provider.getInfo().display_name, (await provider.listModels())[0]?.id], ["P", "m"]);
  assertEquals((await provider.complete({ messages: [] })).content, [{ type: "text", text: "text" }]);
  const { say_it } = coordinator.getCapability("port") as { say_it(text: string): Promise<unknown> };
  await say_it("hello");
  const [asked] = await coordinator.hooks.emitAndCollect("port:ask", {});
  assertEquals([asked?.said, asked?.collected], [["hello"], [["contributed"]]]);
  assertEquals(await coordinator.cleanup(), { ran: 1, failed: [] });
  assertEquals(coordinator.hooks.getEvents("port:cleanup").length, 1);
});

Deno.test("capabilities and contributions pass both ways, and between guests", async () => {
  await using lab = new Lab();
  const { coordinator: on } = await mounted(
    lab,
    `export const mount = (c) => {
       c.registerCapability("plain", { n: 1, list: [1, { a: null }] });
       c.registerCapability("double", (n) => n * 2);
       c.registerCapability("both", { version: 3, async greet(name) { return this.word + " " + name }, word: "hi", fails() { throw new RangeError("not " + 1) } });
       c.registerContributor("channel", "one", () => ({ from: "guest" }));
       c.registerContributor("channel", "two", () => { throw new Error("left out") });
       c.registerContributor("channel", "three", () => null);
       c.hooks.register("ask", () => null);
     };`,
    { type: "hook" },
  );
  assertEquals(on.getCapability("plain"), { n: 1, list: [1, { a: null }] });
  assertEquals(await (on.getCapability("double") as (n: number) => unknown)(21), 42);
  const both = on.getCapability("both") as {
    version: number;
    greet(n: string): unknown;
    fails(): Promise<unknown>;
  };
  assertEquals([both.version, await both.greet("you")], [3, "hi you"]);
  assertEquals((await assertRejects(() => both.fails())).name, "RangeError");
  assertEquals(await on.collectContributions("channel"), [{ from: "guest" }]);
  on.registerCapability("hosts", Object.assign((n: number) => n + 1, {}));
  on.registerCapability("object", {
    base: 10,
    add(this: { base: number }, n: number) {
      return this.base + n;
    },
  });
  on.registerContributor("channel", "host", () => "host's");
  const { call } = await mounted(
    lab,
    toolOf(`const get = (name) => coordinator.getCapability(name);
      return { hosts: await get("hosts")(1), add: await get("object").add(5), base: get("object").base,
        double: await get("double")(4), greet: await get("both").greet("guest"), plain: get("plain").list[0],
        none: get("nothing"), odd: get("__proto__"), failed: await get("both").fails().catch(({ name, message }) => [name, message]),
        collected: await coordinator.collectContributions("channel") }`),
    { on },
  );
  assertEquals(await call("t"), {
    ...{ hosts: 2, add: 15, base: 10, double: 8, greet: "hi guest", plain: 1, none: null, odd: null },
    failed: ["RangeError", "not 1"],
    collected: [{ from: "guest" }, "host's"],
  });
});

Deno.test("a guest emits, collects, processes results and asks people through its session", async () => {
  await using lab = new Lab();
  const { coordinator, call } = await mounted(
    lab,
    toolOf(`const { hooks } = coordinator;
      const emission = await hooks.emit("custom:ask", { n: 1 });
      const settled = await coordinator.processHookResult(emission, "custom:ask", "me");
      return { action: emission.action, data: emission.data.n, settled: settled.action, reason: settled.reason,
        collected: await hooks.emitAndCollect("custom:collect", {}, 1) }`),
    { coordinator: { approval: new FakeApproval(["allow"]) } },
  );
  coordinator.hooks.register("custom:ask", (_, data) => ({ action: "modify", data: { ...data, n: 2 } }));
  coordinator.hooks.register("custom:ask", () => ({ action: "ask_user", approval_prompt: "May it?" }));
  coordinator.hooks.register("custom:collect", () => ({ action: "continue", data: { found: 1 } }));
  coordinator.hooks.register("custom:collect", () => ({ action: "continue", data: { found: 2 } }));
  const output = await call("t") as JsonObject;
  assertEquals([output.action, output.data, output.settled], ["ask_user", 2, "continue"]);
  assertEquals((output.collected as JsonObject[]).map(({ found }) => found), [1, 2]);
  assertEquals(coordinator.approval!.requests.length, 1);
});

Deno.test("a system prompt factory passes both ways", async () => {
  await using lab = new Lab();
  const { coordinator: on } = await mounted(
    lab,
    `export const mount = (c) => { let factory = null; return c.mount("context", { addMessage(m) {}, getMessages: () => [], setMessages(m) {}, clear() {},
       setSystemPromptFactory(given) { factory = given },
       getMessagesForRequest: async () => factory ? [{ role: "system", content: await factory() }] : [] }) };`,
    { type: "context" },
  );
  const view = async () => (await on.context!.getMessagesForRequest()).map(({ content }) => content);
  assertEquals(await view(), []);
  let count = 0;
  on.context!.setSystemPromptFactory!(() => `from the host ${++count}`);
  assertEquals([await view(), await view()], [["from the host 1"], ["from the host 2"]]);
  const { call } = await mounted(
    lab,
    toolOf(
      `let n = 0; coordinator.context.setSystemPromptFactory(input.off ? null : async () => "from a guest " + ++n);`,
    ),
    { on },
  );
  await call("t");
  assertEquals([await view(), await view()], [["from a guest 1"], ["from a guest 2"]]);
  await call("t", { off: true });
  assertEquals(await view(), []);
});

Deno.test("calls of guests pass through others: tools, several open at once, in the host's time", async () => {
  await using lab = new Lab();
  const clock = new FakeClock();
  const { coordinator: on } = await mounted(
    lab,
    `export const mount = (c) => c.mount("tools", { name: "inner", description: "d", execute: async ({ ms }, call) => {
       call.progress("waits " + ms); await c.clock.after(ms); return { waited: ms, asked_by: call.id } } });`,
    { coordinator: { clock } },
  );
  const { call } = await mounted(
    lab,
    toolOf(`const said = [];
      const { output } = await coordinator.tools.inner.execute({ ms: input.ms }, { ...call, progress: (text) => said.push(text) });
      return { output, said }`),
    { on },
  );
  const order: number[] = [];
  const calls = [30, 10, 20].map((ms) =>
    call("t", { ms }, { id: `c${ms}` }).then((output) => {
      order.push(ms);
      return output;
    })
  );
  while (clock.pending < 3) await clock.advance(0);
  await clock.advance(100);
  assertEquals(
    await Promise.all(calls),
    [30, 10, 20].map((ms) => (
      { output: { waited: ms, asked_by: `c${ms}` }, said: [`waits ${ms}`] }
    )),
  );
  assertEquals(order, [10, 20, 30]);
  on.tools.own = new MockTool("own", "ours");
  const { call: again } = await mounted(
    lab,
    toolOf(`return (await coordinator.tools.own.execute({})).output`),
    { on },
  );
  assertEquals(await again("t"), "ours");
});

Deno.test("deltas and progress arrive all of them, in order and before the answer", async () => {
  await using lab = new Lab();
  const code = `export const mount = async (c) => {
    await c.mount("providers", { name: "p", getInfo: () => ({ id: "p", display_name: "P", defaults: {} }), listModels: () => [],
      parseToolCalls: () => [], complete(request, { onDelta }) {
        let text = "";
        for (let n = 0; n < 10_000; n++) { const delta = n + " "; text += delta; onDelta({ block_index: 0, block_type: "text", delta }) }
        return { content: [{ type: "text", text }] } } });
    await c.mount("tools", { name: "t", description: "d", execute: (_, call) => { for (let n = 0; n < 2_000; n++) call.progress("n" + n); return "done" } });
    await c.mount("tools", { name: "shows", description: "d", execute: (_, call) => { call.output("out"); call.output("err", "stderr"); call.output("x".repeat(300_000)); return "done" } });
  };`;
  const { coordinator, call } = await mounted(lab, code, { type: "provider" });
  const deltas: StreamDelta[] = [];
  const onDelta = (delta: StreamDelta) => void deltas.push(delta);
  const { content } = await coordinator.providers.p!.complete({ messages: [] }, { onDelta });
  assertEquals(deltas.length, 10_000);
  assertEquals(deltas.map(({ delta }) => delta).join(""), (content[0] as { text: string }).text);
  const shown: unknown[] = [];
  const output = (...text: unknown[]) => void shown.push(text);
  assertEquals(await call("shows", {}, { output }), "done");
  assertEquals(shown, [["out", "stdout"], ["err", "stderr"]]); // and no more than people are shown
  const said: string[] = [];
  assertEquals(await call("t", {}, { progress: (text) => void said.push(text) }), "done");
  assertEquals(said, Array.from({ length: 2_000 }, (_, n) => `n${n}`));
});

Deno.test("a guest hears exact events, and of deltas only those it names", async () => {
  await using lab = new Lab();
  const { coordinator, call } = await mounted(
    lab,
    `const heard = { all: [], exact: [], once: [] };
     export const mount = (c) => {
       c.hooks.register("*", (event) => void heard.all.push(event));
       c.hooks.register("content_block:delta", (event) => void heard.exact.push(event));
       const dispose = c.hooks.register("x:y", () => { heard.once.push("heard"); dispose() });
       c.hooks.register("x:y", () => null, { name: "named" });
       return c.mount("tools", { name: "t", description: "d", execute: ({ forget }) => { if (forget) c.hooks.unregister("named"); return heard } });
     };`,
  );
  for (const event of ["x:y", "content_block:delta", "x:y"]) await coordinator.hooks.emit(event, {});
  assertEquals(await call("t"), { all: ["x:y", "x:y"], exact: ["content_block:delta"], once: ["heard"] });
  assert(coordinator.hooks.listHandlers("x:y")["x:y"]!.includes("named"));
  await call("t", { forget: true });
  assert(!coordinator.hooks.listHandlers("x:y")["x:y"]!.includes("named"));
});

Deno.test("session_state of a guest is the session's: written, deleted, limited, and without a prototype", async () => {
  await using lab = new Lab();
  const { coordinator, call } = await mounted(
    lab,
    toolOf(`const { session_state: s } = coordinator;
      const tried = (act) => { try { act(); return "done" } catch (error) { return error.name } };
      s.one = { list: [1] }; s.two = 2; delete s.old; s.one.list.push(9);
      return { keys: Object.keys(s).sort(), proto: tried(() => { s["__proto__"] = { polluted: 1 } }),
        large: tried(() => { s.large = "x".repeat(70_000) }), one: s.one, host: s.host, plain: ({}).polluted ?? null }`),
    { coordinator: { session_state: { old: 1, host: { n: 1 } } } },
  );
  const output = await call("t") as JsonObject;
  assertEquals([output.keys, output.proto, output.large, output.host, output.plain], [
    ...[["host", "one", "two"], "TypeError", "RangeError", { n: 1 }, null],
  ]);
  assertEquals(coordinator.session_state, { host: { n: 1 }, one: { list: [1, 9] }, two: 2 });
});

Deno.test("what a guest says on its console are lines of the log", async () => {
  await using lab = new Lab();
  const { call } = await mounted(
    lab,
    toolOf(
      `console.log("a", { b: 1 }); console.warn("careful"); console.error("x".repeat(10_000)); return 1`,
    ),
  );
  await call("t");
  assertEquals(lab.console.slice(0, 2), ["info: a { b: 1 }", "warning: careful"]);
  assertEquals(lab.console[2]!.length, "error: ".length + 4_000);
});

Deno.test("a module acts only while it is called", async () => {
  await using lab = new Lab();
  const { coordinator, call } = await mounted(
    lab,
    `const failed = [];
     export const mount = (c) => c.mount("tools", { name: "t", description: "d", execute: ({ arm }) => {
       if (!arm) return failed;
       setTimeout(async () => {
         try { c.registerCapability("late", 1) } catch (error) { failed.push(error.message) }
         try { await c.hooks.emit("late:event", {}) } catch (error) { failed.push(error.message) }
         console.log("done");
       });
     } });`,
  );
  await call("t", { arm: true }); // it answers before its timers
  await lab.heard();
  const failed = await call("t") as string[];
  assertEquals([failed.length, failed.every((message) => /acts only while it is called/.test(message))], [
    2,
    true,
  ]);
  assertEquals(coordinator.getCapability("late"), null);
  assertEquals(coordinator.hooks.getEvents("late:event"), []);
});

Deno.test("Sandbox.open() fails with what the top level threw, and keeps no guest", async () => {
  await using lab = new Lab();
  const thrown = await assertRejects(() =>
    lab.open(`throw Object.assign(new RangeError("not here"), { code: "E_X" })`)
  );
  assertEquals([thrown.name, thrown.message], ["RangeError", "not here"]);
  await assertRejects(() => lab.open("export const = 1"), Error, "export const = 1");
  const late = await assertRejects(() =>
    lab.open(`await new Promise(() => {})`, { limits: { load_timeout_s: 0.3 } })
  );
  assertEquals((late as { code?: string }).code, "tool_timeout");
  assertEquals(lab.sandbox.guests, 0);
});

Deno.test("an error of the host that passes through a guest comes back as itself", async () => {
  await using lab = new Lab();
  const own = Object.assign(new Error("no more"), { code: "limit_reached" });
  const on = new TestCoordinator();
  on.tools.inner = new MockTool({ name: "inner", error: own });
  const { call } = await mounted(
    lab,
    toolOf(`try { await coordinator.tools.inner.execute({}) } catch (error) {
        if (input.made_up) throw Object.assign(new Error("mine"), { code: error.code });
        throw input.wrapped ? new Error("outer", { cause: error }) : error }`),
    { on },
  );
  assertStrictEquals(await assertRejects(() => call("t")), own);
  assertEquals(
    ((await assertRejects(() => call("t", { made_up: true }))) as { code?: string }).code,
    undefined,
  );
  assertEquals((await assertRejects(() => call("t", { wrapped: true }))).message, "outer");
});
