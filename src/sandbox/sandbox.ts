/**
 * Entry of the sandbox: opens modules in child processes, within the number of guests that is allowed for
 * the server (`isolation.max_guests`) and for each session.
 */
import { errorMessage, PreampError } from "../sdk/errors.ts";
import type { GuestExit, GuestLimits, IsAsked } from "./protocol.ts";
import { GuestConnection } from "./guest/guest_connection.ts";
import { type GuestModuleOptions, type OpenedGuest, openGuestModule } from "./guest/guest_module.ts";
import { GuestProcess } from "./guest_process.ts";
import { type GuestGrant, guestGrant } from "./guest_worker.ts";
import { processTier } from "./process_support.ts";
import { WarmPool } from "./warm_pool.ts";

/** Options of {@link Sandbox}. */
interface SandboxOptions {
  readonly max_guests: number;
  /** Limits of most guests; warm children are started with them. */
  readonly usual: GuestLimits;
  /** Called when a guest has exited. */
  onExit?(cause: GuestExit["cause"]): void;
  /** Writes to the structured log of the process. */
  log(level: "info" | "warning" | "error", event: string, facts: Record<string, unknown>): void;
}

/** Request to run a module. */
export interface GuestRequest extends GuestModuleOptions {
  readonly grant: Readonly<Partial<GuestGrant>>;
  /** Folder that relative paths of the module start at. Default: a folder of its own. */
  readonly folder?: string | undefined;
  /** Returns whether the plan names an entry; the grant may lack it nevertheless. Default: false. */
  readonly isAsked?: IsAsked | undefined;
  /** Slots of the session: its guests are counted together and end together. */
  readonly session: GuestSlots;
  /** Receives lines of the module's console; they may contain its secrets. */
  onLog(level: "info" | "warning" | "error", text: string): void;
}

/** Runs modules in guests. */
export class Sandbox {
  readonly #options: SandboxOptions;
  readonly #slots: GuestSemaphore;
  readonly #pool: WarmPool<GuestProcess>;
  readonly #ending = new Set<Promise<void>>();

  constructor(options: SandboxOptions) {
    this.#options = options;
    this.#slots = new GuestSemaphore(options.max_guests);
    this.#pool = new WarmPool({ ...options.usual, start: (limits) => new GuestProcess(limits) });
  }

  /** Number of running guests. */
  get guests(): number {
    return this.#slots.used;
  }

  /** Returns the slots of a session that may have at most `max_guests` guests. */
  session(max_guests: number): GuestSlots {
    return this.#slots.session(max_guests);
  }

  /** Starts warm children ahead of modules that will need them. */
  prepare(): void {
    if (processTier().available) this.#pool.prepare();
  }

  /**
   * Starts a guest and links a module in it.
   * @throws {PreampError} `isolation_unavailable`; `overloaded`; `module_load_failed`; the error of the
   * module's top level.
   */
  async open(request: GuestRequest): Promise<OpenedGuest> {
    const support = processTier();
    if (!support.available) throw unavailable(request, support.reason);
    const { module, close } = await openGuestModule(request, await this.#spawn(request));
    return {
      module,
      // a run does not wait for the exit of its children
      close: () => {
        this.#trackEnding(close());
        return Promise.resolve();
      },
    };
  }

  /** Ends warm children and waits for guests that are ending. Running guests end with their sessions. */
  async close(): Promise<void> {
    await Promise.all([this.#pool.close(), ...this.#ending]);
  }

  #trackEnding(ending: Promise<void>): void {
    const { log } = this.#options;
    const settled: Promise<void> = ending
      .catch((error) => log("error", "guest_not_ended", { message: errorMessage(error) }))
      .finally(() => this.#ending.delete(settled));
    this.#ending.add(settled);
  }

  async #spawn(request: GuestRequest): Promise<GuestConnection> {
    const { module, session, onLog, isAsked } = request;
    const release = await session.acquire(module);
    let channel: GuestProcess;
    try {
      channel = this.#startChild(request);
    } catch (error) {
      release();
      throw unavailable(request, errorMessage(error), error);
    }
    void channel.exited.then(({ cause }) => {
      release();
      this.#options.onExit?.(cause);
    });
    const onViolation = (message: string) =>
      this.#options.log("warning", "protocol_violation", { module, message });
    return new GuestConnection(channel, { name: module, onLog, onViolation, isAsked });
  }

  #startChild({ grant: granted, folder, uses, limits: { memory_mb, cpu_s } }: GuestRequest): GuestProcess {
    const { usual } = this.#options;
    const grant = guestGrant(granted);
    const has_usual_limits = memory_mb === usual.memory_mb && cpu_s === usual.cpu_s;
    const child = has_usual_limits
      ? this.#pool.take({ grant, uses })
      : new GuestProcess({ memory_mb, cpu_s });
    child.assign({
      grant,
      uses,
      env: grantedEnv(grant),
      memory_mb,
      cpu_s,
      ...folder !== undefined && { folder },
    });
    return child;
  }
}

/** Returns the environment variables that a grant allows, with their values in this process. */
function grantedEnv({ env }: GuestGrant): Record<string, string> {
  if (typeof env === "boolean") return env ? Deno.env.toObject() : {};
  const found: Record<string, string> = {};
  for (const name of env) {
    if (name.endsWith("*")) {
      for (const [key, value] of Object.entries(Deno.env.toObject())) {
        if (key.startsWith(name.slice(0, -1))) found[key] = value;
      }
    } else {
      const value = Deno.env.get(name);
      if (value !== undefined) found[name] = value;
    }
  }
  return found;
}

function unavailable({ module }: GuestRequest, reason: string, cause?: unknown): PreampError {
  const message = `Cannot run module "${module}" in tier "process": ${reason}`;
  return new PreampError("isolation_unavailable", message, { cause });
}

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
