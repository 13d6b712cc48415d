/** What a module sees of a stack: its own frames, never where the server's files are. */
import { createTestCoordinator } from "../../../src/testing/coordinator.ts";
import { assert, assertEquals, assertMatch, assertRejects } from "../../assert.ts";
import { Lab } from "../../support/sandbox.ts";

/** Ways in which a module may look at a stack; each gives texts to `see`. */
const LOOKS = `
  see("mount", new Error("x").stack);
  const object = {}; Error.captureStackTrace(object); see("captured", object.stack);
  Error.stackTraceLimit = 100; see("long", new Error("x").stack);
  try { coordinator.hooks.register("", 5) } catch (error) { see("of the SDK", error.stack, Deno.inspect(error)) }
  try { await coordinator.mount("nowhere", {}) } catch (error) { see("of the host", error.stack, Object.getOwnPropertyNames(error)) }
  try { await import("./nothing.ts") } catch (error) { see("import", error.message, error.stack) }
  Error.prepareStackTrace = (error, frames) => frames.map((frame) =>
    [String(frame), frame.getFileName(), frame.getScriptNameOrSourceURL?.(), frame.getEvalOrigin?.()].join(" ")).join("; ");
  see("prepared", new Error("x").stack);
  const { prepareStackTrace } = Error;
  Error.prepareStackTrace = undefined;
  see("restored", new Error("x").stack, String(prepareStackTrace));
  try { globalThis.Error = { prepareStackTrace: (error, frames) => frames.map(String).join() } } catch (error) { see("another Error", error.stack) }
  try { delete Error.prepareStackTrace } catch (error) { see("deleted", error.stack) }
  try { Object.defineProperty(Error, "prepareStackTrace", { value: (_, frames) => frames.map(String).join() }) } catch (error) { see("defined", error.stack) }
  see("at the end", new Error("x").stack, new DOMException("x").stack, new RangeError("x").stack);
  see("URLs", import.meta.url, typeof Deno.mainModule, String(globalThis.location), Object.keys(import.meta));
  coordinator.hooks.register("custom:x", () => { see("handler", new Error("x").stack) });
  await coordinator.hooks.emit("custom:x", {});
`;

/** What it looked at: nothing else of the list was possible. */
const LOOKED = [
  ...["top", "mount", "captured", "long", "of the SDK", "of the host", "import", "prepared", "restored"],
  ...["another Error", "deleted", "defined", "at the end", "URLs", "handler", "tool"],
];

const MODULE = `
const seen = {};
const see = (what, ...texts) => { seen[what] = texts.map((text) => String(text).split(import.meta.url).join("URL")).join(" ") };
see("top", new Error("x").stack);
export const mount = async (coordinator) => {
  ${LOOKS}
  await coordinator.mount("tools", { name: "looked", description: "d", execute: () => { see("tool", new Error("x").stack); return seen } });
};`;

Deno.test("no stack that a module sees names a file of the server", async () => {
  await using lab = new Lab();
  const module = await lab.open(MODULE);
  const coordinator = createTestCoordinator();
  await module.mount!(coordinator, {});
  const { output } = await coordinator.tools.looked!.execute({}) as { output: Record<string, string> };
  assertEquals(Object.keys(output), LOOKED);
  for (const [what, text] of Object.entries(output)) {
    assert(!text.includes("file:") && !text.includes("sandbox/worker_runtime"), `${what}: ${text}`);
  }
  assertMatch(output.mount!, /^Error: x\n {4}at Module\.mount \(data:text\/javascript[^\n]*:\d+:\d+\)/);
});

Deno.test("an error of a module still has the location in the author's file for the host", async () => {
  await using lab = new Lab();
  const module = await lab.open(await lab.bundle("tests/fixtures/modules/tool-throws/mod.ts"));
  const coordinator = createTestCoordinator();
  await module.mount!(coordinator, {});
  const error = await assertRejects(() => Promise.resolve(coordinator.tools.throws!.execute({})), Error);
  assertMatch(String(error.stack), /at Object\.execute \(file:\/\/\S+\/tool-throws\/mod\.ts:9:13\)/);
});
