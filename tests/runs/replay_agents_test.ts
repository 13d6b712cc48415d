/** Replay of runs with sub-agents: their loops run too, in recorded order. */
import type { Entry } from "../../src/kernel/host.ts";
import type { Recording } from "../../src/runs/types.ts";
import type { JsonObject, Module } from "../../src/sdk/types.ts";
import { assertEquals } from "../assert.ts";
import { someOf } from "../support/cases.ts";
import {
  type AgentsKit,
  agentsKit,
  type AgentsKitOptions,
  CALLER,
  planOf,
  script,
  sum,
  tasks,
} from "../support/sub_agents.ts";
import { again, MortalStore, runUntilGone } from "./killed.ts";
import { replayed } from "../support/runs.ts";

interface Family {
  plan: JsonObject;
  options?: AgentsKitOptions;
  /** Called with each entry once it can be read. */
  react?: (entry: Entry, outside: Pick<AgentsKit, "runs">) => Promise<unknown> | void;
  /** A run of the same session before this one. */
  before?: true;
}

const HELPER = { description: "Helps", system: "You help.", providers: [script(sum("6*7"), "It is 42.")] };
const ASK_HELPER = tasks({ agent: "helper", instruction: "What is 6 × 7?" });
const sums = (count: number) => Array.from({ length: count }, () => sum());
const SLOW = { providers: [script({ delay_ms: 1_000, ...sum() }, { delay_ms: 1_000, text: "at last" })] };
const ASKING = {
  hooks: [{ module: "hooks-approval", config: { rules: [{ tool: "calculator", action: "ask" }] } }],
};

const decide = (decision: string): NonNullable<Family["react"]> => ({ event, run_id, data }, { runs }) =>
  event === "approval:required"
    ? runs.decide(CALLER, run_id, String(data.approval_id), { decision })
    : undefined;

const cancel = (mode: "graceful" | "immediate"): NonNullable<Family["react"]> => (entry, { runs }) =>
  entry.event === "provider:request" && entry.parent_id !== undefined
    ? runs.cancel(CALLER, entry.run_id, mode)
    : undefined;

const spawnsAndForgets: Module["mount"] = (coordinator) =>
  coordinator.mount("tools", {
    name: "calculator",
    description: "Spawns and forgets",
    execute() {
      const spawn = coordinator.getCapability("session.spawn") as (request: JsonObject) => Promise<unknown>;
      spawn({ agent: "slow", instruction: "x" }).catch(() => {}); // not awaited on purpose
      return "on its way";
    },
  });

const deniesChildren: Module["mount"] = (coordinator) => {
  coordinator.hooks.register(
    "prompt:submit",
    () => coordinator.parent_id === null ? null : { action: "deny", reason: "not by delegation" },
  );
};

const asksAgain: Module["mount"] = (coordinator) => {
  coordinator.hooks.register("tool:post", async () => {
    await coordinator.providers.mock!.complete({ messages: [{ role: "user", content: "well?" }] });
    return null;
  });
};

/** Mounts an orchestrator of its own when a sub-agent starts. */
const replacesLoop: Module["mount"] = (coordinator) => {
  coordinator.hooks.register("session:start", async () => {
    if (coordinator.parent_id === null) return null;
    await coordinator.mount("orchestrator", { execute: () => Promise.resolve("mine") });
    return null;
  });
};

/** A tool that cancels its own session gracefully, and half a second later immediately. */
const cancelsTwice: Module["mount"] = (coordinator) =>
  coordinator.mount("tools", {
    name: "calculator",
    description: "Cancels twice",
    async execute(_input: unknown, { signal }: { signal: AbortSignal }) {
      coordinator.requestCancel(false);
      await coordinator.clock.after(500, signal);
      coordinator.requestCancel(true);
      await coordinator.clock.after(50_000, signal);
    },
  });

