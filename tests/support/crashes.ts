/**
 * A run that passes every step of a run, and failures that strike its server at one of them. Another server
 * that shares the store then continues the run. Time is virtual, and side effects are counted.
 */
import * as contextSimple from "../../modules/context-simple/mod.ts";
import type { Entry } from "../../src/kernel/host.ts";
import type { Run } from "../../src/runs/types.ts";
import { PreampError } from "../../src/sdk/errors.ts";
import { toPlain } from "../../src/sdk/json.ts";
import { MockProvider, type ScriptedResponse } from "../../src/testing/mock_provider.ts";
import type { Message, Provider, SpawnSession } from "../../src/sdk/types.ts";
import type { MemoryStore } from "../../src/store/memory.ts";
import type { Change, Store } from "../../src/store/store.ts";
import { intervalsOf } from "./clock.ts";
import { CALLER, type Service, service, type TestPlan } from "./runs.ts";
import { hook, tool } from "./sessions.ts";

/** Steps of the run, in their order. */
export const STEPS = [
  "it waits for its session",
  "it begins",
  "its prompt is stored",
  "its model is asked",
  "its model has half answered",
  "the answer is stored",
  "a hook is asked about the call",
  "a question is open",
  "the question is answered",
  "a tool runs",
  "the result is stored",
  "an idempotent tool runs",
  "the history is compacted",
  "its sub-agent runs",
  "its end is being stored",
  "it has ended",
] as const;

export type Step = typeof STEPS[number];

/** What happens to the server of the run. */
export const FAILURES = [
  "killed",
  "refused once",
  "refused",
  "no answer",
  "stood still",
  "stopped",
  "plan gone",
] as const;

export type Failure = typeof FAILURES[number];

/** Milliseconds until another server may continue the runs of one that is gone. */
const GONE_MS = 6_000;

/** Milliseconds of a step of virtual time. */
const TICK_MS = 250;

/** Times that each side effect happened, in all servers. */
export interface Effects {
  /** Calls of the model. */
  asked: number;
  /** Executions of the tool `note`, which is not idempotent. */
  noted: number;
  /** Executions of the tool `look`, which is idempotent. */
  looked: number;
  /** Turns of the sub-agent. */
  spawned: number;
}

/** The connection of one server to the store, which can fail. */
export class Connection {
  /** Awaited by each call. */
  open: Promise<unknown> | null = null;
  /** Called before each call; what it rejects with is the answer. */
  before: (method: string, args: readonly unknown[]) => Promise<unknown> | void = () => {};
  /** Called after each call; the server has its answer when it has resolved. */
  after: (method: string, args: readonly unknown[], result: unknown) => Promise<unknown> | void = () => {};

  /** Ends the process: no call is answered any more. */
  cut(): void {
    this.open = new Promise(() => {});
  }

  /** Delays all calls until the returned function is called. */
  hold(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    const open = this.open = promise;
    return () => {
      if (this.open === open) this.open = null;
      resolve();
    };
  }

  /** Returns the store as its server sees it: others share it. */
  storeOf(memory: MemoryStore): Store {
    const changed = (signal: AbortSignal) =>
      new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    const methods = new Map<string | symbol, unknown>([["changed", changed]]);
    return new Proxy(memory as Store, {
      get: (_target, name) => {
        if (!methods.has(name)) methods.set(name, this.#methodOf(memory, name));
        return methods.get(name);
      },
    });
  }

  #methodOf(memory: MemoryStore, name: string | symbol): unknown {
    const method: unknown = Reflect.get(memory, name, memory);
    if (typeof method !== "function") return method;
    return async (...args: unknown[]) => {
      await this.before(String(name), args);
      if (this.open) await this.open;
      const result = method.apply(memory, args);
      await this.after(String(name), args, result);
      return result;
    };
  }
}

/** A run after a failure of its server. */
export interface Crashed {
  run: Run;
  entries: Entry[];
  /** Messages of its session. */
  messages: Message[];
  effects: Effects;
  /** Whether the session was free for other servers when the failure had struck. */
  free_at_once: boolean;
  /** Whether the other server found the run and continued or ended it. */
  recovered: boolean;
  /** Entries that a client has seen, which connects to the other server when its own one is gone. */
  seen: Entry[];
  /** The server that shares the store. */
  next: Service;
}

