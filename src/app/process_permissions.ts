/**
 * Intersects a permission entry with the permissions of this process, using `Deno.permissions.query`.
 * Entries that cannot be queried exactly count as not granted: a wildcard host or a network without all of
 * `net`, and with a `--deny-…` flag any entry that may include a denied part. Limitation:
 * `--deny-net=host:port` and `--deny-env` inside an allowed range are not detected.
 */
import type { PermissionName } from "../plan/check/check_permissions.ts";
import { type Entry, entryText } from "../plan/permissions/permission_entry.ts";

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

/** Returns true if this process has an entry, or all of a permission, entirely. */
export function grantedToProcess(permission: PermissionName, entry: Entry | "all"): boolean {
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
      const single = host.kind === "name" || host.kind === "network" && host.bits === 8 * host.bytes.length;
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
