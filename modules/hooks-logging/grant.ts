/**
 * May this module write there? Built-in modules run inline, where no sandbox stops them: they hold themselves to the
 * permissions that their entry in the plan has (trust.md). The policy has checked that plan before the run began.
 */
import type { Coordinator, JsonObject } from "preamp";
import { basename, dirname, isAbsolute, isWithin, normalize } from "./paths.ts";

/**
 * Resolves to whether the plan lets `module_id`, configured with `path`, write to `file`, both absolute: an entry of the
 * plan's hooks with that id and path has `permissions.write: true`, or lists the file or a folder above it. Folders are
 * compared where they really are, so a symbolic link does not lead out.
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
    if (!couldBe(isObject(spec.config) ? spec.config.path : undefined, path)) continue;
    const { write } = spec.permissions;
    if (write === true) return true;
    if (!Array.isArray(write)) continue;
    for (const granted of write) {
      // A relative one is relative to the plan, which we cannot know the place of.
      if (typeof granted !== "string" || !isAbsolute(granted)) continue;
      if (isWithin(await realPath(granted), await realPath(file))) return true;
    }
  }
  return false;
}

/** The plan shows configs as written: one with a variable may be ours. */
function couldBe(written: unknown, path: string): boolean {
  return written === path || (typeof written === "string" && written.includes("${"));
}

/** Resolves to the path with the links of every part that exists followed. */
async function realPath(path: string): Promise<string> {
  const missing: string[] = [];
  for (let at = normalize(path);;) {
    try {
      return normalize([await Deno.realPath(at), ...missing].join("/"));
    } catch (error) {
      const parent = dirname(at);
      if (!(error instanceof Deno.errors.NotFound) || parent === at) throw error;
      missing.unshift(basename(at));
      at = parent;
    }
  }
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
