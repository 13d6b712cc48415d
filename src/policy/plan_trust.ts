/** Who is trusted with what: the one table of trust.md, as data. */
import type { Policy } from "./policy.ts";

/** Whose plan it is: a file of the operator's, or something a request brought. */
export type Origin = "operator" | "caller";

/** What the plans of one origin may have. */
export interface Trust {
  /** Returns true when a plan may expand the variable. */
  mayReadEnv(name: string): boolean;
  /** The most its modules may be granted; undefined: what the process itself has. */
  permissions: Policy["permissions"]["max"] | undefined;
}

/**
 * Returns what an origin is trusted with. A caller gets the policy's lists, never `run` or `ffi`, whatever they say: with
 * either a module is held by nothing. An operator is bounded by the process alone.
 */
export function trustOf(origin: Origin, policy: Policy): Trust {
  if (origin === "operator") return { mayReadEnv: () => true, permissions: undefined };
  const allowed = new Set(policy.env.allow);
  return {
    mayReadEnv: (name) => allowed.has(name),
    permissions: { ...policy.permissions.max, run: false, ffi: false },
  };
}