const FAMILIES: Record<string, Family> = {
  "a sub-agent that uses a tool": { plan: planOf([ASK_HELPER, "done"], { helper: HELPER }) },
  "two concurrent sub-agents, the later one first": {
    plan: planOf(
      [tasks({ agent: "slow", instruction: "x" }, { agent: "helper", instruction: "y" }), "done"],
      {
        slow: SLOW,
        helper: HELPER,
      },
    ),
  },
  "a nested sub-agent": {
    plan: planOf([tasks({ agent: "down", instruction: "x" }), "done"], {
      down: { providers: [script(tasks({ agent: "helper", instruction: "deeper" }), "from below")] },
      helper: HELPER,
    }),
  },
  "the plan itself as a sub-agent": {
    plan: planOf([tasks({ instruction: "you again" }), "done"], {}, { system: "Be brief." }),
    options: { limits: { max_depth: 1 } },
  },
  "a sub-agent that continues in the same run": {
    plan: planOf([
      tasks({ agent: "helper", instruction: "first" }),
      tasks({ session_id: "ses_2", instruction: "second" }),
      "done",
    ], { helper: { providers: [script("one", "two")] } }),
  },
  "a sub-agent that continues in a later run": {
    before: true,
    plan: planOf([
      tasks({ agent: "helper", instruction: "first" }),
      "end of the first run",
      tasks({ session_id: "ses_2", instruction: "second" }),
      "end of the second run",
    ], { helper: { providers: [script("one", "two")] } }),
  },
  "a sub-agent with limits of its own": {
    plan: planOf([ASK_HELPER, sum(), "done"], {
      helper: { providers: [script(sum(), sum(), "never")], limits: { max_tool_calls: 1 } },
    }),
  },
  "a sub-agent that reaches the run's limit": {
    plan: planOf([ASK_HELPER, "never"], { helper: { providers: [script(sum(), sum(), "never")] } }, {
      limits: { max_tool_calls: 2 },
    }),
  },
  "a sub-agent that loops until the run's model calls are nearly used up": {
    plan: planOf([ASK_HELPER, sum(), "what there is"], {
      helper: { providers: [script(...sums(4), "so far 2")] },
    }, {
      limits: { max_iterations: 7 },
    }),
  },
  "concurrent sub-agents that loop": {
    plan: planOf(
      [tasks({ agent: "helper", instruction: "x" }, { agent: "other", instruction: "y" }), "what there is"],
      { helper: { providers: [script(...sums(9))] }, other: { providers: [script(...sums(9))] } },
      { limits: { max_iterations: 6 } },
    ),
  },
  "a sub-agent that uses up the run's tokens": {
    plan: planOf([ASK_HELPER, "never"], {
      helper: {
        providers: [script({ ...sum(), usage: { input_tokens: 9_000, output_tokens: 900 } }, "never")],
      },
    }, { limits: { max_total_tokens: 10_000 } }),
  },
  "approval of a sub-agent's call": {
    plan: planOf([ASK_HELPER, "done"], { helper: HELPER }, ASKING),
    react: decide("allow"),
  },
  "denial of a sub-agent's call": {
    plan: planOf([ASK_HELPER, "done"], { helper: HELPER }, ASKING),
    react: decide("deny"),
  },
  "a sub-agent whose prompt is denied": {
    plan: planOf([ASK_HELPER, "done"], { helper: HELPER }, { hooks: ["hooks-timing"] }),
    options: { modules: { "hooks-timing": deniesChildren } },
  },
  "a sub-agent whose provider fails": {
    plan: planOf([ASK_HELPER, "done"], {
      helper: { providers: [script({ error: { type: "AuthenticationError", message: "no" } })] },
    }),
  },
  "a sub-agent whose modules cannot be mounted": {
    plan: planOf([ASK_HELPER, "done"], {
      helper: {
        session: {
          context: { module: "context-simple", config: { target_usage: 0.9, compact_threshold: 0.5 } },
        },
      },
    }),
  },
  "graceful cancellation during a sub-agent": {
    plan: planOf([tasks({ agent: "slow", instruction: "x" }), "never"], { slow: SLOW }),
    react: cancel("graceful"),
  },
  "immediate cancellation during a sub-agent": {
    plan: planOf([tasks({ agent: "slow", instruction: "x" }), "never"], { slow: SLOW }),
    react: cancel("immediate"),
  },
  "graceful, then immediate cancellation during a sub-agent": {
    plan: planOf([tasks({ agent: "slow", instruction: "x" }), "never"], { slow: SLOW }),
    react: async (entry, outside) => {
      await cancel("graceful")(entry, outside);
      await cancel("immediate")(entry, outside);
    },
  },
  "a sub-agent that cancels itself twice, beside another one": {
    plan: planOf(
      [tasks({ agent: "helper", instruction: "x" }, { agent: "slow", instruction: "y" }), "done"],
      { helper: HELPER, slow: { providers: [script({ delay_ms: 3_000, text: "at last" })] } },
    ),
    options: { modules: { "tool-calculator": cancelsTwice } },
  },
  "the timeout of the run during a sub-agent": {
    plan: planOf([tasks({ agent: "slow", instruction: "x" }), "never"], {
      slow: { providers: [script({ delay_ms: 60_000, text: "late" })] },
    }, { limits: { max_duration_s: 5 } }),
  },
  "a sub-agent whose hook calls a provider": {
    plan: planOf([ASK_HELPER, "done"], { helper: { ...HELPER, hooks: ["hooks-timing"] } }),
    options: { modules: { "hooks-timing": asksAgain } },
  },
  "a sub-agent whose hook mounts its orchestrator": {
    plan: planOf([ASK_HELPER, "done"], { helper: { ...HELPER, hooks: ["hooks-timing"] } }),
    options: { modules: { "hooks-timing": replacesLoop } },
  },
  "a sub-agent that no call awaits": {
    plan: planOf([sum(), "done"], { slow: { providers: [script({ delay_ms: 1_000_000, text: "never" })] } }),
    options: { modules: { "tool-calculator": spawnsAndForgets } },
  },
};

