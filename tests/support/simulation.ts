/**
 * Many servers over one store in virtual time, with random failures: kills, processes that stand still,
 * servers that do not reach the store, clocks that jump.
 *
 * Real are `RunService` with its scheduler, leases, queues and recovery, and the runs with their records.
 * Simulated are time, the model, one tool, and the store: it is in memory, and each server has a connection.
 * The store reports no change to the servers: each looks once a second.
 */
import type { Entry, HostClock } from "../../src/kernel/host.ts";
import type { Run } from "../../src/runs/types.ts";
import { PreampError } from "../../src/sdk/errors.ts";
import type { Message, Provider } from "../../src/sdk/types.ts";
import { MockProvider } from "../../src/testing/mock_provider.ts";
import type { FakeClock } from "../../src/testing/clocks.ts";
import type { Fence } from "../../src/store/store.ts";
import { assert, assertEquals } from "../assert.ts";
import { intervalsOf } from "./clock.ts";
import { appendedBy, Connection } from "./crashes.ts";
import { CALLER, type Service, service, type TestPlan } from "./runs.ts";
import { tool } from "./sessions.ts";

/** A simulation. */
export interface World {
  /** Repeats the same failures. */
  seed: number;
  servers: number;
  sessions: number;
  /** Runs of each session; each waits for the one before. */
  runs: number;
  /** Seconds in which servers fail. */
  trouble_s: number;
  /** Part of the servers that fail in one second. */
  rate: number;
  /** Maximum seconds of a model call or a tool call. */
  call_s: number;
}

/** What a simulation came to. */
export interface Report {
  /** Runs that were accepted; all have ended. */
  runs: number;
  /** Runs of servers that were killed, which others have taken over. */
  taken_over: number;
  /** Longest time from the kill of a server until another one had its run. */
  longest_takeover_ms: number;
  kills: number;
  freezes: number;
  partitions: number;
  jumps: number;
}

/**
 * Milliseconds until another server has the run of one that was killed: those until its lease expires, and
 * those until the next search.
 */
export const LONGEST_TAKEOVER_MS = 10_000;

/** Milliseconds of a step of virtual time. */
const TICK_MS = 250;
/** Seconds after the last failure in which all runs end. */
const CALM_S = 120;
/** Limits that no run of a simulation reaches. */
const LIMITS = { max_concurrent_runs: 100_000, max_runs_per_key: 100_000 };

/** The clock of one process: it may show another time than the others, and stand still with the process. */
class ProcessClock implements HostClock {
  readonly #clock: FakeClock;
  skew_ms = 0;
  /** Awaited before what is due is done. */
  stands: Promise<unknown> | null = null;

  constructor(clock: FakeClock) {
    this.#clock = clock;
  }

  now(): number {
    return this.#clock.now() + this.skew_ms;
  }

  monotonic(): number {
    return this.#clock.monotonic();
  }

  async after(ms: number, signal?: AbortSignal): Promise<void> {
    await this.#clock.after(ms, signal);
    if (this.stands) await this.stands;
  }

  later(ms: number, then: () => void): () => void {
    let is_stopped = false;
    const act = () => {
      if (!is_stopped) then();
    };
    const stop = this.#clock.later(ms, () => this.stands ? void this.stands.then(act) : act());
    return () => {
      is_stopped = true;
      stop();
    };
  }
}

/** One server. */
class Server {
  readonly connection = new Connection();
  clock!: ProcessClock;
  service!: Service;
  /** Whether it can be asked: it runs and reaches the store. */
  is_well = true;
  is_dead = false;
}

/** Simulates a world; resolves once all its runs have ended and all has been checked. */
export async function simulate(world: World): Promise<Report> {
  const { random } = Math;
  Math.random = randomOf(world.seed);
  try {
    return await new Simulation(world).run();
  } catch (error) {
    throw new Error(`Simulation ${JSON.stringify(world)}`, { cause: error });
  } finally {
    Math.random = random;
  }
}

/**
 * Resolves to the calls of the store in one second, while servers have runs in which nothing happens: each
 * waits for its model.
 */
export async function callsPerSecond(servers: number, runs: number): Promise<number> {
  const world = { seed: 1, servers, sessions: runs, runs: 1, trouble_s: 0, rate: 0, call_s: 1e6 };
  return await new Simulation(world).idle();
}

