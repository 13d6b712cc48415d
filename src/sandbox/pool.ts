/** Children that are started ahead: the next module does not wait for one (modules.md: a small warm pool hides the start). */
import type { ChildFlavour } from "./child/settings.ts";
import { type GuestProcess, startGuestProcess } from "./process_tier.ts";
import type { SystemLimits } from "./child_command.ts";

/** What a pool is made with. */
export interface PoolOptions extends SystemLimits {
  /** Children of each flavour that wait. Default 1. */
  readonly spares?: number;
  /** Milliseconds until children that nobody took are ended. Default 60 s. */
  readonly idle_ms?: number;
  /** Starts a child. Default {@link startGuestProcess}. */
  readonly start?: (limits: SystemLimits, flavour: ChildFlavour) => GuestProcess;
}

const FLAVOURS: readonly ChildFlavour[] = ["bare", "ready"];

/** A few spare children; none before the first is asked for. */
export class Pool {
  readonly #options: Required<PoolOptions>;
  readonly #spares: Record<ChildFlavour, GuestProcess[]> = { bare: [], ready: [] };
  #refill: ReturnType<typeof setTimeout> | undefined;
  #idle: ReturnType<typeof setTimeout> | undefined;
  #closed = false;

  constructor(options: PoolOptions) {
    this.#options = { spares: 1, idle_ms: 60_000, start: startGuestProcess, ...options };
  }

  /**
   * Returns a child: a spare one, else a new one.
   * @param nothing Whether its module is granted nothing: then a child that has its worker already will do.
   * @throws {Error} when this host cannot start one.
   */
  take(nothing: boolean): GuestProcess {
    const taken = (nothing ? this.#spare("ready") : undefined) ?? this.#spare("bare") ?? this.#start("bare");
    this.#restIn();
    this.#refillSoon();
    return taken;
  }

  /** Makes spares ready. */
  prepare(): void {
    this.#restIn();
    this.#refillSoon(0);
  }

  /** Ends the spares; nothing is started any more. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#refill);
    clearTimeout(this.#idle);
    await this.#drop();
  }

  #start(flavour: ChildFlavour): GuestProcess {
    const { start, memory_mb, cpu_s } = this.#options;
    return start({ memory_mb, cpu_s }, flavour);
  }

  #spare(flavour: ChildFlavour): GuestProcess | undefined {
    const spares = this.#spares[flavour];
    for (let spare = spares.shift(); spare; spare = spares.shift()) if (spare.alive) return spare;
    return undefined;
  }

  /** Not at once: whoever took one has work for the processor now. One at a time, for the same reason. */
  #refillSoon(delay_ms = 50): void {
    if (this.#closed || this.#refill !== undefined) return;
    const timer = this.#refill = setTimeout(() => {
      this.#refill = undefined;
      for (const flavour of FLAVOURS) {
        const spares = this.#spares[flavour] = this.#spares[flavour].filter(({ alive }) => alive);
        if (spares.length >= this.#options.spares) continue;
        try {
          spares.push(this.#start(flavour));
        } catch {
          return; // told to whoever needs one
        }
        return this.#refillSoon();
      }
    }, delay_ms);
    Deno.unrefTimer(timer); // it keeps nobody alive
  }

  #restIn(): void {
    clearTimeout(this.#idle);
    if (this.#closed) return;
    this.#idle = setTimeout(() => void this.#drop(), this.#options.idle_ms);
    Deno.unrefTimer(this.#idle);
  }

  async #drop(): Promise<void> {
    const spares = FLAVOURS.flatMap((flavour) => this.#spares[flavour].splice(0));
    await Promise.all(spares.map((spare) => spare.kill({ cause: "ended", detail: "nobody needed it" })));
  }
}
