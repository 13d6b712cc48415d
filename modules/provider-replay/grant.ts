/**
 * The path of a recording, and whether the plan grants this module access to it. A built-in module runs inline,
 * without a sandbox, so it enforces the permissions of its own plan entry (src/docs/security.md#permissions).
 */
import {
  baseName,
  type Coordinator,
  isAbsolutePath,
  isObject,
  isWithinFolder,
  normalizePath,
  parentFolder,
  PreampError,
} from "preamp/base";

/** Returns the absolute path of a file; a relative one is relative to the working folder. */
export function absolutePath(path: string): string {
  return normalizePath(isAbsolutePath(path) ? path : `${Deno.cwd()}/${path}`);
}

/**
 * Checks that the plan grants a permission for a file: `true`, the file, or a folder that contains it.
 *
 * @throws {PreampError} `tool_permission_denied`
 */
export async function requireGrant(
  { config }: Pick<Coordinator, "config">,
  permissions: readonly ("read" | "write")[],
  record: string,
  verb: string,
): Promise<void> {
  const file = await realPath(absolutePath(record));
  for (const spec of Array.isArray(config.providers) ? config.providers : []) {
    if (!isObject(spec) || spec.module !== "provider-replay" || !isObject(spec.permissions)) continue;
    for (const permission of permissions) {
      const granted = spec.permissions[permission];
      if (granted === true) return;
      for (const entry of Array.isArray(granted) ? granted : []) {
        // a relative entry is relative to the plan's file, which is unknown here
        if (typeof entry !== "string" || !isAbsolutePath(entry)) continue;
        if (isWithinFolder(await realPath(entry), file)) return;
      }
    }
  }
  const wanted = permissions[0];
  throw new PreampError(
    "tool_permission_denied",
    `Cannot ${verb} ${JSON.stringify(record)}: the plan's entry of provider-replay must have permissions: ` +
      `{ ${wanted}: true }, or ${wanted} with the absolute path of its folder`,
  );
}

/** Resolves to the path with the links in its existing parts resolved. */
async function realPath(path: string): Promise<string> {
  const missing: string[] = [];
  for (let at = normalizePath(path);;) {
    try {
      return normalizePath([await Deno.realPath(at), ...missing].join("/"));
    } catch (error) {
      const parent = parentFolder(at);
      if (!(error instanceof Deno.errors.NotFound) || parent === at) throw error;
      missing.unshift(baseName(at));
      at = parent;
    }
  }
}
