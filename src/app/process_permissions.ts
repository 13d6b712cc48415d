/**
 * What this process has of a permission, as Deno tells it: the last part of plan ∩ policy ∩ process (trust.md). Deno is asked
 * for one thing at a time, and what it cannot be asked for is not held: a wildcard host or a network without all of `net`, or,
 * where `--deny-…` takes something away, whatever may hold a piece of that. What it does not tell is that `--deny-net=host:port`
 * or `--deny-env` takes a piece out of a host or a pattern that a list of `--allow-…` gives.
 */
import type { PermissionName } from "../plan/check/check_permissions.ts";
import { type Entry, entryText } from "../plan/permissions/permission_entry.ts";

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

/** Returns true when this process has an entry, or all of a permission, whole. */
export function grantedToProcess(permission: PermissionName, entry: Entry | "all"): boolean {
  const all = stateOf({ name: permission });
  if (all === "whole") return true;
  if (entry === "all") return false;
  return wordsFor(entry, all === "part").every((word) =>
    stateOf({ name: permission, [FIELD[permission]]: word }) === "whole"
  );
}

/** What Deno must say yes to, each of it, for an entry to be held. */
function wordsFor(entry: Entry, denied: boolean): string[] {
  const text = entryText(entry);
  switch (entry.kind) {
    case "net": {
      const { host, port } = entry;
      const one = host.kind === "name" || host.kind === "network" && host.bits === 8 * host.bytes.length;
      return one && (port !== undefined || !denied) ? [text] : CANNOT_ASK;
    }
    case "variable":
      if (!entry.prefix) return [text];
      // asked as names: a pattern that holds both holds all that begins so, unless one name and one pattern are just these
      return entry.name !== "" && !denied ? [entry.name, text] : CANNOT_ASK;
    default:
      return [text];
  }
}

/** No descriptor has an empty word. */
const CANNOT_ASK: string[] = [""];

/** `part`: all of it but what is denied. */
function stateOf(descriptor: { name: string; [field: string]: string }): "whole" | "part" | "none" {
  if (Object.values(descriptor).includes("")) return "none";
  try {
    // each name with its own field, as the table has them
    const status = Deno.permissions.querySync(descriptor as unknown as Deno.PermissionDescriptor);
    if (status.state !== "granted") return "none";
    return status.partial ? "part" : "whole";
  } catch {
    return "none"; // Deno has no word for it
  }
}
