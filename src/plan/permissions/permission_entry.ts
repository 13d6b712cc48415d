/**
 * Parses entries of Deno permissions and computes the intersection of two. Used for the policy's
 * permissions, sub-agents, `diff` and the flags of a process.
 */
import type { PermissionName } from "../check/check_permissions.ts";
import { type FilePath, meetPaths, parsePath, pathText } from "./file_path.ts";
import { meetNet, type NetEntry, netText, parseNetEntry } from "./net_entry.ts";

/** A parsed entry. */
export type Entry = NetEntry | FilePath | VariableEntry | WordEntry;

/** A variable, or every variable whose name has this prefix. */
export interface VariableEntry {
  kind: "variable";
  name: string;
  /** Whether the entry ended in `*`. Elsewhere `*` is a plain character, to Deno too. */
  prefix: boolean;
}

/** An entry that equals only itself: a program, a kind of system information. */
export interface WordEntry {
  kind: "word";
  word: string;
}

/** Parses an entry; undefined if Deno does not accept it. */
export function parseEntry(permission: PermissionName, text: string): Entry | undefined {
  if (text === "") return undefined;
  switch (permission) {
    case "net":
    case "import": {
      const entry = parseNetEntry(text);
      return "must" in entry ? undefined : entry;
    }
    case "read":
    case "write":
    case "ffi":
      return parsePath(text);
    case "env": {
      const prefix = text.endsWith("*");
      return { kind: "variable", name: prefix ? text.slice(0, -1) : text, prefix };
    }
    default:
      return { kind: "word", word: text };
  }
}

/** Returns the intersection of two entries of one permission, or undefined if it is empty. */
export function meet(one: Entry, other: Entry): Entry | undefined {
  if (one.kind === "net" && other.kind === "net") return meetNet(one, other);
  if (one.kind === "path" && other.kind === "path") return meetPaths(one, other);
  if (one.kind === "variable" && other.kind === "variable") return meetVariables(one, other);
  return one.kind === "word" && other.kind === "word" && one.word === other.word ? one : undefined;
}

/** Returns true if `broad` includes all of `narrow`. */
export function holdsEntry(broad: Entry, narrow: Entry): boolean {
  const both = meet(broad, narrow);
  return both !== undefined && entryText(both) === entryText(narrow);
}

function meetVariables(one: VariableEntry, other: VariableEntry): VariableEntry | undefined {
  if (one.prefix && other.name.startsWith(one.name)) return other;
  if (other.prefix && one.name.startsWith(other.name)) return one;
  return !one.prefix && !other.prefix && one.name === other.name ? one : undefined;
}

/** Returns an entry as text for Deno. Entries with the same meaning have the same text. */
export function entryText(entry: Entry): string {
  switch (entry.kind) {
    case "net":
      return netText(entry);
    case "path":
      return pathText(entry);
    case "variable":
      return `${entry.name}${entry.prefix ? "*" : ""}`;
    case "word":
      return entry.word;
  }
}
