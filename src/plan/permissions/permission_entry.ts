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
export function meet(a: Entry, b: Entry): Entry | undefined {
  if (a.kind === "net" && b.kind === "net") return meetNet(a, b);
  if (a.kind === "path" && b.kind === "path") return meetPaths(a, b);
  if (a.kind === "variable" && b.kind === "variable") return meetVariables(a, b);
  return a.kind === "word" && b.kind === "word" && a.word === b.word ? a : undefined;
}

/** Returns true if `broad` includes all of `narrow`. */
export function holdsEntry(broad: Entry, narrow: Entry): boolean {
  const both = meet(broad, narrow);
  return both !== undefined && entryText(both) === entryText(narrow);
}

function meetVariables(a: VariableEntry, b: VariableEntry): VariableEntry | undefined {
  if (a.prefix && b.name.startsWith(a.name)) return b;
  if (b.prefix && a.name.startsWith(b.name)) return a;
  return !a.prefix && !b.prefix && a.name === b.name ? a : undefined;
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
