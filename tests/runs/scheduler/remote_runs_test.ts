import type { CommandHandler, StoredCommand } from "../../../src/runs/scheduler/remote_runs.ts";
import { RemoteRuns } from "../../../src/runs/scheduler/remote_runs.ts";
import type { RunsDeps } from "../../../src/runs/ports.ts";
import { PreampError } from "../../../src/sdk/errors.ts";
import type { JsonObject } from "../../../src/sdk/types.ts";
import { FakeClock } from "../../../src/testing/clocks.ts";
import { MemoryStore } from "../../../src/store/memory.ts";
import { assertEquals } from "../../assert.ts";
import { codeOf } from "../../support/asking_runs.ts";
import { settle } from "../shared_store.ts";

const KIND = "run_command";

/** Creates a store with an open run, and servers that share it. */
function made() {
  const store = Object.assign(new MemoryStore({ now: () => 0 }), {
    changed: (signal: AbortSignal) =>
      new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true })),
  });
  const run = (open: string) => ({
    put: { kind: "run", key: "run_1", namespace: "a", value: {}, index: { open } },
  });
  store.commit([run("true")]);
  const clock = new FakeClock();
  const server = (handler: Partial<CommandHandler> = {}) =>
    new RemoteRuns(
      { store, clock, log: () => {} } as unknown as RunsDeps, // all it uses
      { isActive: () => false, carryOut: () => Promise.resolve(true), answer: async () => {}, ...handler },
    );
  /** Returns a server that executes the run, and what it carries out. */
  const executing = (carryOut: CommandHandler["carryOut"]) => {
    const handled: StoredCommand[] = [];
    const remote = server({
      isActive: () => true,
      carryOut: async (run_id, command, deletion) => {
        if (!await carryOut(run_id, command, deletion)) return false;
        handled.push(command);
        store.commit([deletion]);
        return true;
      },
    });
    return { remote, handled };
  };
  const commands = () => store.list(KIND, { namespace: "internal", limit: 1_000 }).records;
  const end = () => store.commit([run("false")]);
  return { store, clock, server, executing, commands, end };
}

const steer = (text: string) => ({ kind: "steer", text }) as const;
const CANCEL = { kind: "cancel", mode: "graceful" } as const;

Deno.test("commands of a run are carried out in the order in which servers have stored them, whatever their clocks say", async () => {
  const { server, executing, commands } = made();
  const [one, two] = [server(), server()];
  for (const [sender, text] of [[one, "a"], [two, "b"], [one, "c"]] as const) {
    await sender.store("run_1", steer(text));
  }
  await Promise.all([one.store("run_1", CANCEL), two.store("run_1", steer("d"))]); // one of them tries again
  const { remote, handled } = executing(() => Promise.resolve(true));
  await remote.carryOut("run_1");
  const texts = handled.map((command) => command.kind === "steer" ? command.text : command.kind);
  assertEquals(texts.slice(0, 3), ["a", "b", "c"]);
  assertEquals([...texts.slice(3)].sort(), ["cancel", "d"]);
  assertEquals(commands(), []);
});

Deno.test("a command that must come later is left, and those of its kind after it; others are carried out", async () => {
  const { server, executing, commands } = made();
  let isFull = true;
  const { remote, handled } = executing((_run_id, { kind }) => Promise.resolve(kind !== "steer" || !isFull));
  for (const command of [steer("a"), CANCEL, steer("b")]) await server().store("run_1", command);
  await remote.carryOut("run_1");
  assertEquals([handled, commands().length], [[CANCEL], 2]);
  isFull = false;
  await remote.carryOut("run_1");
  assertEquals(handled, [CANCEL, steer("a"), steer("b")]);
});

Deno.test("a cancellation is stored once; steering is refused while too many commands of a run wait", async () => {
  const { server, commands } = made();
  for (let count = 0; count < 3; count++) await server().store("run_1", CANCEL);
  assertEquals(commands().length, 1);
  for (let count = 1; count < 100; count++) await server().store("run_1", steer(`${count}`));
  assertEquals(await codeOf(() => server().store("run_1", steer("more"))), "overloaded");
  await server().store("run_1", { ...CANCEL, mode: "immediate" }); // always
  assertEquals(commands().length, 101);
});

Deno.test("commands that were stored just before the end of their run are deleted by any server", async () => {
  const { server, commands, clock, end } = made();
  const other = server();
  other.start(() => {}, () => false);
  await other.store("run_1", steer("late"));
  await clock.advance(1_000);
  await settle();
  assertEquals(commands().length, 1); // the next server may continue the run
  end();
  await clock.advance(1_000);
  await settle();
  assertEquals(commands(), []);
  other.stop();
});

Deno.test("a server answers the command of one of the version before, which waits for the result", async () => {
  const { store, server } = made();
  const handled: unknown[] = [];
  const remote = server({
    isActive: () => true,
    answer: (run_id, command) => {
      handled.push([run_id, command]);
      if (command.kind !== "steer") return Promise.resolve();
      return Promise.reject(new PreampError("not_steerable", "It takes none"));
    },
  });
  const older = (key: string, command: JsonObject) => ({
    put: {
      kind: KIND,
      key,
      namespace: "internal",
      value: { run_id: "run_1", command },
      index: { state: "open" },
      expires_ms: 1_000,
    },
  });
  store.commit([older("cmd_1", steer("x")), older("cmd_2", CANCEL)]);
  remote.start(() => {}, () => false);
  await settle();
  remote.stop();
  assertEquals(handled.length, 2);
  const answer = (key: string) => {
    const { value, index, expires_ms } = store.get(KIND, key)!;
    return [value.result, index, expires_ms];
  };
  assertEquals([answer("cmd_1"), answer("cmd_2")], [
    [{ code: "not_steerable", message: "It takes none" }, { state: "done" }, 1_000],
    ["done", { state: "done" }, 1_000],
  ]);
});
