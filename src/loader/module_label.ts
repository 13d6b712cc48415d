/** What messages call a module, and the one thing that every module must export. Pure. */
import { isInline } from "../plan/lock.ts";
import { PreampError } from "../sdk/errors.ts";
import { displayUrl } from "./display_url.ts";
import type { LoadContext, LoadSpec, ModuleGraph } from "./types.ts";

/** Returns `module "tool-x" (https://…)`. */
export function nameOf({ module, source }: LoadSpec, { base_url }: LoadContext): string {
  const from = source.kind === "url"
    ? displayUrl(source.url, base_url)
    : source.kind === "path"
    ? source.original
    : "";
  if (module === undefined) return from;
  return from === "" ? `module "${module}"` : `module "${module}" (${from})`;
}

/** Returns the error for a module that cannot be mounted: it was read, not run. */
export function withoutMount(
  { url, exports }: ModuleGraph,
  name: string,
  base_url: string | undefined,
): PreampError {
  const has = exports.length === 0 ? "it exports nothing" : `it exports ${exports.slice(0, 10).join(", ")}`;
  const message = `Cannot load ${name}: it must export mount(coordinator, config): ${has}`;
  const hint = "write: export async function mount(coordinator, config) { … }";
  const file = displayUrl(url, base_url);
  const path = isInline(url) ? "" : file;
  return new PreampError("module_invalid", message, {
    details: [{ path, file, line: 1, column: 1, message, hint }],
  });
}
