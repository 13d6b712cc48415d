/**
 * Blocks of Deno permissions: lists their entries and compares blocks. Used for the policy's permissions,
 * sub-agents, `diff` and the flags of a process.
 */
import { type ModuleSpec, type MountPlan, PERMISSION_KINDS, type PermissionKind } from "../../sdk/plan.ts";
import type { Permissions } from "../../sdk/contracts.ts";
import { describe } from "../../sdk/value_path.ts";
import { covers } from "./permission_entry.ts";

/** One granted entry of a list, or true for the whole permission. */
export interface GrantEntry {
  permission: PermissionKind;
  entry: string | true;
}

/** An entry that the plan grants and the module does not receive, entirely or in part. */
export interface DroppedEntry extends GrantEntry {
  /** Who withholds it: the policy or this process. */
  by: "policy" | "process";
}

/** Returns the entries of a block, by name, without duplicates. */
export function entriesOf(permissions: Permissions | undefined): GrantEntry[] {
  return PERMISSION_KINDS.flatMap((permission): GrantEntry[] => {
    const value = permissions?.[permission];
    if (value === true) return [{ permission, entry: true }];
    return Array.isArray(value) ? [...new Set(value)].map((entry) => ({ permission, entry })) : [];
  });
}

/** Returns the entries of `to` that `from` does not cover. */
export function grantedBeyond(to: Permissions | undefined, from: Permissions | undefined): GrantEntry[] {
  return entriesOf(to).filter(({ permission, entry }) => {
    const covering = from?.[permission];
    if (covering === true) return false;
    return entry === true || !Array.isArray(covering) ||
      !covering.some((broad) => covers(permission, broad, entry));
  });
}

/** Returns a block with exactly these entries. Names without entries are left out. */
export function blockOf(entries: readonly GrantEntry[]): Permissions {
  const block: Permissions = {};
  for (const { permission, entry } of entries) {
    const known = block[permission];
    if (entry === true || known === true) block[permission] = true;
    else block[permission] = [...Array.isArray(known) ? known : [], entry];
  }
  return block;
}

/** Returns the plan's grant to a module: the module's own block, else for tools the plan's default. */
export function askedOf(spec: ModuleSpec, plan: MountPlan): Permissions | undefined {
  return spec.permissions ?? (spec.type === "tool" ? plan.permissions : undefined);
}

/** Returns whether a block names an entry of a permission, or all of it (undefined). */
export function isAsked(name: string, entry: string | undefined, block: Permissions = {}): boolean {
  const kind = PERMISSION_KINDS.find((kind) => kind === name);
  const given = kind && block[kind];
  if (typeof given === "boolean" || !kind || !given) return given === true;
  return entry !== undefined && given.some((wide) => covers(kind, wide, entry));
}

/** Returns the path of the block that grants permissions to a module. */
export function grantPath(spec: ModuleSpec, plan: MountPlan): string {
  const is_default = spec.permissions === undefined && askedOf(spec, plan) !== undefined;
  return is_default ? "permissions" : `${spec.path}.permissions`;
}

/** Returns an entry for messages: `all of net`, `net "api.example.com"`. */
export function entryLabel({ permission, entry }: GrantEntry): string {
  return entry === true ? `all of ${permission}` : `${permission} ${describe(entry)}`;
}

/** A permissions block with all permission names. */
export type FullPermissions = Required<Permissions>;
