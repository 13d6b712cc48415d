/**
 * Arithmetic on Deno permissions. Conservative: an entry is within a ceiling only when the ceiling is everything or holds
 * that very entry, so the result never grants what an input does not.
 */
import type { Permissions } from "../sdk/contracts.ts";
import { PERMISSION_NAMES, type PermissionName } from "../plan/check_permissions.ts";
import { type FullPermissions, noPermissions } from "./policy.ts";

/** One thing that was asked for and is not in the ceiling. */
export interface Excess {
  permission: PermissionName;
  /** The entry, or true for everything. */
  asked: string | true;
}

/** Returns a block with every name said; what is absent or false grants nothing. */
export function fullPermissions(permissions: Permissions | undefined): FullPermissions {
  const full = noPermissions();
  for (const name of PERMISSION_NAMES) {
    const value = permissions?.[name];
    if (value !== undefined) full[name] = Array.isArray(value) ? [...value] : value;
  }
  return full;
}

/** Returns everything that `asked` has beyond `max`. */
export function excessOf(asked: Permissions | undefined, max: Permissions): Excess[] {
  const excess: Excess[] = [];
  for (const permission of PERMISSION_NAMES) {
    const wanted = asked?.[permission];
    const ceiling = max[permission];
    if (wanted === undefined || wanted === false || ceiling === true) continue;
    const allowed = new Set(Array.isArray(ceiling) ? ceiling : []);
    for (const entry of wanted === true ? [true as const] : wanted) {
      if (entry === true || !allowed.has(entry)) excess.push({ permission, asked: entry });
    }
  }
  return excess;
}
