/** How many guests there may be: in all, and in one session (trust.md, Limits). */
import { PreampError } from "../../sdk/errors.ts";

/** Milliseconds that a module waits for others to end before the run is refused. */
const MAX_WAIT_MS = 10_000;

/** The guests of one session. */
export interface GuestSlots {
  /**
   * Resolves when there is room for one more, to a function that gives it back.
   * @throws {PreampError} `overloaded` when there is none in time, or the session has all it may have.
   */
  acquire(module: string): Promise<() => void>;
}

/** Room for guests. */
export class GuestSemaphore {
  readonly #max: number;
  readonly #max_wait_ms: number;
  #used = 0;
  readonly #waiting: (() => void)[] = [];

  /** @param max_wait_ms How long a module waits for others to end. Default 10 s. */
  constructor(max: number, max_wait_ms: number = MAX_WAIT_MS) {
    this.#max = max;
    this.#max_wait_ms = max_wait_ms;
  }

  /** Guests that are there. */
  get used(): number {
    return this.#used;
  }

  /** Returns the slots of a session that may have `max` of them. */
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
        let given = false;
        return () => {
          if (given) return;
          given = true;
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

  /** The room goes to whoever waits longest. */
  #release(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#used--;
  }
}

function overloaded(module: string, fact: string): PreampError {
  return new PreampError("overloaded", `Cannot start module "${module}": ${fact}`);
}
