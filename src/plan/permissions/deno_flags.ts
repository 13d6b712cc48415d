/** Converts grants to the command-line flags of a Deno process. Pure. */
import type { Permissions } from "../../sdk/contracts.ts";
import { PERMISSION_NAMES } from "../check/check_permissions.ts";
import { covers, entriesOf, type GrantEntry } from "./grants.ts";

/** Returns the fewest flags that grant all of these blocks, entries sorted. */
export function denoFlags(blocks: readonly Permissions[]): string[] {
  const entries = blocks.flatMap((block) => entriesOf(block)).map(sayable);
  return PERMISSION_NAMES.flatMap((permission) => {
    const wanted = entries.filter((entry) => entry.permission === permission);
    if (wanted.length === 0) return [];
    if (wanted.some(({ entry }) => entry === true)) return [`--allow-${permission}`];
    return [`--allow-${permission}=${fewest(wanted).join(",")}`];
  });
}

function fewest(entries: readonly GrantEntry[]): string[] {
  const texts = [...new Set(entries.flatMap(({ entry }) => entry === true ? [] : [entry]))].sort();
  const { permission } = entries[0]!; // called for lists with entries only
  return texts.filter((text, index) =>
    !texts.some((other, at) =>
      at !== index && covers(permission, other, text) && (at < index || !covers(permission, text, other))
    )
  );
}

/**
 * Widens an entry with a comma, because flags separate entries by commas without escapes: a path becomes
 * its folder, any other entry everything.
 */
function sayable({ permission, entry }: GrantEntry): GrantEntry {
  if (entry === true || !entry.includes(",")) return { permission, entry };
  if (permission !== "read" && permission !== "write") return { permission, entry: true };
  const folder = entry.slice(0, entry.lastIndexOf("/", entry.indexOf(",")));
  return { permission, entry: folder === "" ? entry.startsWith("/") ? "/" : "." : folder };
}