/** Runs a scenario to its end, advancing time. */
async function play({ plan, options, react, before }: Family): Promise<{ kit: AgentsKit; run_id: string }> {
  const kit = agentsKit(options);
  const more = before ? { session_id: (await kit.run(plan)).run.session_id } : {};
  const handle = await kit.start(plan, more);
  await toEnd(kit, handle.id, react);
  return { kit, run_id: handle.id };
}

async function toEnd(kit: AgentsKit, run_id: string, react: Family["react"]): Promise<void> {
  let done = false;
  const handle = await kit.runs.handle(CALLER, run_id);
  const ended = handle.settled("end").finally(() => done = true);
  const following = (async () => {
    for await (const page of kit.runs.follow(CALLER, run_id, {})) {
      for (const entry of page) await react?.(entry, kit);
    }
  })();
  for (let steps = 0; !done && steps < 1_000; steps++) await kit.clock.advance(100);
  await Promise.all([ended, following]);
}

for (const [name, family] of Object.entries(FAMILIES)) {
  Deno.test(`replay() is equal: ${name}`, async () => {
    const { kit, run_id } = await play(family);
    assertEquals(await replayed(kit, run_id), { equal: true });
  });
}

/** Kills the process of a run after an entry; another one recovers the run. */
async function killAndResume({ plan, options, react }: Family, last: number): Promise<[AgentsKit, string]> {
  let mortal: MortalStore | undefined;
  const first = agentsKit({ ...options, store: (memory) => mortal = new MortalStore(memory, last) });
  const { id } = await first.start(plan);
  const reacting = react ? { react } : {};
  await runUntilGone(first, id, reacting, mortal!);
  await first.clock.advance(5_001);
  const next = agentsKit({ ...options, beside: first });
  assertEquals(await next.runs.recover(), [id]);
  await toEnd(
    next,
    id,
    (entry) => again(reacting, entry, { runs: next.runs, run_id: id, decide: () => Promise.resolve() }),
  );
  return [next, id];
}

