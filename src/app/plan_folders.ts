/** The folders of a plan: that of its file, and the one that a person works in (src/docs/plan.md#folders). */
import type { PlanFolders } from "../plan/env.ts";
import type { Origin } from "../policy/policy.ts";
import { normalizePath } from "../sdk/paths.ts";

/**
 * Returns the folder that a plan's relative paths start at, in permissions and in configs: the folder of its
 * file, else the working folder. Undefined if that is unknown.
 */
export function planFolder(origin: Origin, base_url: string | undefined): string | undefined {
  return (origin === "operator" ? folderOf(base_url) : undefined) ?? workingFolder();
}

/**
 * Returns the folders that a plan can name. A caller's plan has no folder of its own.
 *
 * @param workspace The folder of `${WORKSPACE}` that this process was given. Default: the plan's.
 */
export function planFolders(
  origin: Origin,
  base_url: string | undefined,
  workspace: string | undefined,
): PlanFolders {
  const own = origin === "operator" ? planFolder(origin, base_url) : undefined;
  const works_in = workspace ?? own;
  return { ...(own && { PLAN_DIR: own }), ...(works_in && { WORKSPACE: works_in }) };
}

/** Returns the folder of a plan file; undefined if the file is not local. */
export function folderOf(base_url: string | undefined): string | undefined {
  if (!base_url?.startsWith("file:")) return undefined;
  try {
    return normalizePath(decodeURIComponent(new URL(".", base_url).pathname));
  } catch {
    return undefined; // a lone "%"
  }
}

/** Returns the working folder; undefined if it is unknown. */
export function workingFolder(): string | undefined {
  try {
    return Deno.cwd();
  } catch {
    return undefined; // it was removed, or this process may not read it
  }
}
