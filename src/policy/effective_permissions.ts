/**
 * Arithmetic on Deno permissions: plan ∩ policy ∩ process (trust.md). The result never grants what one of them does not; what
 * cannot be read, resolved or asked for grants nothing. Pure: files and the process are arguments.
 */
import { PERMISSION_NAMES, type PermissionName } from "../plan/check/check_permissions.ts";
import { type Entry, entryText, holdsEntry, meet, parseEntry } from "../plan/permissions/permission_entry.ts";
import type { DroppedEntry, GrantEntry } from "../plan/permissions/grants.ts";
import type { Permissions } from "../sdk/contracts.ts";
import { asWritten, type Resolve } from "./paths.ts";
import { type FullPermissions, noPermissions } from "./full_permissions.ts";

/**
 * A grant as Deno's worker options take it: all eight names as own properties, each `true`, `false` or a list that is not
 * empty. A name that is missing, `undefined`, `null` or `"inherit"` would mean everything to Deno.
 */
export type GuestPermissions = FullPermissions;

/** Tells whether this process has an entry, or all of a permission; what it cannot tell it says no to. */
export type GrantCheck = (permission: PermissionName, entry: Entry | "all") => boolean;

/** What a module's grant is made of. */
export interface GrantInput {
  /** What the plan gives it. */
  plan: Permissions;
  /** The most the policy lets it have; absent for an operator's plan, which the process alone bounds. */
  ceiling?: Permissions;
  process: GrantCheck;
  /** What the plan's paths mean. Default: what is written. */
  resolve?: Resolve;
  /** What the ceiling's paths mean. Default: what is written. */
  resolveCeiling?: Resolve;
}

/** What a module gets, and what the plan gives it besides. */
export interface EffectiveGrant {
  granted: GuestPermissions;
  /** Entries as the plan has them, each once for whoever first has not got it whole. */
  dropped: DroppedEntry[];
}

/** A piece of a grant, and the entry of the plan that it comes from. */
interface Piece {
  what: Entry | "all";
  written: string | true;
}

/** Returns what a module gets of a plan's grant. */
export function effectiveGrant(input: GrantInput): EffectiveGrant {
  const granted = nothing();
  const dropped: DroppedEntry[] = [];
  for (const permission of PERMISSION_NAMES) {
    const drop = (written: string | true, by: DroppedEntry["by"]) => {
      const known = dropped.some(({ permission: name, entry }) => name === permission && entry === written);
      if (!known) dropped.push({ permission, entry: written, by });
    };
    const pieces = piecesOf(permission, input, drop).filter(({ what, written }) => {
      const held = input.process(permission, what);
      if (!held) drop(written, "process");
      return held;
    });
    granted[permission] = valueOf(pieces.map(({ what }) => what));
  }
  return { granted, dropped };
}

/** Plan ∩ policy. */
function piecesOf(
  permission: PermissionName,
  { plan, ceiling, resolve = asWritten, resolveCeiling = asWritten }: GrantInput,
  drop: (written: string | true, by: DroppedEntry["by"]) => void,
): Piece[] {
  const most = ceiling === undefined
    ? ["all" as const]
    : readable(permission, ceiling[permission], resolveCeiling);
  const pieces: Piece[] = [];
  for (const written of givenBy(plan[permission])) {
    const asked = readEntry(permission, written, resolve);
    if (asked === undefined) {
      drop(written, "process");
      continue;
    }
    const both = most.flatMap((one) => meetAny(one, asked) ?? []);
    if (!most.some((one) => holdsAny(one, asked))) drop(written, "policy");
    pieces.push(...both.map((what) => ({ what, written })));
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

function meetAny(one: Entry | "all", other: Entry | "all"): Entry | "all" | undefined {
  if (one === "all") return other;
  return other === "all" ? one : meet(one, other);
}

function holdsAny(broad: Entry | "all", narrow: Entry | "all"): boolean {
  return broad === "all" || narrow !== "all" && holdsEntry(broad, narrow);
}

/** Without what another entry holds. */
function valueOf(whats: readonly (Entry | "all")[]): boolean | string[] {
  if (whats.includes("all")) return true;
  const entries = new Map(whats.flatMap((what) => what === "all" ? [] : [[entryText(what), what] as const]));
  const texts = [...entries].filter(([text, entry]) =>
    ![...entries].some(([other, broad]) => other !== text && holdsEntry(broad, entry))
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

/** Returns a block with every name said; what is absent or false grants nothing. */
export function fullPermissions(permissions: Permissions | undefined): FullPermissions {
  const full = noPermissions();
  for (const name of PERMISSION_NAMES) {
    const value = permissions?.[name];
    if (value !== undefined) full[name] = Array.isArray(value) ? [...value] : value;
  }
  return full;
}

/** What the paths of two blocks mean. Default: what is written. */
export interface ExcessPaths {
  asked?: Resolve;
  max?: Resolve;
}

/** Returns everything that `asked` has beyond `max`: entries that no single entry of `max` holds whole. */
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
      return entry === undefined || !most.some((one) => holdsAny(one, entry));
    }).map((entry) => ({ permission, entry }));
  });
}
