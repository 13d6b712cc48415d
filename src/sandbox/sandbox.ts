/** Entry of the sandbox: opens modules in workers or child processes, within the number of guests that is allowed. */
import type { AnswerBounds } from "../sdk/answer_bounds.ts";
import { errorMessage, PreampError } from "../sdk/errors.ts";
import type { ModuleType } from "../sdk/types.ts";
import type { Channel, GuestExit } from "./channel.ts";
import { GuestConnection } from "./guest/guest_connection.ts";
import { type GuestGrant, guestGrant } from "./tiers/worker_permissions.ts";
import { type OpenedGuest, openGuestModule } from "./guest/guest_module.ts";
import { WarmPool } from "./tiers/warm_pool.ts";
import { type GuestProcess, startGuestProcess } from "./tiers/process_tier.ts";
import { GuestSemaphore, type GuestSlots } from "./tiers/guest_semaphore.ts";
import { type GuestTier, hostTiers, type TierReport } from "./tiers/isolation_tiers.ts";
import { openWorkerChannel } from "./tiers/worker_tier.ts";

/** Limits of one guest; names and defaults as under `isolation` in the policy (src/docs/operating.md). */
export interface GuestLimits extends AnswerBounds {
  readonly memory_mb: number;
  readonly cpu_s: number;
  readonly load_timeout_s: number;
  readonly max_tool_output_bytes: number;
  /** Timeout of calls whose caller sets none, in seconds. */
  readonly call_timeout_s: number;
}

/** Options of {@link Sandbox}. */
export interface SandboxOptions {
  readonly max_guests: number;
  /** Limits of most guests; warm children are started with them. */
  readonly usual: GuestLimits;
  /** Number of warm children of each kind. Default 1. */
  readonly spares?: number;
  /** Called when a guest has exited. */
  onExit?(tier: GuestTier, cause: GuestExit["cause"]): void;
  /** Writes to the structured log of the process. */
  log(level: "info" | "warning" | "error", event: string, facts: Record<string, unknown>): void;
}

/** Request to run a module. */
export interface GuestRequest {
  readonly tier: GuestTier;
  readonly module: string;
  readonly type: ModuleType;
  readonly code: string;
  readonly uses: readonly string[];
  readonly grant: Readonly<Partial<GuestGrant>>;
  readonly limits: GuestLimits;
  /** Slots of the session: its guests are counted together and end together. */
  readonly session: GuestSlots;
  /** Adds a warning to the run. */
  warn(code: string, message: string): void;
  /** Receives lines of the module's console; they may contain its secrets. */
  onLog(level: "info" | "warning" | "error", text: string): void;
}

/** Runs modules in guests. */
export class Sandbox {
  readonly #options: SandboxOptions;
  readonly #slots: GuestSemaphore;
  readonly #pool: WarmPool<GuestProcess>;
  readonly #ending = new Set<Promise<void>>();
  readonly #running: Record<GuestTier, number> = { worker: 0, process: 0 };
  #abandoned = 0;

  constructor(options: SandboxOptions) {
    this.#options = options;
    this.#slots = new GuestSemaphore(options.max_guests);
    const { usual, spares } = options;
    this.#pool = new WarmPool({
      ...usual,
      start: startGuestProcess,
      ...(spares === undefined ? {} : { spares }),
    });
  }

  /** Returns which tiers this host has, and why the others are missing. */
  get tiers(): TierReport {
    return hostTiers();
  }

  /** Number of busy workers that were abandoned because Deno cannot terminate them. The process should be restarted. */
  get abandoned(): number {
    return this.#abandoned;
  }

  /** Number of running guests. */
  get guests(): number {
    return this.#slots.used;
  }

  /** Number of running guests in each tier. */
  get guests_by_tier(): Readonly<Record<GuestTier, number>> {
    return this.#running;
  }

  /** Returns the slots of a session that may have at most `max_guests` guests. */
  session(max_guests: number): GuestSlots {
    return this.#slots.session(max_guests);
  }

  /** Starts warm children ahead of modules that will need them. */
  prepare(): void {
    if (this.tiers.process.available) this.#pool.prepare();
  }

  /**
   * Starts a guest and links a module in it.
   * @throws {PreampError} `isolation_unavailable`; `overloaded`; `module_load_failed`; the error of the module's top level.
   */
  async open(request: GuestRequest): Promise<OpenedGuest> {
    const { tier, module, type, code, uses, session, limits, warn } = request;
    const report = this.tiers[tier];
    if (!report.available) throw unavailable(module, tier, report.reason);
    const { load_timeout_s, max_tool_output_bytes, call_timeout_s } = limits;
    const { max_answer_tool_calls, max_answer_blocks } = limits;
    const opened = await openGuestModule({
      name: module,
      type,
      code,
      uses,
      bounds: {
        max_tool_output_bytes,
        deadline_ms: call_timeout_s * 1000,
        max_answer_tool_calls,
        max_answer_blocks,
      },
      load_timeout_ms: load_timeout_s * 1000,
      spawn: () => this.#spawn(request, session),
      warn,
    });
    return {
      module: opened.module,
      // a run does not wait for the exit of its children
      close: () => {
        this.#trackEnding(opened.close());
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

  async #spawn(
    { tier, module, grant, uses, limits, onLog }: GuestRequest,
    session: GuestSlots,
  ): Promise<GuestConnection> {
    const release = await session.acquire(module);
    let channel: Channel;
    try {
      channel = tier === "process"
        ? this.#startChild(guestGrant(grant), uses, limits)
        : openWorkerChannel(guestGrant(grant));
    } catch (error) {
      release();
      throw unavailable(module, tier, errorMessage(error), error);
    }
    this.#running[tier]++;
    void channel.exited.then(({ cause }) => {
      release();
      this.#running[tier]--;
      this.#options.onExit?.(tier, cause);
    });
    void channel.stopped.then((stopped) => {
      if (!stopped) this.#abandoned++;
    });
    const { log } = this.#options;
    return new GuestConnection(channel, {
      name: module,
      onLog,
      onViolation: (message) => log("warning", "protocol_violation", { module, message }),
    });
  }

  #startChild(grant: GuestGrant, uses: readonly string[], { memory_mb, cpu_s }: GuestLimits): Channel {
    const { usual } = this.#options;
    const has_usual_limits = memory_mb === usual.memory_mb && cpu_s === usual.cpu_s;
    const child = has_usual_limits
      ? this.#pool.take({ grant, uses })
      : startGuestProcess({ memory_mb, cpu_s });
    child.assign({ grant, uses, env: grantedEnv(grant), memory_mb, cpu_s });
    return child;
  }
}

/** Returns the environment variables that a grant allows, with their values in this process. */
function grantedEnv({ env }: GuestGrant): Record<string, string> {
  if (env === false) return {};
  if (env === true) return Deno.env.toObject();
  const found: Record<string, string> = {};
  for (const name of env as readonly string[]) {
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

function unavailable(module: string, tier: GuestTier, reason: string, cause?: unknown): PreampError {
  const message = `Cannot run module "${module}" in tier "${tier}": ${reason}`;
  return new PreampError("isolation_unavailable", message, cause === undefined ? {} : { cause });
}
