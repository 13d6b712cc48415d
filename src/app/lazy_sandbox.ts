/**
 * Imports the sandbox when the first module is to run outside of this process, and builds the requests to
 * it.
 */
import type { ModuleBundle } from "../loader/types.ts";
import type { Policy } from "../policy/policy.ts";
import type { GuestLimits } from "../sandbox/channel.ts";
import type { GuestRequest, Sandbox } from "../sandbox/sandbox.ts";
import type { GuestSlots } from "../sandbox/tiers/guest_semaphore.ts";
import type { JsonObject, ModuleSpec } from "../sdk/types.ts";
import type { ModuleReporter } from "../runs/ports.ts";
import type { Metrics } from "../telemetry/metrics.ts";

/** Collaborators of `LazySandbox`. */
export interface LazySandboxDeps {
  /** The server's policy, which limits the number of guests. */
  policy: Policy;
  /** Receives the numbers of guests. Default: nothing does. */
  metrics?: Metrics | null;
  log: (level: "info" | "warning" | "error", event: string, facts: JsonObject) => void;
}

/** Creates one sandbox on first use. */
export class LazySandbox {
  readonly #options: LazySandboxDeps;
  #sandbox: Promise<Sandbox> | undefined;
  #made: Sandbox | undefined;

  constructor(options: LazySandboxDeps) {
    this.#options = options;
  }

  /** Number of workers that cannot be stopped. If any, the process needs a restart. */
  get abandoned(): number {
    return this.#made?.abandoned ?? 0;
  }

  /** Resolves to the sandbox. The first call imports it. */
  sandbox(): Promise<Sandbox> {
    return this.#sandbox ??= this.#make();
  }

  async #make(): Promise<Sandbox> {
    const { Sandbox } = await import("../sandbox/sandbox.ts");
    const { policy, metrics, log } = this.#options;
    const { max_guests } = policy.isolation;
    const made = this.#made = new Sandbox({
      max_guests,
      usual: guestLimits(policy),
      onExit: (tier, cause) => metrics?.record("preamp_guests_ended_total", { tier, cause }),
      log: (level, event, facts) => log(level, event, facts),
    });
    metrics?.watch(
      "preamp_guests",
      () => Object.entries(made.guests_by_tier).map(([tier, value]) => ({ labels: { tier }, value })),
    );
    return made;
  }

  /** Ends the warm guests, if there are any. */
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

/** Input of `guestRequest`. */
export interface GuestInput {
  spec: ModuleSpec;
  bundle: ModuleBundle;
  tier: "worker" | "process";
  grant: GuestRequest["grant"];
  session: GuestSlots;
  policy: Policy;
  run: ModuleReporter;
}

/** Returns the sandbox's request for a module. */
export function guestRequest({ spec, bundle, tier, grant, session, policy, run }: GuestInput): GuestRequest {
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
