/**
 * Computes effective Deno permissions: plan ∩ policy ∩ process. Entries that cannot be parsed, resolved or
 * queried grant nothing. Pure: file system and process are arguments.
 */
import type { DroppedEntry, FullPermissions } from "../plan/permissions/permission_block.ts";
import {
  type Entry,
  entryText,
  type FilePath,
  holdsEntry,
  meet,
  parseEntry,
  parsePath,
  pathFrom,
  pathText,
} from "../plan/permissions/permission_entry.ts";
import { noPermissions, type Permissions } from "../sdk/contracts.ts";
import { PERMISSION_KINDS, type PermissionKind } from "../sdk/plan.ts";

/**
 * Permissions for Deno's worker options: all eight names as own properties, each `true`, `false` or a list
 * with entries. To Deno, a name that is missing, `undefined`, `null` or `"inherit"` means everything.
 */
export type GuestPermissions = FullPermissions;

/** Returns whether this process has an entry, or all of a permission. Returns false if unknown. */
export type GrantCheck = (permission: PermissionKind, entry: Entry | "all") => boolean;

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
  const granted: GuestPermissions = noPermissions();
  const dropped: DroppedEntry[] = [];
  for (const permission of PERMISSION_KINDS) {
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
  permission: PermissionKind,
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

/** Returns the entries of a permission, `true` for all of it. */
export function givenBy(value: boolean | string[] | undefined): (string | true)[] {
  return value === true ? [true] : Array.isArray(value) ? value : [];
}

/** Returns an entry with its path resolved; undefined if it cannot be read. */
export function readEntry(
  permission: PermissionKind,
  written: string | true,
  resolve: Resolve,
): Entry | "all" | undefined {
  if (written === true) return "all";
  const entry = parseEntry(permission, written);
  return entry?.kind === "path" ? resolve(entry) : entry;
}

/** Returns the entries of a permission that can be read, with their paths resolved. */
export function readable(
  permission: PermissionKind,
  value: boolean | string[] | undefined,
  resolve: Resolve,
): (Entry | "all")[] {
  return givenBy(value).flatMap((written) => readEntry(permission, written, resolve) ?? []);
}

function meetAny(a: Entry | "all", b: Entry | "all"): Entry | "all" | undefined {
  if (a === "all") return b;
  return b === "all" ? a : meet(a, b);
}

/** Returns whether one entry includes another entirely. */
export function holdsAny(broad: Entry | "all", narrow: Entry | "all"): boolean {
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

/** Returns a new block with all permission names. A name that is absent or false grants nothing. */
export function fullPermissions(permissions: Permissions | undefined): FullPermissions {
  return structuredClone({ ...noPermissions(), ...permissions });
}

/** Returns the absolute real path; undefined if it cannot be determined. */
export type Resolve = (path: FilePath) => FilePath | undefined;

/**
 * Returns the real path of an absolute path with all links followed; undefined if nothing exists there.
 * Throws for a broken link, a cycle of links, or without permission to read.
 */
export type RealPath = (path: string) => string | undefined;

/** Compares paths as they are written. */
export const asWritten: Resolve = (path) => path;

/**
 * Returns a function that resolves paths relative to `folder`, an absolute path. For a path that does not
 * exist yet, it resolves the deepest existing ancestor.
 */
export function pathsBeside(folder: () => string | undefined, realPath: RealPath): Resolve {
  return (written) => {
    const path = written.absolute ? written : from(folder(), written);
    return path && real(path, realPath);
  };
}

function from(folder: string | undefined, path: FilePath): FilePath | undefined {
  const base = folder === undefined ? undefined : parsePath(folder);
  return base?.absolute ? pathFrom(base, path) : undefined;
}

function real(path: FilePath, realPath: RealPath): FilePath | undefined {
  for (let length = path.steps.length; length >= 0; length--) {
    const above: FilePath = { ...path, steps: path.steps.slice(0, length) };
    let found: string | undefined;
    try {
      found = realPath(pathText(above));
    } catch {
      return undefined; // cannot be determined: grants nothing
    }
    const folder = found === undefined ? undefined : parsePath(found);
    if (folder) return { ...folder, steps: [...folder.steps, ...path.steps.slice(length)] };
    if (found !== undefined) return undefined;
  }
  return undefined;
}
