/** A store for tests that several processes share. */
import { setImmediate } from "node:timers";
import type { MemoryStore } from "../../src/store/memory.ts";
import type { Change, Fence, ListOptions } from "../../src/store/store.ts";
import { SlowStore } from "../support/runs.ts";

/** A store that other processes may share. */
export class SharedStore extends SlowStore {
  /** Called before each commit. */
  committing: (changes: readonly Change[]) => Promise<void> | void = () => {};
  /** Called after each commit, before its caller continues. */
  committed: (changes: readonly Change[]) => Promise<void> | void = () => {};

  override async commit(changes: readonly Change[], fence?: Fence): Promise<void> {
    await this.committing(changes);
    await super.commit(changes, fence);
    await this.committed(changes);
  }

  /** Maximum records of a page. */
  page = Infinity;
  /** Awaited before a lease is released. */
  releasing: Promise<void> | void = undefined;

  override list(kind: string, options: ListOptions): ReturnType<SlowStore["list"]> {
    return super.list(kind, { ...options, limit: Math.min(this.page, options.limit) });
  }

  /** Called before a lease is acquired. */
  acquiring: (lease: string) => Promise<void> | void = () => {};

  override async acquire(lease: string, owner: string, at_once?: boolean): Promise<number | null> {
    await this.acquiring(lease);
    return await super.acquire(lease, owner, at_once);
  }

  override async release(lease: string, owner: string): Promise<void> {
    await this.releasing;
    await super.release(lease, owner);
  }

  changed(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
  }
}

export const shared = (memory: MemoryStore) => new SharedStore(memory);

/** Resolves after steps of runs that wait for nothing outside. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 200; turn++) await new Promise((resolve) => setImmediate(() => resolve(null)));
}

/** Captures the functions of intervals instead of starting them; `tick` calls each once. */
export function capturedIntervals(): { tick(): void; restore(): void } {
  const captured: (() => void)[] = [];
  const before = globalThis.setInterval;
  globalThis.setInterval = ((run: () => void) => {
    captured.push(run);
    return 0;
  }) as unknown as typeof setInterval; // the handle is only passed to clearInterval
  return {
    tick: () => captured.forEach((run) => run()),
    restore: () => void (globalThis.setInterval = before),
  };
}
