/** Limits the number of guests, of the server (`isolation.max_guests`) and of each session. */
import { PreampError } from "../../sdk/errors.ts";

/** Milliseconds that a module waits for a slot before the run is refused. */
const MAX_WAIT_MS = 10_000;

/** Slots of one session. */
export interface GuestSlots {
  /**
   * Acquires a slot; resolves to a function that releases it.
   * @throws {PreampError} `overloaded` if no slot is free in time, or the session has its maximum.
   */
  acquire(module: string): Promise<() => void>;
}

/** Counting semaphore of guests. */
export class GuestSemaphore {
  readonly #max: number;
  readonly #max_wait_ms: number;
  #used = 0;
  readonly #waiting: (() => void)[] = [];

  /** @param max_wait_ms Milliseconds to wait for a slot. Default 10 s. */
  constructor(max: number, max_wait_ms: number = MAX_WAIT_MS) {
    this.#max = max;
    this.#max_wait_ms = max_wait_ms;
  }

  /** Number of slots in use. */
  get used(): number {
    return this.#used;
  }

  /** Returns the slots of a session that may have at most `max` guests. */
  session(max: number): GuestSlots {
    let own = 0;
    return {
      acquire: async (module) => {
        if (own >= max) {
          throw overloaded(
            module,
            `its session has ${own}, the most it may have (isolation.max_guests_per_session)`,
          );
        }
        own++;
        try {
          await this.#acquire(module);
        } catch (error) {
          own--;
          throw error;
        }
        let released = false;
        return () => {
          if (released) return;
          released = true;
          own--;
          this.#release();
        };
      },
    };
  }

  async #acquire(module: string): Promise<void> {
    if (this.#used < this.#max) {
      this.#used++;
      return;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const timer = setTimeout(() => {
      this.#waiting.splice(this.#waiting.indexOf(resolve), 1);
      reject(overloaded(module, `all ${this.#max} guests of this server are taken (isolation.max_guests)`));
    }, this.#max_wait_ms);
    this.#waiting.push(resolve);
    await promise.finally(() => clearTimeout(timer));
  }

  /** Passes the slot to the module that has waited longest. */
  #release(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#used--;
  }
}

function overloaded(module: string, fact: string): PreampError {
  return new PreampError("overloaded", `Cannot start module "${module}": ${fact}`);
}
