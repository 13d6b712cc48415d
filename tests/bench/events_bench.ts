/**
 * Events: microseconds per emitted event of the kernel, including its log entry, without hooks and with ten.
 * The floor calls ten hooks in turn, each with its own copy of the payload.
 *
 *   deno run tests/bench/events_bench.ts [events] [rounds]
 */
import type { HookHandler, HookRegistry, JsonObject } from "../../src/sdk/types.ts";
import { compare, print, report, tableOf } from "./figures.ts";
import { openKernelSession } from "./kernel_session.ts";

const HOOKS = 10;
const events = Number(Deno.args[0] ?? 5_000);
const rounds = Number(Deno.args[1] ?? 7);

/** Data of the size of a `tool:post` event. */
const data: JsonObject = {
  tool_name: "calculator",
  tool_call_id: "call_1",
  tool_input: { expression: "6*7" },
  parallel_group_id: "grp_1",
  result: { success: true, output: "42", error: null },
};

let seen = 0;

/** A typical hook: asynchronous, reads a field, lets the event pass. */
const handler: HookHandler = (_event, payload) => {
  if (payload.tool_name === "calculator") seen++;
  return Promise.resolve({ action: "continue" });
};

const { session, entries } = openKernelSession({
  async execute(_prompt, _context, _providers, _tools, hooks) {
    const medians = await compare(rounds, {
      none_floor: () => bare(0),
      none: () => emitAll(hooks, "bench:quiet"),
      ten_floor: () => bare(HOOKS),
      ten: () => {
        register(hooks);
        return emitAll(hooks, "bench:heard");
      },
    });
    printFigures(medians);
    return "measured";
  },
});
const outcome = await session.execute("measure");
if (outcome.status !== "completed") {
  throw new Error(`Cannot measure: the turn ended ${outcome.status}: ${outcome.error?.message}`);
}
if (seen !== (rounds + 1) * events * HOOKS * 2) {
  throw new Error(`Cannot measure: every hook must see every event: received ${seen}`);
}

/** Registers the hooks, once. */
function register(hooks: HookRegistry): void {
  if (hooks.listHandlers("bench:heard")["bench:heard"]?.length) return;
  for (let index = 0; index < HOOKS; index++) {
    hooks.register("bench:heard", handler, { name: `hook-${index}` });
  }
}

async function emitAll(hooks: HookRegistry, event: string): Promise<void> {
  entries.length = 0; // keeps the log of one round only
  for (let index = 0; index < events; index++) await hooks.emit(event, data);
  const written = entries.filter((entry) => entry.event === event).length;
  if (written !== events) {
    throw new Error(`Cannot measure: ${events} entries must be written: received ${written}`);
  }
}

async function bare(count: number): Promise<void> {
  for (let index = 0; index < events; index++) {
    const text = JSON.stringify(data);
    for (let hook = 0; hook < count; hook++) await handler("bench", JSON.parse(text));
    await null;
  }
}

function printFigures(medians: Record<"none_floor" | "none" | "ten_floor" | "ten", number>): void {
  const { none_floor, none, ten_floor, ten } = mapValues(medians, (ms) => ms * 1000 / events);
  print(`Events, ${events} a round, median of ${rounds} rounds`);
  print(tableOf(["hooks", "µs/event", "floor µs", "ratio"], [
    ["0", none, none_floor, none / none_floor],
    [String(HOOKS), ten, ten_floor, ten / ten_floor],
  ]));
  report("events", {
    events,
    rounds,
    us_per_event: { hooks_0: none, hooks_10: ten },
    floor_us: { hooks_0: none_floor, hooks_10: ten_floor },
    ratio_hooks_10: ten / ten_floor,
  });
}

function mapValues<Key extends string>(
  values: Record<Key, number>,
  change: (value: number) => number,
): Record<Key, number> {
  const changed = Object.entries<number>(values).map(([key, value]) => [key, change(value)]);
  return Object.fromEntries(changed) as Record<Key, number>; // the same keys
}
