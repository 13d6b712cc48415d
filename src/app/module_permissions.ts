/**
 * Computes the effective permissions of a plan's modules with the real file system and process permissions.
 */
import type { LoadContext } from "../loader/types.ts";
import type { CompiledPlan } from "../plan/compile.ts";
import { askedOf } from "../plan/permissions/permission_block.ts";
import { type Entry, entryText, parsePath, pathText } from "../plan/permissions/permission_entry.ts";
import type { Grants } from "../policy/authorise.ts";
import type { Origin, Policy } from "../policy/policy.ts";
import {
  type EffectiveGrant,
  effectiveGrant,
  type GuestPermissions,
  pathsBeside,
  type RealPath,
} from "../policy/effective_permissions.ts";
import type { ExcessPaths } from "../policy/refused_permissions.ts";
import type { ModuleSpec, PermissionKind } from "../sdk/plan.ts";
import { planFolder, workingFolder } from "./plan_folders.ts";
import type { PlanTemplate } from "./plan_template.ts";

/** A plan that the policy allows. */
export interface AuthorisedPlan {
  compiled: CompiledPlan;
  /** What all runs of the plan share. */
  template: PlanTemplate;
  origin: Origin;
  /** Policy of the caller. */
  policy: Policy;
  grants: Grants;
  /** Context in which the loader loads the plan's modules. */
  context: LoadContext;
  base_url?: string;
}

/** The parts of an authorised plan that its modules' grants depend on. */
export type GrantingPlan = Pick<AuthorisedPlan, "compiled" | "grants" | "origin" | "base_url">;

/**
 * Returns a module's effective permissions for Deno's worker options: plan ∩ policy ∩ process, for an
 * operator's plan ∩ process. Paths are real and absolute. Files and permissions are read at the time of the
 * call.
 */
export function grantOf(spec: ModuleSpec, authorised: GrantingPlan): GuestPermissions {
  return effectiveGrantOf(spec, authorised).granted;
}

/** Returns the effective permissions, and what the plan grants beyond them. */
export function effectiveGrantOf(spec: ModuleSpec, authorised: GrantingPlan): EffectiveGrant {
  const { compiled: { plan }, grants: { max_permissions }, origin, base_url } = authorised;
  const { asked, max } = grantPaths(origin, base_url);
  return effectiveGrant({
    plan: askedOf(spec, plan) ?? {},
    ...(max_permissions === undefined ? {} : { policy: max_permissions }),
    process: grantedToProcess,
    resolve: asked,
    resolvePolicy: max,
  });
}

/**
 * Returns resolvers of the plan's and the policy's paths. A plan's paths are relative to its file. The
 * policy's paths, and those of a plan without a file, are relative to the working folder.
 */
export function grantPaths(origin: Origin, base_url: string | undefined): Required<ExcessPaths> {
  return {
    asked: pathsBeside(() => planFolder(origin, base_url), realPath),
    max: pathsBeside(workingFolder, realPath),
  };
}

/**
 * Returns a function that displays entries of permissions. Paths below the plan's folder are relative to
 * it, so that callers do not see the folders above.
 */
export function displayOf({ origin, base_url }: Pick<GrantingPlan, "origin" | "base_url">): Display {
  const here = parsePath(".");
  const folder = here && grantPaths(origin, base_url).asked(here);
  const places = [folder && pathText(folder), planFolder(origin, base_url)]; // with its links followed, and as named
  return (kind, entry) =>
    entry === true || !PATHS.has(kind)
      ? entry
      : places.reduce<string>((path, place) => place === undefined ? path : displayPath(path, place), entry);
}

/** Returns an entry of a permission for display. */
type Display = (kind: PermissionKind, entry: string | true) => string | true;

/** Permissions whose entries are paths. */
const PATHS: ReadonlySet<PermissionKind> = new Set(["read", "write", "ffi"]);

function displayPath(path: string, folder: string): string {
  if (path === folder) return ".";
  const inside = folder === "/" ? folder : `${folder}/`;
  return path.startsWith(inside) && folder !== "/" ? `./${path.slice(inside.length)}` : path;
}

/**
 * Resolves links. Throws for a broken link: it is not a missing file, because writing to it creates its
 * target.
 */
const realPath: RealPath = (path) => {
  try {
    return Deno.realPathSync(path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  try {
    Deno.lstatSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
  throw new Error(`Cannot resolve a path: the link is broken: received ${JSON.stringify(path)}`);
};

/** Descriptor field of an entry. */
const FIELD = {
  net: "host",
  import: "host",
  read: "path",
  write: "path",
  ffi: "path",
  env: "variable",
  run: "command",
  sys: "kind",
} as const;

/**
 * Returns true if this process has an entry, or all of a permission, entirely. Entries that cannot be queried
 * exactly count as not granted: a wildcard host or a network without all of `net`, and with a `--deny-…` flag
 * any entry that may include a denied part. Limitation: `--deny-net=host:port` and `--deny-env` inside an
 * allowed range are not detected.
 */
export function grantedToProcess(permission: PermissionKind, entry: Entry | "all"): boolean {
  const all = stateOf({ name: permission });
  if (all === "whole") return true;
  if (entry === "all") return false;
  return wordsFor(entry, all === "part").every((word) =>
    stateOf({ name: permission, [FIELD[permission]]: word }) === "whole"
  );
}

/** Returns the values that Deno must all grant for an entry to be granted. */
function wordsFor(entry: Entry, denied: boolean): string[] {
  const text = entryText(entry);
  switch (entry.kind) {
    case "net": {
      const { host, port } = entry;
      const single = host.kind === "name" ||
        host.kind === "network" && host.block.bits === 8 * host.block.start.length;
      return single && (port !== undefined || !denied) ? [text] : CANNOT_ASK;
    }
    case "variable":
      if (!entry.prefix) return [text];
      // queried as names: if Deno grants both, a pattern includes the entry, unless one name and one
      // pattern are exactly these
      return entry.name !== "" && !denied ? [entry.name, text] : CANNOT_ASK;
    default:
      return [text];
  }
}

/** Values that are never granted: no descriptor has an empty word. */
const CANNOT_ASK: string[] = [""];

/** Returns the state of a query. `part`: all except what is denied. */
function stateOf(descriptor: { name: string; [field: string]: string }): "whole" | "part" | "none" {
  if (Object.values(descriptor).includes("")) return "none";
  try {
    // each name with its own field, as in the table
    const status = Deno.permissions.querySync(descriptor as unknown as Deno.PermissionDescriptor);
    if (status.state !== "granted") return "none";
    return status.partial ? "part" : "whole";
  } catch {
    return "none"; // Deno does not know the value
  }
}
