/**
 * One entry of a Deno permission: parses it, and computes the intersection of two. Entries that cannot be
 * compared count as not covered, so that a wider grant is never taken for an equal one.
 */
import type { PermissionKind } from "../../sdk/plan.ts";
import { meetNet, type NetEntry, netText, parseNetEntry } from "./net_entry.ts";

/** A parsed entry. */
export type Entry = NetEntry | FilePath | VariableEntry | WordEntry;

/** A variable, or every variable whose name has this prefix. */
interface VariableEntry {
  kind: "variable";
  name: string;
  /** Whether the entry ended in `*`. Elsewhere `*` is a plain character, to Deno too. */
  prefix: boolean;
}

/** An entry that equals only itself: a program, a kind of system information. */
interface WordEntry {
  kind: "word";
  word: string;
}

/** Parses an entry; undefined if Deno does not accept it. */
export function parseEntry(permission: PermissionKind, text: string): Entry | undefined {
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

/** A normalised path. A relative one may begin with `..` steps, and has none elsewhere. */
export interface FilePath {
  kind: "path";
  absolute: boolean;
  steps: readonly string[];
}

/** Returns a normalised path; undefined for text that is not a path, and for Windows paths. */
export function parsePath(text: string): FilePath | undefined {
  if (text === "" || text.includes("\0") || text.includes("\\") || /^[a-z]:/i.test(text)) return undefined;
  return normalPath(text.startsWith("/"), text.split("/"));
}

function normalPath(absolute: boolean, parts: readonly string[]): FilePath {
  const steps: string[] = [];
  for (const part of parts) {
    if (part === "" || part === ".") continue;
    if (part !== "..") steps.push(part);
    else if (steps.length > 0 && steps.at(-1) !== "..") steps.pop();
    else if (!absolute) steps.push(part); // the parent of the root is the root
  }
  return { kind: "path", absolute, steps };
}

/** Resolves a path against a folder. */
export function pathFrom(folder: FilePath, path: FilePath): FilePath {
  return path.absolute ? path : normalPath(folder.absolute, [...folder.steps, ...path.steps]);
}

/** Returns the deeper of two paths if the other contains it, else undefined. */
function meetPaths(a: FilePath, b: FilePath): FilePath | undefined {
  if (isAbove(a, b)) return b;
  return isAbove(b, a) ? a : undefined;
}

/**
 * Returns true if `above` contains `below`. A relative path contains only paths that descend from it: `..`
 * is not below `.`.
 */
function isAbove(above: FilePath, below: FilePath): boolean {
  return above.absolute === below.absolute && above.steps.every((step, at) => step === below.steps[at]) &&
    below.steps[above.steps.length] !== "..";
}

export function pathText({ absolute, steps }: FilePath): string {
  return absolute ? `/${steps.join("/")}` : steps.length === 0 ? "." : steps.join("/");
}

/**
 * Returns true if `broad` includes `narrow`. Paths are compared as written; invalid entries include only
 * themselves.
 */
export function covers(permission: PermissionKind, broad: string, narrow: string): boolean {
  if (broad === narrow) return true;
  const [above, below] = [parseEntry(permission, broad), parseEntry(permission, narrow)];
  return above !== undefined && below !== undefined && holdsEntry(above, below);
}
