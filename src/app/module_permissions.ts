/** What a module of a judged plan gets in this process: the policy's arithmetic, with the files and the permissions there are. */
import { askedOf } from "../plan/explain.ts";
import { parsePath, pathText } from "../plan/permissions/file_path.ts";
import type { Origin } from "../policy/plan_trust.ts";
import { pathsBeside, type RealPath, type Resolve } from "../policy/paths.ts";
import {
  type EffectiveGrant,
  effectiveGrant,
  type ExcessPaths,
  type GuestPermissions,
} from "../policy/effective_permissions.ts";
import type { ModuleSpec } from "../sdk/plan.ts";
import { grantedToProcess } from "./process_permissions.ts";
import type { AuthorisedPlan } from "./plan_service.ts";

/** What of a judged plan its modules' grants depend on. */
export type GrantingPlan = Pick<AuthorisedPlan, "compiled" | "grants" | "origin" | "base_url">;

/**
 * Returns what a module may do, ready for Deno's worker options: plan ∩ policy ∩ process, an operator's plan ∩ process. Real
 * paths only, all of them absolute; files and permissions as they are now.
 */
export function grantOf(spec: ModuleSpec, judged: GrantingPlan): GuestPermissions {
  return effectiveGrantOf(spec, judged).granted;
}

/** Returns the same, and what the plan gives besides. */
export function effectiveGrantOf(spec: ModuleSpec, judged: GrantingPlan): EffectiveGrant {
  const { compiled: { plan }, grants: { ceiling }, origin, base_url } = judged;
  const { asked, max } = grantPaths(origin, base_url);
  return effectiveGrant({
    plan: askedOf(spec, plan) ?? {},
    ...(ceiling === undefined ? {} : { ceiling }),
    process: grantedToProcess,
    resolve: asked,
    resolveCeiling: max,
  });
}

/**
 * Returns what the paths of a plan and of the policy mean: the plan's are beside its file, the policy's, and those of a plan
 * without a file, in the working folder.
 */
export function grantPaths(origin: Origin, base_url: string | undefined): Required<ExcessPaths> {
  const max = pathsBeside(workingFolder, realPath);
  const beside = origin === "operator" ? folderOf(base_url) : undefined;
  const asked: Resolve = beside === undefined ? max : pathsBeside(() => beside, realPath);
  return { asked, max };
}

/** Returns a grant for people: paths below the plan's folder are named from there, so that callers see none above it. */
export function displayGrant(
  granted: GuestPermissions,
  { origin, base_url }: GrantingPlan,
): GuestPermissions {
  const here = parsePath(".");
  const { asked } = grantPaths(origin, base_url);
  const folder = here && asked(here);
  if (!folder) return granted;
  const from = pathText(folder);
  const shown = (value: boolean | string[]) =>
    Array.isArray(value) ? value.map((path) => displayPath(path, from)) : value;
  return { ...granted, read: shown(granted.read), write: shown(granted.write), ffi: shown(granted.ffi) };
}

function displayPath(path: string, folder: string): string {
  if (path === folder) return ".";
  const inside = folder === "/" ? folder : `${folder}/`;
  return path.startsWith(inside) && folder !== "/" ? `./${path.slice(inside.length)}` : path;
}

/** The folder of a plan file; undefined when it lies in none of this machine. */
function folderOf(base_url: string | undefined): string | undefined {
  if (!base_url?.startsWith("file:")) return undefined;
  try {
    return decodeURIComponent(new URL(".", base_url).pathname);
  } catch {
    return undefined; // a lone "%"
  }
}

function workingFolder(): string | undefined {
  try {
    return Deno.cwd();
  } catch {
    return undefined; // it was removed, or this process may not know it
  }
}

/** A link that leads nowhere is there, and whoever writes to it makes what it names: it is not told as missing. */
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
  throw new Error(`Cannot resolve a path: the link there leads to nothing: received ${JSON.stringify(path)}`);
};
