/**
 * Kills the process of a run in tests: a store that outlives it, and another process that recovers the run.
 */
import type { Entry } from "../../src/kernel/host.ts";
import type { RunService } from "../../src/runs/service.ts";
import type { Run, RunHandle, RunRequest } from "../../src/runs/types.ts";
import type { FakeClock } from "../../src/testing/clocks.ts";
import type { MemoryStore } from "../../src/store/memory.ts";
import type {
  Change,
  Fence,
  Heartbeat,
  ListOptions,
  LogEntry,
  Store,
  VersionedRecord,
} from "../../src/store/store.ts";
import { assert, assertEquals } from "../assert.ts";
import { CALLER, type Service, service } from "../support/runs.ts";
import { type Outside, runToEnd, type Scenario } from "./play.ts";

/** A process's connection to a store that outlives it. After entry `last` of a run, the process is dead. */
export class MortalStore implements Store {
  readonly kind = "mortal";
  readonly #inner: MemoryStore;
  readonly #last: number;
  readonly #run_id: string;
  #gone = false;

  constructor(inner: MemoryStore, last: number, run_id = "run_1") {
    this.#inner = inner;
    this.#last = last;
    this.#run_id = run_id;
  }

  get gone(): boolean {
    return this.#gone;
  }

  #alive(): MemoryStore {
    if (this.#gone) throw new Error("the process is gone");
    return this.#inner;
  }

  commit(changes: readonly Change[], fence?: Fence): void {
    const store = this.#alive();
    const append = changes.find((change) => "append" in change);
    const end = append ? append.after + append.entries.length : 0;
    if (!append || append.append !== this.#run_id || end < this.#last) return store.commit(changes, fence);
    this.#gone = true;
    // killed within a commit: the log may be cut anywhere, records are all or nothing
    if (end === this.#last) return store.commit(changes, fence);
    const entries = append.entries.slice(0, this.#last - append.after);
    if (entries.length > 0) store.commit([{ ...append, entries }], fence);
    throw new Error("the process is gone");
  }
  entries(log: string, after: number, limit: number): readonly LogEntry[] | null {
    return this.#alive().entries(log, after, limit);
  }
  get(kind: string, key: string): VersionedRecord | null {
    return this.#alive().get(kind, key);
  }
  list(kind: string, options: ListOptions): { records: VersionedRecord[]; next_cursor: string | null } {
    return this.#alive().list(kind, options);
  }
  heartbeat(owner: string, ttl_ms: number): Heartbeat {
    return this.#alive().heartbeat(owner, ttl_ms);
  }
  acquire(lease: string, owner: string, at_once?: boolean): number | null {
    return this.#alive().acquire(lease, owner, at_once);
  }
  free(leases: readonly string[]): string[] {
    return this.#alive().free(leases);
  }
  release(lease: string, owner: string): void {
    this.#alive().release(lease, owner);
  }
  ready(): { ok: boolean } {
    return { ok: !this.#gone };
  }
  close(): void {}
}

/** A run whose process was killed, and the recovered run. */
export interface Resumed {
  next: Service;
  run: Run;
  entries: Entry[];
}

/** Kills the process of a run after entry `last`; another recovers it once the lease has expired. */
export async function killAndResume(scenario: Scenario, last: number, step_ms = 100): Promise<Resumed> {
  const plans = { plan: scenario.plan };
  let mortal: MortalStore | undefined;
  const first = service({ plans, store: (memory) => mortal = new MortalStore(memory, last) });
  const handle = await first.post("plan", scenario.request ?? {});
  await runUntilGone(first, handle.id, scenario, mortal!);
  await first.clock.advance(5_001);
  const next = service({ plans, beside: first });
  assertEquals(await next.runs.recover(), [handle.id]);
  const run = await runToEnd(next, handle.id, {
    ...scenario,
    step_ms,
    react: (entry, outside) => again(scenario, entry, outside),
  });
  return { next, run, entries: await next.entries(handle.id) };
}

/** Repeats what a client or person did; ignores requests that come too late. */
export async function again(
  { react }: Pick<Scenario, "react">,
  entry: Entry,
  outside: Outside,
): Promise<void> {
  try {
    await react?.(entry, outside);
  } catch (error) {
    const { code } = error as { code?: unknown };
    if (code !== "approval_already_resolved" && code !== "run_ended") throw error;
  }
}

/** Starts a run whose process is killed before its end. */
export async function postAndDie(
  { post, runs, clock }: Service,
  plan: string | null,
  fields: Partial<RunRequest> = {},
): Promise<RunHandle> {
  const { promise: died, resolve: endNotStored } = Promise.withResolvers<Run>();
  const handle = await post(plan, fields, { endNotStored });
  await died;
  await stop(runs, clock);
  return handle;
}

/** Stops what a dead process left in this one. */
async function stop(runs: RunService, clock: FakeClock): Promise<void> {
  let closed = false;
  runs.close().finally(() => closed = true);
  for (let steps = 0; !closed && steps < 100; steps++) await clock.advance(100);
}

/** Advances time until the process of a run is killed and idle. */
export async function runUntilGone(
  { runs, clock, memory, logs }: Pick<Service, "runs" | "clock" | "memory"> & {
    readonly logs: readonly { event: string }[];
  },
  run_id: string,
  { react, step_ms = 100 }: Pick<Scenario, "react" | "step_ms">,
  mortal: MortalStore,
): Promise<void> {
  const seen = new Set<number>();
  const decide = ({ data }: Entry, decision: string) =>
    runs.decide(CALLER, run_id, String(data.approval_id), { decision });
  for (let steps = 0; !mortal.gone && steps < 3_000; steps++) {
    await clock.advance(step_ms);
    for (const entry of memory.entries(run_id, 0, 1_000) as Entry[]) {
      if (seen.has(entry.seq)) continue;
      seen.add(entry.seq);
      Promise.resolve(react?.(entry, { runs, run_id, decide })).catch(() => {}); // its process may be dead
    }
  }
  assert(mortal.gone, "the process was never killed");
  const handle = await runs.handle(CALLER, run_id).catch(() => null); // for an ended run this reads the store
  // what a dead process does is not observed, so stop it soon
  runs.cancel(CALLER, run_id, "immediate").catch(() => {});
  const isOver = () =>
    handle === null || handle.current().ended_at !== null ||
    logs.some(({ event }) => event === "run_end_not_stored");
  for (let steps = 0; !isOver() && steps < 3_000; steps++) await clock.advance(step_ms);
  assert(isOver(), "the killed process does not come to rest");
  await stop(runs, clock);
}
