/**
 * What one Deno permission has that another has not. An entry counts as held only when it is known to be: what cannot be
 * compared is more, so that a wider grant is never taken for the same one.
 */
import type { Permissions } from "../sdk/contracts.ts";
import { PERMISSION_NAMES, type PermissionName } from "./check_permissions.ts";

/** One thing that is granted: an entry of a list, or true for everything. */
export interface GrantEntry {
  permission: PermissionName;
  entry: string | true;
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

/** Returns true when whoever holds `broad` holds `narrow`, by the value forms of Deno's flags (trust.md, Permissions). */
export function covers(permission: PermissionName, broad: string, narrow: string): boolean {
  if (broad === narrow) return true;
  switch (permission) {
    case "net":
    case "import":
      return coversHost(broad.toLowerCase(), narrow.toLowerCase());
    case "read":
    case "write":
      return coversPath(broad, narrow);
    case "env":
      return broad.endsWith("*") && narrow.startsWith(broad.slice(0, -1));
    default:
      return false;
  }
}

/** A host without a port is every port of it; `*.example.com` is every name one label below. */
function coversHost(broad: string, narrow: string): boolean {
  const [broadHost, broadPort] = splitPort(broad);
  const [narrowHost, narrowPort] = splitPort(narrow);
  if (broadPort !== undefined && broadPort !== narrowPort) return false;
  if (broadHost === narrowHost) return true;
  const parent = narrowHost.slice(narrowHost.indexOf(".") + 1);
  return broadHost.startsWith("*.") && narrowHost.includes(".") && !narrowHost.startsWith("*") &&
    /[a-z]/.test(parent) && broadHost.slice(2) === parent;
}

function splitPort(entry: string): [host: string, port: string | undefined] {
  const bracket = entry.lastIndexOf("]");
  const colon = entry.lastIndexOf(":");
  const isPort = colon > bracket && (bracket !== -1 || entry.indexOf(":") === colon);
  return isPort ? [entry.slice(0, colon), entry.slice(colon + 1)] : [entry, undefined];
}

/** A folder is all that is below it. Paths with `..`, of Windows, or from another root are not compared. */
function coversPath(broad: string, narrow: string): boolean {
  const [above, below] = [stepsOf(broad), stepsOf(narrow)];
  if (!above || !below || broad.startsWith("/") !== narrow.startsWith("/")) return false;
  return above.every((step, index) => step === below[index]);
}

function stepsOf(path: string): string[] | undefined {
  const steps = path.split("/").filter((step) => step !== "" && step !== ".");
  return steps.includes("..") || path.includes("\\") || path.includes(":") || path.startsWith("~")
    ? undefined
    : steps;
}
