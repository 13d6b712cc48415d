/** The composition: policy, store, plans and runs put together. What server, CLI and library start from. */
import { defaultPolicy, type Policy } from "../policy/policy.ts";
import { Redactor } from "../policy/redact.ts";
import { systemClock } from "../runs/clock.ts";
import { newId } from "../runs/ids.ts";
import { RunService } from "../runs/service.ts";
import type { Clock, JsonObject } from "../sdk/types.ts";
import { MemoryStore } from "../store/memory.ts";
import type { Store } from "../store/store.ts";
import { BUILTIN_IDS, listingOf } from "./builtins.ts";
import { NamedPlans } from "./named_plans.ts";
import { Plans } from "./plans.ts";
import type { Runtime } from "./types.ts";

/** What a runtime is made of; every part has a default. */
export interface RuntimeConfig {
  /** Default: {@link defaultPolicy}. */
  policy?: Policy;
  /** Default: a store in memory. */
  store?: Store;
  /** Folder of named plans, as a URL that ends in a slash; null: none. Default null. */
  plans?: URL | null;
  /** Environment variables that plans may refer to. Default: the process's. */
  env?: (name: string) => string | undefined;
  /** Values that must never be seen, such as API keys of this process. */
  secrets?: readonly string[];
  /** Default: the clock of the process. */
  clock?: Clock;
  /** Structured log of the process. Default: none. */
  log?: (level: "info" | "warning" | "error", event: string, facts: JsonObject) => void;
}

/** Returns a runtime. Nothing is loaded, opened or started before it is asked for. */
export function createRuntime(config: RuntimeConfig = {}): Runtime {
  const policy = config.policy ?? defaultPolicy();
  const clock = config.clock ?? systemClock();
  const store = config.store ?? new MemoryStore({ now: () => clock.now() });
  const plans = new Plans({
    policy,
    named: new NamedPlans(config.plans ?? null),
    env: config.env ?? readEnv,
  });
  const runs = new RunService({
    store,
    clock,
    limits: { ...policy.limits, idempotency_hours: policy.retention.idempotency_hours },
    newId,
    ready: (request, caller, base_url) => plans.ready(request, caller, base_url),
    secrets: () => {
      const redactor = new Redactor(config.secrets);
      return {
        get size() {
          return redactor.size;
        },
        register: (secret) => redactor.add(secret),
        redact: (data) => redactor.redact(data),
      };
    },
    log: config.log ?? (() => {}),
  });
  return {
    runs,
    plans: {
      check: (input, caller, options) => plans.check(input, caller, options),
      list: () => plans.list(),
    },
    modules: {
      list: () => Promise.all([...BUILTIN_IDS].map(listingOf)),
      get: listingOf,
    },
    limits: { max_body_bytes: policy.limits.max_body_bytes },
    async ready() {
      const reasons: string[] = [];
      if (runs.draining) reasons.push("draining");
      const stored: { ok: boolean; reason?: string } = await store.ready();
      if (!stored.ok) reasons.push(stored.reason ?? "store not reachable");
      return { ok: reasons.length === 0, reasons };
    },
    drain: (grace_ms) => runs.drain(grace_ms),
    async close() {
      await runs.close();
      await store.close();
    },
  };
}

function readEnv(name: string): string | undefined {
  try {
    return Deno.env.get(name);
  } catch {
    return undefined; // not permitted by the process's flags: as if it were not set
  }
}
