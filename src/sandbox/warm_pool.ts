/**
 * Keeps children that are started ahead, so that the next module does not wait for the start of a process:
 * one for any module, and one with a worker for each of the two latest grants.
 */
import type { GuestExit } from "./protocol.ts";
import type { Readiness } from "./guest_child.ts";
import type { SystemLimits } from "../process/system_limits.ts";
import { grantKey, guestGrant } from "./guest_worker.ts";

export interface WarmChild {
  readonly alive: boolean;
  /** Starts the child's worker. */
  prepare(ready: Readiness): void;
  kill(exit: GuestExit): Promise<void>;
}

/** Options of {@link WarmPool}. */
export interface WarmPoolOptions<Child extends WarmChild> extends SystemLimits {
  /** Milliseconds until unused children are ended. Default 60 s. */
  readonly idle_ms?: number;
  /** Starts a child. */
  readonly start: (limits: SystemLimits) => Child;
  /**
   * Schedules a function without keeping the process alive; returns a function that cancels it. Default: an
   * unreferenced timer.
   */
  readonly later?: (act: () => void, ms: number) => () => void;
}

/** Readiness of the first children: most modules have no permissions and import `preamp` and `zod`. */
const INITIAL_READINESS: Readiness = { grant: guestGrant({}), uses: ["preamp", "zod"] };
/** Number of grants for which a warm child is kept. */
const MAX_WANTED = 2;
/**
 * Milliseconds before the next child is started: longer than the first answer of a module takes on most
 * machines.
 */
const REFILL_MS = 150;
/** Key of children without a worker. No grant has this key. */
const ANY = "";

/** Pool of warm children. Starts none before the first request, or `prepare`. */
export class WarmPool<Child extends WarmChild> {
  readonly #options: Required<WarmPoolOptions<Child>>;
  readonly #spares = new Map<string, Child>();
  /** Warm grants by key, the latest last. */
  readonly #wanted = new Map<string, Readiness>([[grantKey(INITIAL_READINESS.grant), INITIAL_READINESS]]);
  #stopRefill: (() => void) | undefined;
  #stopIdle: (() => void) | undefined;
  #closed = false;

  constructor(options: WarmPoolOptions<Child>) {
    this.#options = { idle_ms: 60_000, later: afterTimer, ...options };
  }

  /**
   * Returns a warm child for a module, else a new one.
   * @throws {Error} when this host cannot start one.
   */
  take(ready: Readiness): Child {
    const key = grantKey(ready.grant);
    const taken = this.#takeSpare(key) ?? this.#takeSpare(ANY) ?? this.#start(ANY);
    this.#remember(key, ready);
    this.#scheduleIdleEnd();
    this.#scheduleRefill();
    return taken;
  }

  /** Starts warm children. */
  prepare(): void {
    this.#scheduleIdleEnd();
    this.#scheduleRefill(0);
  }

  /** Ends all warm children and starts no more. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#stopRefill?.();
    this.#stopIdle?.();
    await this.#drop([...this.#spares.keys()]);
  }

  #start(key: string): Child {
    const { start, memory_mb, cpu_s } = this.#options;
    const child = start({ memory_mb, cpu_s });
    const ready = this.#wanted.get(key);
    if (ready) child.prepare(ready);
    return child;
  }

  #takeSpare(key: string): Child | undefined {
    const spare = this.#spares.get(key);
    this.#spares.delete(key);
    return spare?.alive ? spare : undefined;
  }

  #remember(key: string, ready: Readiness): void {
    this.#wanted.delete(key);
    this.#wanted.set(key, ready);
    const [oldest] = this.#wanted.keys();
    if (this.#wanted.size <= MAX_WANTED || oldest === undefined) return;
    this.#wanted.delete(oldest);
    void this.#drop([oldest]);
  }

  /**
   * Starts missing children one at a time and with a delay, because the module that took one needs the
   * processor now.
   */
  #scheduleRefill(delay_ms = REFILL_MS): void {
    if (this.#closed || this.#stopRefill) return;
    this.#stopRefill = this.#options.later(() => {
      this.#stopRefill = undefined;
      for (const key of [ANY, ...[...this.#wanted.keys()].reverse()]) {
        if (this.#spares.get(key)?.alive) continue;
        try {
          this.#spares.set(key, this.#start(key));
        } catch {
          return; // reported by take()
        }
        return this.#scheduleRefill();
      }
    }, delay_ms);
  }

  #scheduleIdleEnd(): void {
    this.#stopIdle?.();
    if (this.#closed) return;
    const { later, idle_ms } = this.#options;
    this.#stopIdle = later(() => void this.#drop([...this.#spares.keys()]), idle_ms);
  }

  async #drop(keys: readonly string[]): Promise<void> {
    const spares = keys.map((key) => this.#spares.get(key));
    for (const key of keys) this.#spares.delete(key);
    await Promise.all(spares.map((spare) => spare?.kill({ cause: "ended", detail: "it was not needed" })));
  }
}

function afterTimer(act: () => void, ms: number): () => void {
  const timer = setTimeout(act, ms);
  Deno.unrefTimer(timer);
  return () => clearTimeout(timer);
}
