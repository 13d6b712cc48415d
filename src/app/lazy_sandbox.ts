/**
 * Where modules run that are not trusted to run in this process: the sandbox, imported when the first of them is to be run, and
 * what it is asked with.
 */
import type { ModuleBundle } from "../loader/types.ts";
import type { Policy } from "../policy/policy.ts";
import type { GuestLimits, GuestRequest, Sandbox } from "../sandbox/sandbox.ts";
import type { GuestSlots } from "../sandbox/tiers/guest_semaphore.ts";
import { hostTiers, type TierReport } from "../sandbox/tiers/isolation_tiers.ts";
import type { JsonObject, ModuleSpec } from "../sdk/types.ts";
import type { ModuleReporter } from "../runs/ports.ts";

/** What the sandbox is made with. */
export interface SandboxingOptions {
  /** The server's policy: how many guests there may be. */
  policy: Policy;
  log: (level: "info" | "warning" | "error", event: string, facts: JsonObject) => void;
}

/** The one sandbox of a composition. */
export class LazySandbox {
  readonly #options: SandboxingOptions;
  #sandbox: Promise<Sandbox> | undefined;
  #made: Sandbox | undefined;

  constructor(options: SandboxingOptions) {
    this.#options = options;
  }

  /** Tiers that modules of URLs may have here. */
  get url_tiers(): readonly ("inline" | "worker" | "process")[] {
    const { worker, process } = this.tiers;
    return [
      "inline",
      ...(worker.available ? ["worker"] as const : []),
      ...(process.available ? ["process"] as const : []),
    ];
  }

  /** Why modules of URLs cannot have the other tiers here. */
  get missing_tiers(): { worker?: string; process?: string } {
    const { worker, process } = this.tiers;
    return {
      ...(worker.available ? {} : { worker: worker.reason }),
      ...(process.available ? {} : { process: process.reason }),
    };
  }

  /** What this host has, and why it has not the rest. */
  get tiers(): TierReport {
    return hostTiers();
  }

  /** Guests that nobody can end: this process wants a restart. */
  get abandoned(): number {
    return this.#made?.abandoned ?? 0;
  }

  /** Resolves to the sandbox; the first call imports it. */
  sandbox(): Promise<Sandbox> {
    return this.#sandbox ??= this.#make();
  }

  async #make(): Promise<Sandbox> {
    const { Sandbox } = await import("../sandbox/sandbox.ts");
    const { policy, log } = this.#options;
    const { max_guests } = policy.isolation;
    return this.#made = new Sandbox({
      max_guests,
      usual: guestLimits(policy),
      log: (level, event, facts) => log(level, event, facts),
    });
  }

  /** Ends what waits to be used, if there ever was something. */
  async close(): Promise<void> {
    await (await this.#sandbox)?.close();
  }
}

/** Returns the limits of guests under a policy. */
export function guestLimits({ isolation, limits }: Pick<Policy, "isolation" | "limits">): GuestLimits {
  const { memory_mb, cpu_s, load_timeout_s } = isolation;
  const { max_tool_output_bytes, hook_timeout_s, max_answer_tool_calls, max_answer_blocks } = limits;
  return {
    memory_mb,
    cpu_s,
    load_timeout_s,
    max_tool_output_bytes,
    call_timeout_s: hook_timeout_s,
    max_answer_tool_calls,
    max_answer_blocks,
  };
}

/** What is known of a module that is to be run. */
export interface GuestParts {
  spec: ModuleSpec;
  bundle: ModuleBundle;
  tier: "worker" | "process";
  grant: GuestRequest["grant"];
  session: GuestSlots;
  policy: Policy;
  run: ModuleReporter;
}

/** Returns what the sandbox is asked for a module. */
export function guestRequest({ spec, bundle, tier, grant, session, policy, run }: GuestParts): GuestRequest {
  const { code, uses } = bundle;
  const module = spec.instance_id ?? spec.module;
  return {
    tier,
    module,
    type: spec.type,
    code,
    uses,
    grant,
    limits: guestLimits(policy),
    session,
    warn: (code, message) => run.warn(code, message),
    onLog: (level, text) => run.console(level, text, module),
  };
}
