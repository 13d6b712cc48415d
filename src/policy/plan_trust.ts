/** Defines the trust in each origin of a plan (src/docs/security.md#who-is-trusted). */
import type { Policy } from "./policy.ts";

/** Author of a plan: the operator (a file), or a caller (in a request). */
export type Origin = "operator" | "caller";

/** Rights of the plans of one origin. */
export interface Trust {
  /** Returns true if a plan may expand the variable. */
  mayReadEnv(name: string): boolean;
  /** The most that its modules may be granted; undefined: the permissions of the process. */
  permissions: Policy["permissions"]["max"] | undefined;
}

/**
 * Returns what an origin is trusted with. A caller gets the policy's lists, but never `run` or `ffi`, with
 * which a module escapes every sandbox. An operator is bounded by the process only.
 */
export function trustOf(origin: Origin, policy: Policy): Trust {
  if (origin === "operator") return { mayReadEnv: () => true, permissions: undefined };
  const allowed = new Set(policy.env.allow);
  return {
    mayReadEnv: (name) => allowed.has(name),
    permissions: { ...policy.permissions.max, run: false, ffi: false },
  };
}
