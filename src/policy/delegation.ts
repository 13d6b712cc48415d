/** Compares a sub-agent's grants with its parent's: delegation never adds a permission. */
import { PERMISSION_NAMES } from "../plan/check/check_permissions.ts";
import type { CompiledPlan } from "../plan/compile.ts";
import { type FullPermissions, noPermissions } from "../plan/permissions/grants.ts";
import { describe } from "../sdk/value_path.ts";
import { authorise, type AuthoriseOptions, type Grants } from "./authorise.ts";
import { excessPermissions } from "./effective_permissions.ts";
import type { Resolve } from "./paths.ts";
import { type ErrorDetail, PreampError } from "../sdk/errors.ts";

/** Returns the union of a plan's grants, including the default of tools. */
export function grantedAnywhere(grants: Pick<Grants, "permissions">): FullPermissions {
  const all = noPermissions();
  for (const permissions of Object.values(grants.permissions)) {
    for (const name of PERMISSION_NAMES) all[name] = joined(all[name], permissions[name]);
  }
  return all;
}

function joined(a: boolean | string[], b: boolean | string[]): boolean | string[] {
  if (a === true || b === true) return true;
  const entries = [...new Set([...(Array.isArray(a) ? a : []), ...(Array.isArray(b) ? b : [])])];
  return entries.length === 0 && a === false ? false : entries;
}

/**
 * Returns reasons for each grant of a child that no module of the parent has. Tiers and limits need no
 * comparison, because `authorise` applies the same rules to both.
 *
 * @param resolve Resolves the paths of both. Default: paths are compared as written.
 */
export function exceedsParent(
  child: Pick<Grants, "permissions">,
  parent: Pick<Grants, "permissions">,
  resolve?: Resolve,
): ErrorDetail[] {
  const most = grantedAnywhere(parent);
  const paths = resolve ? { asked: resolve, max: resolve } : {};
  return Object.entries(child.permissions).flatMap(([path, permissions]) =>
    excessPermissions(permissions, most, paths).map(({ permission, entry }) => {
      const label = entry === true ? `all of ${permission}` : `${permission} ${describe(entry)}`;
      return {
        path: `${path}.permissions.${permission}`,
        message: `Cannot grant ${label} to a sub-agent: no module of the parent plan has it`,
        hint: "grant it to a module of the plan too, or leave it out",
      };
    })
  );
}

/**
 * Authorises a sub-agent's plan, like any plan of its origin and within its parent's grants.
 *
 * @throws {PreampError} as `authorise`; `policy_refused` for a grant that the parent does not have.
 */
export function authoriseWithin(
  compiled: CompiledPlan,
  options: AuthoriseOptions,
  parent: Pick<Grants, "permissions">,
): Grants {
  const grants = authorise(compiled, options);
  const details = exceedsParent(grants, parent, options.paths?.asked);
  const [first] = details;
  if (!first) return grants;
  const message = details.length === 1
    ? first.message
    : `Cannot run this sub-agent: ${details.length} reasons, the first: ${first.path}: ${first.message}`;
  throw new PreampError("policy_refused", message, { details });
}
