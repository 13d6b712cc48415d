/**
 * Checks whether the plan grants this module write access to a file. A built-in module runs inline, without a sandbox, so it
 * enforces the permissions of its own plan entry (src/docs/security.md#permissions).
 */
import {
  baseName,
  type Coordinator,
  isAbsolutePath,
  isObject,
  isWithinFolder,
  normalizePath,
  parentFolder,
} from "preamp/base";

/**
 * Resolves to whether the plan lets `module_id`, configured with `path`, write to `file`; both paths are absolute. An entry of
 * the plan's hooks with this id and path must have `permissions.write: true`, or list the file or a folder that contains it.
 * Symbolic links are resolved first, so that a link cannot lead out of a granted folder.
 */
export async function mayWrite(
  coordinator: Coordinator,
  module_id: string,
  path: string,
  file: string,
): Promise<boolean> {
  const hooks = Array.isArray(coordinator.config.hooks) ? coordinator.config.hooks : [];
  for (const spec of hooks) {
    if (!isObject(spec) || spec.module !== module_id || !isObject(spec.permissions)) continue;
    if (!mayBeSamePath(isObject(spec.config) ? spec.config.path : undefined, path)) continue;
    const { write } = spec.permissions;
    if (write === true) return true;
    if (!Array.isArray(write)) continue;
    for (const granted of write) {
      // A relative path is relative to the plan's location, which is unknown here.
      if (typeof granted !== "string" || !isAbsolutePath(granted)) continue;
      if (isWithinFolder(await realPath(granted), await realPath(file))) return true;
    }
  }
  return false;
}

/** Returns whether a path as written in the plan may be `path`; one with a variable may. */
function mayBeSamePath(written: unknown, path: string): boolean {
  return written === path || (typeof written === "string" && written.includes("${"));
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