for (
  const name of [
    "a sub-agent that uses a tool",
    "two concurrent sub-agents, the later one first",
    "a nested sub-agent",
    "approval of a sub-agent's call",
  ]
) {
  Deno.test(`replay() of a run that was killed after any of its entries is equal: ${name}`, async () => {
    const family = FAMILIES[name]!;
    const { kit, run_id } = await play(family);
    const entries = await kit.entries(run_id);
    const accepted = entries.findIndex(({ event }) => event === "session:start");
    const kills = Array.from({ length: entries.length - accepted }, (_, index) => accepted + index);
    for (const last of someOf(kills, 4)) {
      const [next, id] = await killAndResume(family, last);
      assertEquals([last, await replayed(next, id)], [last, { equal: true }]);
    }
  });
}

Deno.test("an open question of a sub-agent is denied once when the run is recovered", async () => {
  const family = FAMILIES["approval of a sub-agent's call"]!;
  const { kit, run_id } = await play(family);
  const asked = (await kit.entries(run_id)).find(({ event }) => event === "approval:required")!;
  const [next, id] = await killAndResume({ plan: family.plan }, asked.seq + 1);
  const entries = await next.entries(id);
  const takeover = entries.findIndex(({ data }) => data.resumed === true);
  assertEquals(entries[takeover]?.data.status, "awaiting_approval");
  const [denied, status] = entries.slice(takeover + 1);
  assertEquals([denied?.event, denied?.session_id, denied?.parent_id, denied?.data.reason], [
    "approval:denied",
    asked.session_id,
    asked.parent_id,
    "its sub-agent was interrupted",
  ]);
  assertEquals([status?.event, status?.data], ["run:status", { status: "running" }]);
  const approvals = await next.runs.approvals(CALLER, id);
  assertEquals(approvals.map((approval) => approval.status), ["denied"]);
  assertEquals((await next.runs.get(CALLER, id)).status, "completed");
});

async function recorded(name: string): Promise<{ kit: AgentsKit; recording: Recording }> {
  const { kit, run_id } = await play(FAMILIES[name]!);
  return { kit, recording: JSON.parse(JSON.stringify(await kit.runs.recording(CALLER, run_id))) };
}

Deno.test("replay() says what a sub-agent does otherwise, and how it ended", async () => {
  const changes: [(data: JsonObject) => void, string, string][] = [
    [
      (data) => data.tool_input = { expression: "1+1" },
      "tool:pre",
      'call 1 of turn 1 of sub-agent "helper": recorded calculator {"expression":"1+1"}, now calculator {"expression":"6*7"}',
    ],
    [
      (data) => data.status = "denied",
      "task:agent_completed",
      'status of turn 1 of sub-agent "helper": recorded denied, now completed',
    ],
  ];
  for (const [change, event, message] of changes) {
    const { kit, recording } = await recorded("a sub-agent that uses a tool");
    change(recording.events.find((entry) => entry.event === event && isOfAgent(entry))!.data);
    const { first_difference } = await replayed(kit, recording);
    assertEquals([first_difference?.message, first_difference?.session_id], [message, "ses_2"]);
  }
});

Deno.test("replay() numbers the turns of a sub-agent that continues in the same run", async () => {
  const { kit, recording } = await recorded("a sub-agent that continues in the same run");
  recording.events.findLast(({ event }) => event === "task:agent_completed")!.data.status = "denied";
  assertEquals(
    (await replayed(kit, recording)).first_difference?.message,
    'status of turn 2 of sub-agent "helper": recorded denied, now completed',
  );
});

function isOfAgent({ event, parent_id }: Entry): boolean {
  return event === "task:agent_completed" || parent_id !== undefined;
}

Deno.test("replay() leaves a sub-agent out when its input is not in the recording", async () => {
  const { kit, recording } = await recorded("a sub-agent that uses a tool");
  const { agents, ...replay } = recording.replay;
  assertEquals(agents?.map(({ session_id }) => session_id), ["ses_2"]);
  assertEquals(await replayed(kit, { ...recording, replay }), { equal: true });
});
