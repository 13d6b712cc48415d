/** Running modules elsewhere: which tiers this host has, how many guests there may be, and a guest for a module. */
import type { AnswerBounds } from "../sdk/answer_bounds.ts";
import { errorMessage, PreampError } from "../sdk/errors.ts";
import type { ModuleType } from "../sdk/types.ts";
import type { Channel } from "./channel.ts";
import { GuestConnection } from "./guest/guest_connection.ts";
import { type GuestGrant, guestGrant } from "./tiers/worker_permissions.ts";
import { type OpenedGuest, openGuestModule } from "./guest/guest_module.ts";
import { WarmPool } from "./tiers/warm_pool.ts";
import { type GuestProcess, startGuestProcess } from "./tiers/process_tier.ts";
import { GuestSemaphore, type GuestSlots } from "./tiers/guest_semaphore.ts";
import { type GuestTier, hostTiers, type TierReport } from "./tiers/isolation_tiers.ts";
import { openWorkerChannel } from "./tiers/worker_tier.ts";

/** What one guest may take; names and defaults: trust.md, Limits. */
export interface GuestLimits extends AnswerBounds {
  readonly memory_mb: number;
  readonly cpu_s: number;
  readonly load_timeout_s: number;
  readonly max_tool_output_bytes: number;
  /** Seconds for a call whose caller sets no deadline of its own. */
  readonly call_timeout_s: number;
}

/** What a sandbox is made with. */
export interface SandboxOptions {
  readonly max_guests: number;
  /** What most guests may take: children wait with these limits. */
  readonly usual: GuestLimits;
  /** Children of each kind that wait for a module. Default 1. */
  readonly spares?: number;
  /** Structured log of the process. */
  log(level: "info" | "warning" | "error", event: string, facts: Record<string, unknown>): void;
}

/** A module to run. */
export interface GuestRequest {
  readonly tier: GuestTier;
  readonly module: string;
  readonly type: ModuleType;
  readonly code: string;
  readonly uses: readonly string[];
  readonly grant: Readonly<Partial<GuestGrant>>;
  readonly limits: GuestLimits;
  /** Guests of one session are counted together, and end together. */
  readonly session: GuestSlots;
  /** Told what has no event of its own, for the run. */
  warn(code: string, message: string): void;
  /** Takes lines of the module's console; they may hold what it knows. */
  onLog(level: "info" | "warning" | "error", text: string): void;
}

/** Runs modules. */
export class Sandbox {
  readonly #options: SandboxOptions;
  readonly #slots: GuestSemaphore;
  readonly #pool: WarmPool<GuestProcess>;
  readonly #ending = new Set<Promise<void>>();
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

  /** Which tiers this host has, and why not the others. */
  get tiers(): TierReport {
    return hostTiers();
  }

  /** Guests that were given up while they worked, and that nobody can end: this process wants a restart. */
  get abandoned(): number {
    return this.#abandoned;
  }

  /** Guests that run now. */
  get guests(): number {
    return this.#slots.used;
  }

  /** Returns the slots of a session that may have `max_guests` of them. */
  session(max_guests: number): GuestSlots {
    return this.#slots.session(max_guests);
  }

  /** Makes children ready that modules will soon be put in. */
  prepare(): void {
    if (this.tiers.process.available) this.#pool.prepare();
  }

  /**
   * Starts a guest and links a module in it.
   * @throws {PreampError} `isolation_unavailable`; `overloaded`; `module_load_failed`; what the module's top level threw.
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
      // a run does not wait until its children are gone: they are killed, and reaped behind its back
      close: () => {
        this.#trackEnding(opened.close());
        return Promise.resolve();
      },
    };
  }

  /** Ends what waits, and waits for what ends; guests that run end with their sessions. */
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
    void channel.exited.then(release);
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
    const as_usual = memory_mb === usual.memory_mb && cpu_s === usual.cpu_s;
    const child = as_usual ? this.#pool.take({ grant, uses }) : startGuestProcess({ memory_mb, cpu_s });
    child.assign({ grant, uses, env: grantedEnv(grant), memory_mb, cpu_s });
    return child;
  }
}

/** Returns the variables a module may read, as this process has them. */
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