/** Lets a failure strike at a step, and a second server do what is left to do. */
export async function crash(step: Step, failure: Failure): Promise<Crashed> {
  const effects: Effects = { asked: 0, noted: 0, looked: 0, spawned: 0 };
  const connection = new Connection();
  let is_struck = false;
  /** Number of the next commits that the store refuses. */
  let refusals = 0;
  const holder = Promise.withResolvers<string>();
  let answer = () => {};

  /** Strikes if this is the step; resolves when the server may continue. */
  const reach = async (reached: Step) => {
    if (reached !== step || is_struck) return;
    is_struck = true;
    if (failure === "killed" || failure === "plan gone") connection.cut();
    else if (failure === "refused once") refusals = 1;
    else if (failure === "refused") refusals = Infinity;
    else if (failure === "no answer" || failure === "stood still") answer = connection.hold();
    if (failure !== "no answer") await connection.open; // the process itself works
  };
  const work = async (reached: Step) => {
    const strikes = reached === step && !is_struck;
    await reach(reached);
    if (strikes && failure === "stopped") await new Promise(() => {});
  };
  connection.before = async (method, [changes]) => {
    if (method !== "commit") return;
    if (stepsOf(changes).includes("its end is being stored")) await reach("its end is being stored");
    await connection.open;
    if (refusals-- > 0) throw new PreampError("overloaded", "Cannot use the store: it is away");
  };
  connection.after = async (method, [changes]) => {
    if (method !== "commit") return;
    for (const reached of stepsOf(changes)) if (reached !== "its end is being stored") await reach(reached);
    await connection.open;
  };

  const plans = { run: planOf(effects, { reach, work }), holder: holderPlan(holder.promise) };
  const one = service({ plans, store: (memory) => connection.storeOf(memory) });
  using _intervals = intervalsOf(one.clock); // in which leases are renewed
  const waits = step === "it waits for its session";
  const run_id = waits ? "run_2" : "run_1";
  if (waits) await one.post("holder", { prompt: "first" });
  one.post("run", waits ? { session_id: "ses_1", if_busy: "queue" } : {}).catch(() => {}); // its server may die
  const client = new Client(run_id);
  for (let ticks = 0; !is_struck; ticks++) {
    if (ticks === 200) throw new Error(`The run never comes to the step "${step}"`);
    client.watch(one);
    await one.clock.advance(TICK_MS);
  }
  const free_at_once = one.memory.free(["session/ses_1"]).length === 1;
  holder.resolve("ok");
  const other = new Connection();
  const next = service({
    plans: {
      run: {
        ...planOf(effects, NO_STEPS),
        ...(failure === "plan gone" ? { refused: new PreampError("policy_refused", "no tools today") } : {}),
      },
      holder: holderPlan(holder.promise),
    },
    beside: one,
    store: (memory) => other.storeOf(memory),
  });
  const isEnded = () => one.memory.get("run", run_id)?.value.ended_at !== null;
  const pass = async (ms: number, server?: Service) => {
    for (let passed_ms = 0; passed_ms < ms; passed_ms += TICK_MS) {
      if (server) client.watch(server);
      await one.clock.advance(TICK_MS);
    }
  };
  const drain = async () => {
    let is_drained = false;
    const drained = one.runs.drain(5_000).then(() => is_drained = true);
    while (!is_drained) await one.clock.advance(TICK_MS);
    await drained;
    connection.cut();
  };
  if (failure === "refused once") await pass(10_000, one);
  else if (failure === "no answer") {
    await pass(3_000, one);
    answer();
    await pass(10_000, one);
  } else if (failure === "stopped") await drain();
  else {
    if (failure === "refused") {
      await pass(2_000, one);
      await drain();
    }
    await pass(GONE_MS);
  }
  const recovered = (await next.runs.recover()).includes(run_id);
  for (let ticks = 0; ticks < 200 && !isEnded(); ticks++) await pass(TICK_MS, next);
  await pass(TICK_MS, next);
  if (failure === "stood still") {
    answer();
    await pass(10_000, one);
  }
  await pass(TICK_MS, next);
  const run = await next.runs.get(CALLER, run_id);
  const { data: messages } = await next.runs.sessions.messages(CALLER, run.session_id);
  return {
    run,
    entries: await next.entries(run_id),
    messages: messages as unknown as Message[],
    effects,
    free_at_once,
    recovered,
    seen: client.seen,
    next,
  };
}

/** A client of a run: reads its events, and allows what it asks for. */
class Client {
  readonly seen: Entry[] = [];
  readonly #run_id: string;
  #server: Service | null = null;
  #connection = new AbortController();
  #decides = false;

  constructor(run_id: string) {
    this.#run_id = run_id;
  }

