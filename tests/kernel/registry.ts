/** A registry of hooks over the parts of a session. */
import type { DraftEntry, Host } from "../../src/kernel/host.ts";
import type { Emitter } from "../../src/kernel/hooks.ts";
import { ModuleHooks } from "../../src/kernel/module_hooks.ts";
import { RunLimitGuard } from "../../src/kernel/run_limits.ts";
import { type KernelLimits, SessionContext } from "../../src/kernel/session_context.ts";
import { SessionParts } from "../../src/kernel/session_parts.ts";
import { SessionState } from "../../src/kernel/session_state.ts";
import { CancellationToken } from "../../src/sdk/cancellation.ts";
import { FakeClock } from "../../src/testing/clocks.ts";
import { KERNEL_LIMITS, planOf, RUN_LIMITS } from "../../src/testing/session.ts";

/**
 * Creates the registry of a module in a session with a fake clock; `entries` lists what was logged, `emitter`
 * counts what the module emits, `session_hooks` emits for the kernel.
 */
export function registry(changes: Partial<Host> = {}, limits: Partial<KernelLimits> = {}) {
  const clock = new FakeClock();
  const entries: Pick<DraftEntry, "event" | "data" | "verdict">[] = [];
  const warnings: string[] = [];
  const host: Host = {
    clock,
    newId: (prefix) => `${prefix}_1`,
    open: () => Promise.reject(new Error("no modules")),
    record({ event, data, verdict }) {
      entries.push({ event, data, ...(verdict ? { verdict } : {}) });
    },
    ask: () => Promise.resolve(null),
    accept() {},
    warn: (_code, message) => void warnings.push(message),
    ...changes,
  };
  const session = new SessionContext(
    host,
    planOf({}, clock).plan,
    "ses_1",
    null,
    new SessionState({}, 1_000),
    new RunLimitGuard({ limits: RUN_LIMITS, clock }),
    new CancellationToken(),
    { ...KERNEL_LIMITS, ...limits },
  );
  const { hooks: session_hooks } = new SessionParts(session, {});
  const emitter: Emitter = { module_id: "m", reserved: new Set(), open: 0 };
  const hooks = new ModuleHooks(session_hooks, emitter, () => null);
  return { hooks, session_hooks, emitter, clock, entries, warnings };
}
