/**
 * Children that are started ahead: the next module does not wait for one (modules.md: a small warm pool hides the start). Some
 * are ready for any module, and some have their worker already, with a grant that is asked for again and again: plans repeat.
 */
import type { GuestExit } from "../channel.ts";
import type { Readiness } from "../child/settings.ts";
import type { SystemLimits } from "./child_command.ts";
import { grantKey, guestGrant } from "./worker_permissions.ts";

/** A child that waits. */
export interface WarmChild {
  readonly alive: boolean;
  /** Has it start its worker. */
  prepare(ready: Readiness): void;
  kill(death: GuestExit): Promise<void>;
}

/** What a pool is made with. */
export interface WarmPoolOptions<Child extends WarmChild> extends SystemLimits {
  /** Children of each kind that wait: of those for any module, and for each of the grants. Default 1. */
  readonly spares?: number;
  /** Milliseconds until children that nobody took are ended. Default 60 s. */
  readonly idle_ms?: number;
  /** Starts a child. */
  readonly start: (limits: SystemLimits) => Child;
  /** Acts later and keeps nobody alive; returns what ends that. Default: a timer. */
  readonly later?: (act: () => void, ms: number) => () => void;
}

/** What children wait for at first: a module that is granted nothing, as most are, written with the kit for authors. */
const INITIAL_READINESS: Readiness = { grant: guestGrant({}), uses: ["preamp", "zod"] };
/** Grants that children wait with. */
const MAX_WANTED = 2;
/** Grants that are remembered: one that comes a second time while it is, is wanted. */
const MAX_SEEN = 16;
/** Milliseconds from one that was taken to the next that is started: a module's first answer takes less, on most machines. */
const REFILL_MS = 150;
/** The key of children without a worker; no grant's. */
const ANY = "";

/** A few spare children; none before the first is asked for. */
export class WarmPool<Child extends WarmChild> {
  readonly #options: Required<WarmPoolOptions<Child>>;
  readonly #spares = new Map<string, Child[]>();
  /** By key, the latest last. */
  readonly #wanted = new Map<string, Readiness>([[grantKey(INITIAL_READINESS.grant), INITIAL_READINESS]]);
  readonly #seen = new Set<string>(this.#wanted.keys());
  #stopRefill: (() => void) | undefined;
  #stopIdle: (() => void) | undefined;
  #closed = false;

  constructor(options: WarmPoolOptions<Child>) {
    this.#options = { spares: 1, idle_ms: 60_000, later: afterTimer, ...options };
  }

  /**
   * Returns a child for a module: a spare one, else a new one.
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

  /** Makes spares ready. */
  prepare(): void {
    this.#scheduleIdleEnd();
    this.#scheduleRefill(0);
  }

  /** Ends the spares; nothing is started any more. */
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
    const spares = this.#spares.get(key) ?? [];
    for (let spare = spares.shift(); spare; spare = spares.shift()) if (spare.alive) return spare;
    return undefined;
  }

  /** A grant that never comes again is not worth a process. */
  #remember(key: string, ready: Readiness): void {
    if (this.#seen.delete(key)) {
      const uses = new Set([...this.#wanted.get(key)?.uses ?? [], ...ready.uses]);
      this.#wanted.delete(key);
      this.#wanted.set(key, { grant: ready.grant, uses: [...uses] });
    }
    this.#seen.add(key);
    for (const oldest of this.#seen) {
      if (this.#seen.size <= MAX_SEEN) break;
      this.#seen.delete(oldest);
    }
    for (const oldest of this.#wanted.keys()) {
      if (this.#wanted.size <= MAX_WANTED) break;
      this.#wanted.delete(oldest);
      void this.#drop([oldest]);
    }
  }

  /** Not at once: whoever took one has work for the processor now. One at a time, for the same reason. */
  #scheduleRefill(delay_ms = REFILL_MS): void {
    if (this.#closed || this.#stopRefill) return;
    this.#stopRefill = this.#options.later(() => {
      this.#stopRefill = undefined;
      for (const key of [ANY, ...[...this.#wanted.keys()].reverse()]) {
        const spares = (this.#spares.get(key) ?? []).filter(({ alive }) => alive);
        this.#spares.set(key, spares);
        if (spares.length >= this.#options.spares) continue;
        try {
          spares.push(this.#start(key));
        } catch {
          return; // told to whoever needs one
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
    const spares = keys.flatMap((key) => this.#spares.get(key) ?? []);
    for (const key of keys) this.#spares.delete(key);
    await Promise.all(spares.map((spare) => spare.kill({ cause: "ended", detail: "nobody needed it" })));
  }
}

function afterTimer(act: () => void, ms: number): () => void {
  const timer = setTimeout(act, ms);
  Deno.unrefTimer(timer);
  return () => clearTimeout(timer);
}
