/**
 * What one Deno permission has that another has not. An entry counts as held only when it is known to be: what cannot be
 * compared is more, so that a wider grant is never taken for the same one.
 */
import type { Permissions } from "../../sdk/contracts.ts";
import { PERMISSION_NAMES, type PermissionName } from "../check/check_permissions.ts";
import { holdsEntry, parseEntry } from "./permission_entry.ts";

/** One thing that is granted: an entry of a list, or true for everything. */
export interface GrantEntry {
  permission: PermissionName;
  entry: string | true;
}

/** One thing that a plan gives and a module does not get, or not whole; and who has not got it to give. */
export interface DroppedEntry extends GrantEntry {
  /** The policy's ceiling, or this process. */
  by: "policy" | "process";
}

/** Returns what a block grants, name by name, each entry once. */
export function entriesOf(permissions: Permissions | undefined): GrantEntry[] {
  return PERMISSION_NAMES.flatMap((permission): GrantEntry[] => {
    const value = permissions?.[permission];
    if (value === true) return [{ permission, entry: true }];
    return Array.isArray(value) ? [...new Set(value)].map((entry) => ({ permission, entry })) : [];
  });
}

/** Returns what `to` grants that `from` does not hold. */
export function grantedBeyond(to: Permissions | undefined, from: Permissions | undefined): GrantEntry[] {
  return entriesOf(to).filter(({ permission, entry }) => {
    const held = from?.[permission];
    if (held === true) return false;
    return entry === true || !Array.isArray(held) || !held.some((one) => covers(permission, one, entry));
  });
}

/** Returns a block that grants these entries and nothing else; names that grant nothing are left out. */
export function blockOf(entries: readonly GrantEntry[]): Permissions {
  const block: Permissions = {};
  for (const { permission, entry } of entries) {
    const known = block[permission];
    if (entry === true || known === true) block[permission] = true;
    else block[permission] = [...Array.isArray(known) ? known : [], entry];
  }
  return block;
}

/** Returns true when whoever holds `broad` holds `narrow`; paths as they are written. What cannot be read holds itself alone. */
export function covers(permission: PermissionName, broad: string, narrow: string): boolean {
  if (broad === narrow) return true;
  const [above, below] = [parseEntry(permission, broad), parseEntry(permission, narrow)];
  return above !== undefined && below !== undefined && holdsEntry(above, below);
}