class Simulation {
  readonly #world: World;
  readonly #servers: Server[] = [];
  #started = 0;
  /** The first service has the time and the store of all, and no run. */
  readonly #base = service();
  /** Lease → its holder, as the store has answered. */
  readonly #holders = new Map<string, { server: Server; token: number }>();
  /** Session → the run that has begun and not ended. */
  readonly #active = new Map<string, string>();
  /** Run → its session. */
  readonly #sessionOf = new Map<string, string>();
  /** Runs in the order in which they began. */
  readonly #begun = new Set<string>();
  /** Session → its runs, in the order in which they were accepted. */
  readonly #accepted = new Map<string, string[]>();
  /** Prompt → executions of the tool. */
  readonly #effects = new Map<string, number>();
  /** Lease of a killed server, of a run that has not ended → when the server was killed. */
  readonly #orphaned = new Map<string, number>();
  readonly #problems: string[] = [];
  /** Calls of the store. */
  #calls = 0;
  readonly #report: Report = {
    runs: 0,
    taken_over: 0,
    longest_takeover_ms: 0,
    kills: 0,
    freezes: 0,
    partitions: 0,
    jumps: 0,
  };

  constructor(world: World) {
    this.#world = world;
  }

  async run(): Promise<Report> {
    const { servers, sessions, trouble_s } = this.#world;
    const { clock } = this.#base;
    using _intervals = intervalsOf(clock);
    for (let count = 0; count < servers; count++) this.#start();
    let posting = sessions;
    for (let index = 0; index < sessions; index++) {
      this.#post(`s${index}`).catch((error) => this.#problems.push(String(error))).finally(() => posting--);
    }
    for (let passed_ms = 0; passed_ms < trouble_s * 1000; passed_ms += TICK_MS) {
      if (passed_ms % 1000 === 0) this.#fail();
      await clock.advance(TICK_MS);
    }
    for (let passed_ms = 0; posting > 0 || !this.#isOver(); passed_ms += 1000) {
      this.#check();
      assert(passed_ms < CALM_S * 1000, `not ended after ${CALM_S} s: ${this.#open().map(({ id }) => id)}`);
      await clock.advance(1000);
    }
    await clock.advance(10_000); // frozen servers continue
    this.#check();
    await this.#checkRuns();
    for (const { service } of this.#servers) await this.#within(service.runs.close());
    return this.#report;
  }

  async idle(): Promise<number> {
    const { servers, sessions } = this.#world;
    const { clock } = this.#base;
    using _intervals = intervalsOf(clock);
    for (let count = 0; count < servers; count++) this.#start();
    for (let index = 0; index < sessions; index++) await this.#post(`s${index}`);
    await clock.advance(10_000);
    this.#calls = 0;
    await clock.advance(20_000);
    const calls = this.#calls;
    for (const { connection } of this.#servers) connection.cut();
    return calls / 20;
  }

  async #within(done: Promise<void>): Promise<void> {
    let is_done = false;
    void done.finally(() => is_done = true);
    while (!is_done) await this.#base.clock.advance(100);
  }

  // servers and their failures

  #start(): void {
    const server = new Server();
    const number = ++this.#started;
    server.connection.after = (method, args, result) => this.#observe(server, method, args, result);
    server.service = service({
      plans: { work: this.#plan() },
      beside: this.#base,
      store: (memory) => server.connection.storeOf(memory),
      clockOf: (clock) => server.clock = new ProcessClock(clock),
      ids: (prefix, count) => `${prefix}_${number}x${count}`,
      limits: LIMITS,
    });
    this.#servers.push(server);
    void this.#after(Math.random() * 1000, () => server.service.runs.shareStore()); // not all at one moment
  }

  async #after(ms: number, act: () => void): Promise<void> {
    await this.#base.clock.after(ms);
    act();
  }

  /** Lets some servers fail. */
  #fail(): void {
    const { servers, rate } = this.#world;
    for (let left = servers * rate; left > 0; left--) {
      if (Math.random() > left) return; // a part of a server
      const server = this.#servers[Math.floor(Math.random() * this.#servers.length)]!;
      if (!server.is_well) continue;
      const kind = Math.random();
      const ms = 1_000 + Math.random() * 14_000;
      if (kind < 0.4) this.#kill(server);
      else if (kind < 0.65) this.#freeze(server, ms);
      else if (kind < 0.9) this.#part(server, ms);
      else {
        this.#report.jumps++;
        server.clock.skew_ms += (Math.random() - 0.5) * 120_000;
      }
    }
  }

  /** Kills a server; another one starts in its place. */
  #kill(server: Server): void {
    this.#report.kills++;
    server.is_well = false;
    server.is_dead = true;
    server.connection.cut();
    server.clock.stands = server.connection.open;
    this.#servers.splice(this.#servers.indexOf(server), 1);
    for (const [lease, holder] of this.#holders) {
      if (holder.server === server && this.#isNeeded(lease)) {
        this.#orphaned.set(lease, this.#base.clock.now());
      }
    }
    void this.#after(3_000, () => this.#start());
  }

  /** Returns whether a lease is one of a run that has begun and not ended. */
  #isNeeded(lease: string): boolean {
    return this.#active.has(lease.replace("session/", ""));
  }

  /** Stops a process for a time. */
  #freeze(server: Server, ms: number): void {
    this.#report.freezes++;
    server.is_well = false;
    const go = server.connection.hold();
    server.clock.stands = server.connection.open;
    void this.#after(ms, () => {
      if (server.is_dead) return;
      server.clock.stands = null;
      go();
      server.is_well = true;
    });
  }

  /** Separates a server from the store for a time. The answer of one commit may be lost. */
  #part(server: Server, ms: number): void {
    this.#report.partitions++;
    server.is_well = false;
    const away = new PreampError("overloaded", "Cannot use the store: the connection is lost");
    let loses = Math.random() < 0.5;
    server.connection.before = async (method) => {
      if (loses && method === "commit") return;
      await this.#base.clock.after(1_000);
      throw away;
    };
    const { after } = server.connection;
    server.connection.after = async (method, args, result) => {
      await after(method, args, result);
      if (!loses || method !== "commit") return;
      loses = false;
      throw away;
    };
    void this.#after(ms, () => {
      Object.assign(server.connection, { before: () => {}, after });
      server.is_well = true;
    });
  }

  // what is asked of the servers

  /** Starts the runs of a session, each at any server, as soon as the one before is accepted. */
  async #post(name: string): Promise<void> {
    let session_id: string | undefined;
    const accepted: string[] = [];
    await this.#base.clock.after(Math.random() * this.#world.trouble_s * 800);
    for (let count = 0, tries = 0; count < this.#world.runs && tries < 50; tries++) {
      const prompt = `${name} ${count} ${tries}`;
      const run = await this.#postOne(prompt, session_id);
      if (run === null) {
        await this.#base.clock.after(1_000);
        continue;
      }
      ({ session_id } = run);
      accepted.push(run.id);
      this.#accepted.set(session_id, accepted);
      count++;
    }
    assertEquals(accepted.length, this.#world.runs, `runs of ${name} that were accepted`);
  }

  /** Resolves to a run; to null when its server has not accepted it, or not said so in time. */
  async #postOne(
    prompt: string,
    session_id: string | undefined,
  ): Promise<Pick<Run, "id" | "session_id"> | null> {
    const well = this.#servers.filter(({ is_well }) => is_well);
    const server = well[Math.floor(Math.random() * well.length)]!;
    const fields = session_id === undefined ? {} : { session_id, if_busy: "queue" as const };
    const posted = server.service.post("work", { prompt, ...fields }).catch(() => null);
    const timeout = new AbortController();
    const late = this.#base.clock.after(30_000, timeout.signal).then(() => null, () => null);
    const run = await Promise.race([posted, late]);
    timeout.abort();
    return run;
  }

  /** Returns the plan of all runs: a model call, one call of a tool that is not idempotent, a model call. */
  #plan(): TestPlan {
    const think = () => this.#base.clock.after(Math.random() * this.#world.call_s * 1000);
    const provider: Provider = Object.assign(new MockProvider(), {
      complete: async ({ messages }: { messages: readonly Message[] }) => {
        await think();
        const name = String(messages.findLast(({ role }) => role === "user")!.content);
        const is_done = messages.at(-1)!.role === "tool";
        const answer = is_done ? "done" : { tool_calls: [{ name: "work", arguments: { name }, id: name }] };
        return await new MockProvider([answer]).complete({ messages: [...messages] });
      },
    });
    const work = tool("work", async ({ name }) => {
      this.#effects.set(String(name), (this.#effects.get(String(name)) ?? 0) + 1);
      await think();
      return "worked";
    });
    return { providers: [provider], tools: [work] };
  }

  // what is checked

  /** Checks a call of the store by a server, at the moment at which it is carried out. */
  #observe(server: Server, method: string, args: readonly unknown[], result: unknown): void {
    this.#calls++;
    if (method === "acquire" && typeof result === "number") this.#acquired(server, String(args[0]), result);
    else if (method === "release") {
      const lease = String(args[0]);
      if (this.#holders.get(lease)?.server === server) this.#holders.delete(lease);
    } else if (method === "commit") this.#committed(server, args[0], args[1] as Fence | undefined);
  }

  #acquired(server: Server, lease: string, token: number): void {
    const before = this.#holders.get(lease);
    if (before && before.server !== server && token <= before.token) {
      this.#problems.push(`lease ${lease}: token ${token} after ${before.token}`);
    }
    this.#holders.set(lease, { server, token });
    const since_ms = this.#orphaned.get(lease);
    if (since_ms === undefined) return;
    this.#orphaned.delete(lease);
    this.#report.taken_over++;
    const took_ms = this.#base.clock.now() - since_ms;
    this.#report.longest_takeover_ms = Math.max(this.#report.longest_takeover_ms, took_ms);
  }

  #committed(server: Server, changes: unknown, fence: Fence | undefined): void {
    const entries = appendedBy(changes);
    if (entries.length === 0) return;
    const holder = fence && this.#holders.get(fence.lease);
    if (!fence || holder?.server !== server || holder.token !== fence.token) {
      this.#problems.push(`a commit of ${entries[0]!.run_id} without its lease ${fence?.lease}`);
    }
    for (const entry of entries) this.#happened(entry);
  }

  #happened({ event, data, run_id, session_id }: Entry): void {
    const runs = (event === "run:start" || event === "run:status") && data.status === "running";
    if (event === "run:start") this.#sessionOf.set(run_id, session_id);
    if (runs && !this.#begun.has(run_id)) {
      const active = this.#active.get(session_id);
      if (active !== undefined) this.#problems.push(`${run_id} began before the end of ${active}`);
      this.#active.set(session_id, run_id);
      this.#begun.add(run_id);
    } else if (event === "run:end" && this.#active.get(session_id) === run_id) {
      this.#active.delete(session_id);
      this.#orphaned.delete(`session/${session_id}`);
    }
  }

  /** Fails with what was found. */
  #check(): void {
    assertEquals(this.#problems, []);
    for (const [name, times] of this.#effects) assert(times === 1, `${name}: ${times} executions`);
  }

  #open(): { id: string }[] {
    const { records } = this.#base.memory.list("run", {
      namespace: CALLER.namespace,
      where: { open: "true" },
      limit: 10,
      without_values: true,
    });
    return records.map(({ key }) => ({ id: key }));
  }

  #isOver(): boolean {
    return this.#open().length === 0;
  }

  /** Checks the log of each run, also of those whose client does not know them. */
  async #checkRuns(): Promise<void> {
    for (const run_id of this.#sessionOf.keys()) {
      const entries = await this.#base.entries(run_id);
      assertEquals(entries.map(({ seq }) => seq), entries.map((_, index) => index + 1), run_id);
      assertEquals(entries.filter(({ event }) => event === "run:end").length, 1, run_id);
      assertEquals(entries.at(-1)!.event, "run:end", run_id);
      const { status, error } = await this.#base.runs.get(CALLER, run_id);
      // a model call that was lost with each of three servers
      assert(
        status === "completed" || error?.code === "interrupted",
        `${run_id}: ${status} ${error?.message}`,
      );
      this.#report.runs++;
    }
    for (const [session_id, accepted] of this.#accepted) {
      const begun = [...this.#begun].filter((run_id) => accepted.includes(run_id));
      assertEquals(begun, accepted, `order of the runs of ${session_id}`);
    }
  }
}

/** Returns a generator of numbers from 0 to 1 that a seed repeats: mulberry32. */
function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
