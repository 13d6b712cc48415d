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

  override async acquire(lease: string, owner: string, ttl_ms: number): Promise<number | null> {
    await this.acquiring(lease);
    return await super.acquire(lease, owner, ttl_ms);
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

/** Captures the function of the next interval instead of starting it. */
export function capturedInterval(): { promise: Promise<() => void>; restore: () => void } {
  const { promise, resolve } = Promise.withResolvers<() => void>();
  const before = globalThis.setInterval;
  globalThis.setInterval = ((run: () => void) => {
    resolve(run);
    return 0;
  }) as unknown as typeof setInterval; // the handle is only passed to clearInterval
  return { promise, restore: () => void (globalThis.setInterval = before) };
}
