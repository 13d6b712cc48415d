/** What this process has of a plan's grant, as Deno tells it: the last part of plan ∩ policy ∩ process (trust.md). */
import type { GrantEntry } from "../plan/grants.ts";

/** Field of a descriptor that an entry stands in. */
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
 * Returns a function that tells whether this process has an entry. What Deno cannot be asked about, such as a wildcard host,
 * counts as held only when all of its permission is.
 *
 * @param base_url The plan file: relative paths start there.
 */
export function heldByProcess(base_url: string | undefined): (entry: GrantEntry) => boolean {
  return ({ permission, entry }) => {
    if (isGranted({ name: permission })) return true;
    if (entry === true) return false;
    const value = permission === "read" || permission === "write" ? pathFrom(entry, base_url) : entry;
    return isGranted({ name: permission, [FIELD[permission]]: value });
  };
}

function isGranted(descriptor: { name: string }): boolean {
  try {
    // each name with its own field, as the table has them
    return Deno.permissions.querySync(descriptor as Deno.PermissionDescriptor).state === "granted";
  } catch {
    return false; // Deno has no word for it
  }
}

function pathFrom(path: string, base_url: string | undefined): string {
  if (!base_url?.startsWith("file:") || path.startsWith("/")) return path;
  const escaped = path.replaceAll("%", "%25").replaceAll("?", "%3F").replaceAll("#", "%23");
  return decodeURIComponent(new URL(escaped, base_url).pathname);
}