  /** Uses a server from now on; called in each step of time. */
  watch(server: Service): void {
    if (server !== this.#server) {
      this.#connection.abort();
      this.#connection = new AbortController();
      this.#server = server;
      this.#decides = false;
      this.#follow(server, this.#connection.signal).catch(() => this.#server = null); // it connects again
    }
    if (!this.#decides) void this.#decide(server);
  }

  async #follow(server: Service, signal: AbortSignal): Promise<void> {
    const after = this.seen.at(-1)?.seq ?? 0;
    for await (const page of server.runs.follow(CALLER, this.#run_id, { after, signal })) {
      if (signal.aborted) return;
      this.seen.push(...toPlain(page) as unknown as Entry[]);
    }
  }

  async #decide(server: Service): Promise<void> {
    this.#decides = true;
    try {
      const approvals = await server.runs.approvals(CALLER, this.#run_id);
      const open = approvals.find(({ status }) => status === "pending");
      if (open) await server.runs.decide(CALLER, this.#run_id, open.id, { decision: "allow" });
    } catch {
      // the run is not there yet, or its server does not take the answer: repeated in the next step of time
    }
    if (server === this.#server) this.#decides = false;
  }
}

/** Returns the entries that a commit appends. */
export function appendedBy(changes: unknown): Entry[] {
  const all = changes as readonly Change[]; // the argument of a commit
  return all.flatMap((change) => "append" in change ? change.entries as Entry[] : []);
}

/** Returns the steps that a commit stores. */
function stepsOf(changes: unknown): Step[] {
  return appendedBy(changes).flatMap(({ event, data, session_id }): Step[] => {
    if (session_id !== "ses_1") return [];
    switch (event) {
      case "run:start":
      case "run:status":
        return data.status === "queued"
          ? ["it waits for its session"]
          : data.status === "running"
          ? ["it begins"]
          : [];
      case "context:message":
        return (data.message as Message).role === "user" ? ["its prompt is stored"] : [];
      case "provider:response":
        return ["the answer is stored"];
      case "approval:required":
        return ["a question is open"];
      case "approval:granted":
        return ["the question is answered"];
      case "tool:post":
        return ["the result is stored"];
      case "run:end":
        return ["its end is being stored", "it has ended"];
      default:
        return [];
    }
  });
}

/** Returns the plan of the run that has the session first. */
function holderPlan(release: Promise<string>): TestPlan {
  return {
    providers: [[{ tool_calls: [{ name: "hold" }] }, "held"]],
    tools: [tool("hold", () => release)],
  };
}

/** Called by the modules of the run at its steps; each resolves when the module may continue. */
interface Steps {
  reach(step: Step): Promise<void>;
  /** Is work that does not end in time when the server stops. */
  work(step: Step): Promise<void>;
}

const NO_STEPS: Steps = { reach: () => Promise.resolve(), work: () => Promise.resolve() };

/** Returns the plan of the run: it calls `note`, which asks, then `look`, then `delegate`, and answers. */
function planOf(effects: Effects, { reach, work }: Steps): TestPlan {
  const call = (name: string): ScriptedResponse => ({ text: `I ${name}.`, tool_calls: [{ name, id: name }] });
  const script: [result: string, next: ScriptedResponse][] = [
    ["delegate", { text: "done" }],
    ["look", call("delegate")],
    ["note", call("look")],
  ];
  const model = (complete: Provider["complete"]): Provider =>
    Object.assign(new MockProvider({ context_window: 4_000, max_output_tokens: 500 }), { complete });
  return {
    context: { ...contextSimple, id: "context-simple", config: {} },
    providers: [model(async (request, options = {}) => {
      effects.asked++;
      await work("its model is asked");
      const results = request.messages.map(({ tool_call_id }) => tool_call_id);
      const [, answer] = script.find(([result]) => results.includes(result)) ?? ["", call("note")];
      options.onDelta?.({ block_index: 0, block_type: "text", delta: answer.text!.slice(0, 2) });
      await work("its model has half answered");
      return await new MockProvider([answer]).complete(request, {});
    })],
    tools: [
      tool("note", async () => {
        effects.noted++;
        await work("a tool runs");
        return "noted";
      }),
      tool("look", async () => {
        effects.looked++;
        await work("an idempotent tool runs");
        return "word ".repeat(3_000);
      }, { idempotent: true }),
      async (coordinator) => {
        const delegate = tool("delegate", async (_input, call) => {
          const spawn = coordinator.getCapability("session.spawn") as SpawnSession;
          return (await spawn({ instruction: "help", tool_call_id: call!.id })).output;
        });
        await coordinator.mount("tools", delegate);
      },
    ],
    hooks: [
      hook("tool:pre", async (_event, { tool_name }) => {
        if (tool_name !== "note") return { action: "continue" };
        await reach("a hook is asked about the call");
        return { action: "ask_user", approval_prompt: "May it write a note?" };
      }),
      hook("context:pre_compact", async () => {
        await reach("the history is compacted");
        return null;
      }),
    ],
    agent: {
      providers: [model(async (request) => {
        effects.spawned++;
        await work("its sub-agent runs");
        return await new MockProvider(["helped"]).complete(request);
      })],
    },
  };
}
