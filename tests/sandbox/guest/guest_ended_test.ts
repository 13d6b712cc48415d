/** A guest that died stays dead for its run; what an honest module does wrong does not kill it. */
import { TestCoordinator } from "../../../src/testing/coordinator.ts";
import { PreampError } from "../../../src/sdk/errors.ts";
import { assertEquals, assertMatch, assertRejects } from "../../assert.ts";
import { Lab, mounted, toolOf } from "../../support/sandbox.ts";

const codeOf = async (answer: Promise<unknown>) =>
  (await assertRejects(() => answer) as { code?: string }).code;

Deno.test("a guest that died is an error at each later call, with the reason and one warning", async () => {
  await using lab = new Lab();
  const { coordinator, call } = await mounted(
    lab,
    `export const mount = async (c) => {
       await c.mount("tools", { name: "fine", description: "d", execute: () => 1 });
       await c.mount("tools", { name: "die", description: "d", execute: (_, call) => { for (;;) call.progress("x".repeat(9_000)) } });
       c.registerCapability("count", () => 1);
     };`,
    { name: "mortal" },
  );
  assertEquals(await call("fine"), 1);
  assertEquals(await codeOf(call("die")), "tool_output_exceeded");
  assertEquals(await codeOf(call("fine")), "tool_crashed");
  const later = await assertRejects(() => call("fine"));
  assertMatch(later.message, /^Cannot use module "mortal" again in this run: its answer has more than/);
  assertEquals(
    await codeOf((coordinator.getCapability("count") as () => Promise<unknown>)()),
    "tool_crashed",
  );
  assertEquals(lab.warnings.map(({ code }) => code), ["module_ended"]);
  assertEquals(lab.sandbox.guests, 0);
});

Deno.test("an answer that is too large is the error of its call, and the next call is served", async () => {
  await using lab = new Lab();
  const { call } = await mounted(lab, toolOf(`return "x".repeat(input.size)`));
  const error = await assertRejects(() => call("t", { size: 300_000 }));
  assertMatch(error.message, /^The answer has 300\d{3} bytes: a module may send at most 262144$/);
  assertEquals((error as { code?: string }).code, "tool_output_exceeded");
  assertEquals(await call("t", { size: 2 }), "xx");
  assertEquals(lab.warnings, []);
});

Deno.test("a tool that waits on after its call was aborted loses the call, not its module", async () => {
  await using lab = new Lab();
  const { call } = await mounted(lab, toolOf(`return input.wait ? await new Promise(() => {}) : "served"`));
  const controller = new AbortController();
  const waiting = call("t", { wait: true }, { signal: controller.signal });
  const reason = new PreampError("tool_timeout", "Too late");
  controller.abort(reason);
  assertEquals(await assertRejects(() => waiting), reason);
  assertEquals(await call("t"), "served");
  assertEquals(lab.warnings, []);
});

Deno.test("a guest that dies while it is mounted, or whose session is over, fails its calls", async () => {
  await using lab = new Lab();
  const module = await lab.open(
    `export const mount = (c) => c.mount("tools", { name: "t", description: "d", execute() {}, native_specs: { p: { s: "x".repeat(200_000) } } })`,
  );
  assertMatch(
    (await assertRejects(async () => await module.mount(new TestCoordinator(), {}))).message,
    /description and schema have/,
  );
  const { call } = await mounted(lab, toolOf(`return 1`));
  assertEquals(await call("t"), 1);
  await lab.end();
  assertEquals(await codeOf(call("t")), "tool_crashed");
  await lab.sandbox.close(); // waits for guests that are ending
  assertEquals([lab.warnings, lab.sandbox.guests], [[], 0]);
});
