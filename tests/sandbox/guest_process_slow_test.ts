/** Children as the host starts and ends them. What a module cannot do in one is the escape suite's. */
import { GuestConnection } from "../../src/sandbox/guest/guest_connection.ts";
import { guestGrant } from "../../src/sandbox/guest_worker.ts";
import { GuestProcess } from "../../src/sandbox/guest_process.ts";
import { processTier } from "../../src/sandbox/process_support.ts";
import { assertEquals, assertMatch, assertRejects, assertStrictEquals } from "../assert.ts";
import { Lab, mounted, ROOMY, toolOf } from "../support/sandbox.ts";

const ENDED = { cause: "ended", detail: "done" } as const;

/** A child that is ended with the scope. */
function child(): { process: GuestProcess } & AsyncDisposable {
  const process = new GuestProcess(ROOMY);
  return { process, [Symbol.asyncDispose]: () => process.kill(ENDED) };
}

function guestIn(process: GuestProcess, env: Record<string, string>, grant = {}): GuestConnection {
  process.assign({ grant: guestGrant(grant), uses: [], env, memory_mb: 512, cpu_s: 60 });
  return new GuestConnection(process, { name: "m", onLog() {}, onViolation() {} });
}

const HOST = { view: () => undefined, apply() {}, request: () => Promise.resolve() };

Deno.test("a child has the variables it was assigned and no other, whatever it was started with", async () => {
  await using started = child();
  const guest = guestIn(started.process, { GIVEN: "1", TMPDIR: "/nowhere" }, { env: true });
  const { data } = await guest.start("export const env = Deno.env.toObject();", [], 60_000);
  assertEquals(data.env, { GIVEN: "1", TMPDIR: "/nowhere" });
});

Deno.test("a child is ended while it waits, while it works, and leaves no folder", async () => {
  const spare = new GuestProcess(ROOMY);
  spare.prepare({ grant: guestGrant({}), uses: ["preamp"] });
  assertEquals(spare.alive, true);
  await spare.kill(ENDED);
  assertEquals([spare.alive, (await spare.exited).cause], [false, "ended"]);
  const busy = new GuestProcess(ROOMY);
  const started = guestIn(busy, {}).start("for (;;);", [], 60_000);
  await busy.kill(ENDED);
  assertEquals(((await assertRejects(() => started)) as { code?: string }).code, "tool_crashed");
  const homely = new GuestProcess(ROOMY);
  const { data } = await guestIn(homely, {}, { read: true }).start(
    "export const cwd = Deno.cwd();",
    [],
    60_000,
  );
  assertEquals((await Deno.stat(String(data.cwd))).isDirectory, true);
  await homely.kill(ENDED);
  await assertRejects(() => Deno.stat(String(data.cwd)), Deno.errors.NotFound);
});

Deno.test("a child exits when it received no message for too long, and reports why", async () => {
  await using started = child();
  const guest = guestIn(started.process, {});
  await guest.start("export const mount = () => {};", [], 60_000);
  started.process.watch(1);
  assertEquals((await started.process.exited).cause, "timeout");
  const answer = guest.call(0, "mount", [], { host: HOST, max_bytes: 10 });
  assertEquals((await assertRejects(() => answer) as { code?: string }).code, "tool_crashed");
});

Deno.test("processTier() says what this host has, and the same each time", () => {
  const report = processTier();
  assertStrictEquals(processTier(), report);
  assertEquals(report, { available: true });
});

Deno.test("processTier() says why there are no children where they may not be started", async () => {
  const code = `import { processTier } from ${
    JSON.stringify(new URL("../../src/sandbox/process_support.ts", import.meta.url).href)
  };
    console.log(JSON.stringify(processTier()));`;
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["eval", "--no-lock", "--quiet", `Deno.permissions.revokeSync({ name: "run" }); ${code}`].filter(
      Boolean,
    ),
    env: { NO_COLOR: "1" },
  }).output();
  const report = JSON.parse(new TextDecoder().decode(stdout));
  assertEquals(report, {
    available: false,
    reason: "this process may not start and watch children: it needs --allow-run",
  });
});

/** Opens a guest where no shell may be started; prints what the host reports and how the guest ended. */
const WITHOUT_SHELL = `
import { processTier, missingLimits } from "./src/sandbox/process_support.ts";
import { GuestProcess } from "./src/sandbox/guest_process.ts";
import { guestGrant } from "./src/sandbox/guest_worker.ts";
import { GuestConnection } from "./src/sandbox/guest/guest_connection.ts";
const limits = { memory_mb: 64, cpu_s: 1 };
const ends = [];
for (const code of ["const kept = []; for (;;) kept.push(new Uint8Array(1e6).fill(1));", "for (;;);"]) {
  const child = new GuestProcess(limits);
  child.assign({ grant: guestGrant({}), uses: [], env: {}, ...limits });
  const guest = new GuestConnection(child, { name: "m", onLog() {}, onViolation() {} });
  ends.push(await guest.start(code, [], 60_000).catch(({ code }) => code));
}
console.log(JSON.stringify([processTier(), missingLimits(), ends]));
`;

Deno.test("without a shell a child is started directly and its watchdog limits it, which the host says", async () => {
  const root = new URL("../../", import.meta.url);
  const { stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      ...["run", "--quiet", "--no-lock", "--no-check", "--allow-all", "--deny-run=/bin/sh"],
      ...["--config", new URL("deno.json", root).pathname],
      `data:text/typescript,${encodeURIComponent(WITHOUT_SHELL.replaceAll("./src/", `${root}src/`))}`,
    ],
    env: { NO_COLOR: "1" },
  }).output();
  assertEquals(new TextDecoder().decode(stderr), "");
  assertEquals(JSON.parse(new TextDecoder().decode(stdout)), [
    { available: true },
    "watchdog only: this process cannot start /bin/sh, which sets limits of the operating system",
    ["tool_memory_exceeded", "tool_timeout"],
  ]);
});

Deno.test("a child that has exited can still be killed", async () => {
  const child = new GuestProcess({ memory_mb: 128, cpu_s: 10 });
  child.assign({ grant: guestGrant({}), uses: [], env: {}, memory_mb: 128, cpu_s: 10 });
  await child.kill({ cause: "ended", detail: "first" });
  await child.kill({ cause: "timeout", detail: "second" });
  assertEquals((await child.exited).detail, "first");
});

Deno.test("a mount() that never ends is named in the error", async () => {
  await using lab = new Lab();
  const thrown = await assertRejects(() =>
    mounted(lab, `export const mount = () => new Promise(() => {})`, { limits: { load_timeout_s: 2 } })
  );
  assertMatch(thrown.message, /^Cannot use module "[^"]*": mount\(\) did not finish within 2 s$/);
});

Deno.test("a tool whose output does not fit into the memory of its process has exceeded its memory", async () => {
  await using lab = new Lab();
  const limits = { memory_mb: 256 };
  const { call } = await mounted(lab, toolOf(`return "x".repeat(200_000_000)`), { limits });
  const { code } = await assertRejects(() => call("t")) as { code?: string };
  assertEquals(code, "tool_memory_exceeded");
});
