/**
 * Computes effective Deno permissions: plan ∩ policy ∩ process. Entries that cannot be parsed, resolved or
 * queried grant nothing. Pure: file system and process are arguments.
 */
import { PERMISSION_NAMES, type PermissionName } from "../plan/check/check_permissions.ts";
import {
  type DroppedEntry,
  type FullPermissions,
  type GrantEntry,
  noPermissions,
} from "../plan/permissions/grants.ts";
import { type Entry, entryText, holdsEntry, meet, parseEntry } from "../plan/permissions/permission_entry.ts";
import { asWritten, type Resolve } from "./paths.ts";
import type { Permissions } from "../sdk/contracts.ts";

/**
 * Permissions for Deno's worker options: all eight names as own properties, each `true`, `false` or a list
 * with entries. To Deno, a name that is missing, `undefined`, `null` or `"inherit"` means everything.
 */
export type GuestPermissions = FullPermissions;

/** Returns whether this process has an entry, or all of a permission. Returns false if unknown. */
export type GrantCheck = (permission: PermissionName, entry: Entry | "all") => boolean;

/** Input of `effectiveGrant`. */
export interface GrantInput {
  /** Permissions that the plan grants. */
  plan: Permissions;
  /** Permissions that the policy allows; absent for an operator's plan, which only the process bounds. */
  policy?: Permissions;
  process: GrantCheck;
  /** Resolves the plan's paths. Default: as written. */
  resolve?: Resolve;
  /** Resolves the policy's paths. Default: as written. */
  resolvePolicy?: Resolve;
}

/** The effective grant, and the entries of the plan that it lacks. */
export interface EffectiveGrant {
  granted: GuestPermissions;
  /** Entries as the plan has them, each once, with the first that withholds it entirely or in part. */
  dropped: DroppedEntry[];
}

/** Part of a grant, and the plan's entry that it comes from. */
interface Piece {
  value: Entry | "all";
  written: string | true;
}

/** Returns the effective permissions of a module. */
export function effectiveGrant(input: GrantInput): EffectiveGrant {
  const granted = nothing();
  const dropped: DroppedEntry[] = [];
  for (const permission of PERMISSION_NAMES) {
    const drop = (written: string | true, by: DroppedEntry["by"]) => {
      const known = dropped.some(({ permission: name, entry }) => name === permission && entry === written);
      if (!known) dropped.push({ permission, entry: written, by });
    };
    const pieces = piecesOf(permission, input, drop).filter(({ value, written }) => {
      const has = input.process(permission, value);
      if (!has) drop(written, "process");
      return has;
    });
    granted[permission] = valueOf(pieces.map(({ value }) => value));
  }
  return { granted, dropped };
}

/** Intersects plan and policy. */
function piecesOf(
  permission: PermissionName,
  { plan, policy, resolve = asWritten, resolvePolicy = asWritten }: GrantInput,
  drop: (written: string | true, by: DroppedEntry["by"]) => void,
): Piece[] {
  const most = policy === undefined
    ? ["all" as const]
    : readable(permission, policy[permission], resolvePolicy);
  const pieces: Piece[] = [];
  for (const written of givenBy(plan[permission])) {
    const asked = readEntry(permission, written, resolve);
    if (asked === undefined) {
      drop(written, "process");
      continue;
    }
    const both = most.flatMap((allowed) => meetAny(allowed, asked) ?? []);
    if (!most.some((allowed) => holdsAny(allowed, asked))) drop(written, "policy");
    pieces.push(...both.map((value) => ({ value, written })));
  }
  return pieces;
}

function givenBy(value: boolean | string[] | undefined): (string | true)[] {
  return value === true ? [true] : Array.isArray(value) ? value : [];
}

function readEntry(
  permission: PermissionName,
  written: string | true,
  resolve: Resolve,
): Entry | "all" | undefined {
  if (written === true) return "all";
  const entry = parseEntry(permission, written);
  return entry?.kind === "path" ? resolve(entry) : entry;
}

function readable(
  permission: PermissionName,
  value: boolean | string[] | undefined,
  resolve: Resolve,
): (Entry | "all")[] {
  return givenBy(value).flatMap((written) => readEntry(permission, written, resolve) ?? []);
}

function meetAny(a: Entry | "all", b: Entry | "all"): Entry | "all" | undefined {
  if (a === "all") return b;
  return b === "all" ? a : meet(a, b);
}

function holdsAny(broad: Entry | "all", narrow: Entry | "all"): boolean {
  return broad === "all" || narrow !== "all" && holdsEntry(broad, narrow);
}

/** Returns the entries as a permission value, without those that another entry includes. */
function valueOf(values: readonly (Entry | "all")[]): boolean | string[] {
  if (values.includes("all")) return true;
  const entries = new Map(
    values.flatMap((value) => value === "all" ? [] : [[entryText(value), value] as const]),
  );
  const texts = [...entries].filter(([text, entry]) =>
    ![...entries].some(([wide, broad]) => wide !== text && holdsEntry(broad, entry))
  ).map(([text]) => text);
  return texts.length > 0 && texts;
}

function nothing(): GuestPermissions {
  return {
    net: false,
    read: false,
    write: false,
    env: false,
    run: false,
    sys: false,
    ffi: false,
    import: false,
  };
}

/** Returns a block with all permission names. A name that is absent or false grants nothing. */
export function fullPermissions(permissions: Permissions | undefined): FullPermissions {
  const full = noPermissions();
  for (const name of PERMISSION_NAMES) {
    const value = permissions?.[name];
    if (value !== undefined) full[name] = Array.isArray(value) ? [...value] : value;
  }
  return full;
}

/** Resolvers of the paths of two blocks. Default: as written. */
export interface ExcessPaths {
  asked?: Resolve;
  max?: Resolve;
}

/** Returns the entries of `asked` that no single entry of `max` includes entirely. */
export function excessPermissions(
  asked: Permissions | undefined,
  max: Permissions,
  { asked: resolve = asWritten, max: resolveMax = asWritten }: ExcessPaths = {},
): GrantEntry[] {
  return PERMISSION_NAMES.flatMap((permission) => {
    const wanted = givenBy(asked?.[permission]);
    if (wanted.length === 0 || max[permission] === true) return [];
    const most = readable(permission, max[permission], resolveMax);
    return wanted.filter((written) => {
      const entry = readEntry(permission, written, resolve);
      return entry === undefined || !most.some((allowed) => holdsAny(allowed, entry));
    }).map((entry) => ({ permission, entry }));
  });
}
