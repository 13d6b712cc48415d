/**
 * One entry of a Deno permission as what it means, and the one rule by which two are compared: what both let through. A
 * policy's ceiling, a sub-agent, `diff` and the flags of a process all go by it.
 */
import type { PermissionName } from "../check/check_permissions.ts";
import { type FilePath, meetPaths, parsePath, pathText } from "./file_path.ts";
import { meetNet, type NetEntry, netText, parseNetEntry } from "./net_entry.ts";

/** What one entry lets through. */
export type Entry = NetEntry | FilePath | VariableEntry | WordEntry;

/** A variable, or every variable whose name begins so. */
export interface VariableEntry {
  kind: "variable";
  name: string;
  /** Whether it was written with a `*` at its end; elsewhere that is a letter like others, to Deno too. */
  prefix: boolean;
}

/** What is itself and nothing else: a program, a kind of system fact. */
export interface WordEntry {
  kind: "word";
  word: string;
}

/** Returns what an entry means, or undefined for what Deno does not take. */
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

/** Returns what both of two entries of one permission let through, or undefined when that is nothing. */
export function meet(one: Entry, other: Entry): Entry | undefined {
  if (one.kind === "net" && other.kind === "net") return meetNet(one, other);
  if (one.kind === "path" && other.kind === "path") return meetPaths(one, other);
  if (one.kind === "variable" && other.kind === "variable") return meetVariables(one, other);
  return one.kind === "word" && other.kind === "word" && one.word === other.word ? one : undefined;
}

/** Returns true when all that `narrow` lets through, `broad` does. */
export function holdsEntry(broad: Entry, narrow: Entry): boolean {
  const both = meet(broad, narrow);
  return both !== undefined && entryText(both) === entryText(narrow);
}

function meetVariables(one: VariableEntry, other: VariableEntry): VariableEntry | undefined {
  if (one.prefix && other.name.startsWith(one.name)) return other;
  if (other.prefix && one.name.startsWith(other.name)) return one;
  return !one.prefix && !other.prefix && one.name === other.name ? one : undefined;
}

/** Returns an entry as Deno takes it; entries that mean the same have the same text. */
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
