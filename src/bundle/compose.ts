/**
 * Composes bundles: later over earlier. Not the rules of {@link ../plan/merge.ts}: lists are joined without
 * duplicates, and cannot be replaced. Pure.
 *
 * | part | rule |
 * |---|---|
 * | `session`, `spawn`, other maps | by key; scalars the later's, lists joined |
 * | `session.orchestrator`, `session.context` | the same module: by key; another one replaces it whole |
 * | `providers`, `tools`, `hooks` | by `id`, else `module`: maps by key; new ones last |
 * | `agents` | by name: the later's, whole |
 * | `context` | joined; the place of the first, the file of the last |
 * | instruction, description, name | the later's, if it has one |
 */
import { FORBIDDEN_KEYS } from "../plan/parse/document_limits.ts";
import { keyOf } from "../plan/source/source.ts";
import { isObject, jsonEqual, type JsonObject } from "../sdk/json.ts";
import { describe } from "../sdk/value_path.ts";
import type { Place } from "./places.ts";

/** Where a part was written: the file, and the files that include it, innermost first. */
export interface Origin {
  readonly file: string;
  readonly chain: readonly string[];
}

/** A module entry, and the files that it was composed of. */
export interface Entry {
  readonly spec: JsonObject;
  readonly from: readonly Origin[];
}

/** An agent by its file, or as it is written in a bundle. */
export interface AgentSource {
  /** Name in `agents.include`; absent: there is no file. */
  readonly reference?: string;
  readonly inline: JsonObject;
  /** The bundle that names it. */
  readonly place: Place;
  readonly origin: Origin;
}

/** A text of `context`. */
export interface ContextSource {
  readonly reference: string;
  readonly place: Place;
  readonly origin: Origin;
}

/** Sections with lists of modules. */
export const LISTS = ["providers", "tools", "hooks"] as const;

/** A bundle with all that it includes. */
export interface Composed {
  readonly name?: string;
  readonly description?: string;
  /** File of the last bundle; base of names without a namespace. */
  readonly place: Place;
  readonly session: JsonObject;
  readonly session_from: Readonly<Record<string, readonly Origin[]>>;
  readonly modules: Readonly<Record<typeof LISTS[number], readonly Entry[]>>;
  readonly agents: ReadonlyMap<string, AgentSource>;
  readonly context: ReadonlyMap<string, ContextSource>;
  readonly instruction?: { readonly text: string; readonly place: Place; readonly origin: Origin };
  /** Further keys of a plan, such as `limits`. */
  readonly rest: JsonObject;
}

/** Receives what an author may not expect. */
export type NoteOverride = (message: string) => void;

/** Returns `later` over `earlier`. */
export function composeBundles(earlier: Composed, later: Composed, note: NoteOverride): Composed {
  const merged = (section: typeof LISTS[number]) =>
    mergeEntries(section, earlier.modules[section], later.modules[section], note);
  const modules = { providers: merged("providers"), tools: merged("tools"), hooks: merged("hooks") };
  return {
    ...earlier,
    ...(later.name === undefined ? {} : { name: later.name }),
    ...(later.description === undefined ? {} : { description: later.description }),
    ...(later.instruction === undefined ? {} : { instruction: later.instruction }),
    place: later.place,
    session: mergeSessions(earlier, later, note),
    session_from: mergeOrigins(earlier.session_from, later.session_from),
    modules,
    agents: new Map([...earlier.agents, ...later.agents]),
    context: new Map([...earlier.context, ...later.context]),
    rest: mergeMaps(earlier.rest, later.rest),
  };
}

function mergeEntries(
  section: string,
  earlier: readonly Entry[],
  later: readonly Entry[],
  note: NoteOverride,
): Entry[] {
  const merged = new Map(earlier.map((entry) => [keyOf(entry.spec), entry]));
  for (const entry of later) {
    const key = keyOf(entry.spec);
    const before = merged.get(key);
    const onOverride = undoes(before?.from ?? [], entry.from)
      ? noteOf(`${section}: ${key}`, before!.from, entry.from, note)
      : undefined;
    merged.set(
      key,
      before
        ? {
          spec: mergeMaps(before.spec, entry.spec, onOverride),
          from: joinOrigins(before.from, entry.from),
        }
        : entry,
    );
  }
  return [...merged.values()];
}

/** Returns origins in the order in which they came last: each file once, however often it is included. */
function joinOrigins(before: readonly Origin[], after: readonly Origin[]): Origin[] {
  const files = new Set(after.map(({ file }) => file));
  return [...before.filter(({ file }) => !files.has(file)), ...after];
}

/** Returns whether a file comes again, after another one has changed what it says. */
function undoes(before: readonly Origin[], after: readonly Origin[]): boolean {
  return before.length > 1 && after.some(({ file }) => before.some((origin) => origin.file === file));
}

function noteOf(
  what: string,
  before: readonly Origin[],
  after: readonly Origin[],
  note: NoteOverride,
): OnOverride {
  const [from, to] = [before.at(-1)?.file, after.at(-1)?.file];
  return (path, old, now) =>
    note(
      `${what}: ${path.join(".")} is ${describe(now)} of ${to} again, not ${
        describe(old)
      } of ${from}: ${to} is included twice, and its second place is the later one`,
    );
}

const SLOTS = ["orchestrator", "context"] as const;

function mergeSessions(earlier: Composed, later: Composed, note: NoteOverride): JsonObject {
  const merged = mergeMaps(earlier.session, later.session);
  for (const slot of SLOTS) {
    const [before, after] = [earlier.session[slot], later.session[slot]];
    if (after === undefined || before === undefined) continue;
    const from = earlier.session_from[slot] ?? [];
    const to = later.session_from[slot] ?? [];
    if (isObject(before) && isObject(after) && (after.module ?? before.module) === before.module) {
      const onOverride = undoes(from, to) ? noteOf(`session.${slot}`, from, to, note) : undefined;
      merged[slot] = mergeMaps(before, after, onOverride);
      continue;
    }
    const [old, now] = [keyOf(before), keyOf(after)];
    merged[slot] = old === now && !isObject(after) ? before : after;
    if (old !== now) {
      note(
        `session.${slot}: ${now} of ${to.at(-1)?.file} replaces ${old} of ${
          from.at(-1)?.file
        }, with its config`,
      );
    }
  }
  return merged;
}

function mergeOrigins(earlier: Composed["session_from"], later: Composed["session_from"]) {
  const merged: Record<string, readonly Origin[]> = { ...earlier };
  for (const [key, origins] of Object.entries(later)) merged[key] = joinOrigins(merged[key] ?? [], origins);
  return merged;
}

type OnOverride = (path: readonly string[], before: unknown, after: unknown) => void;

/** Returns `later` over `earlier`: maps by key, lists joined without duplicates, other values the later's. */
export function mergeMaps(
  earlier: JsonObject,
  later: JsonObject,
  onOverride?: OnOverride,
  path: readonly string[] = [],
): JsonObject {
  const merged: JsonObject = { ...earlier };
  for (const [key, after] of Object.entries(later)) {
    if (FORBIDDEN_KEYS.has(key)) continue;
    const before = merged[key];
    if (isObject(before) && isObject(after)) {
      merged[key] = mergeMaps(before, after, onOverride, [...path, key]);
    } else if (Array.isArray(before) && Array.isArray(after)) merged[key] = joined(before, after);
    else {
      if (before !== undefined && !jsonEqual(before, after)) onOverride?.([...path, key], before, after);
      merged[key] = after;
    }
  }
  return merged;
}

function joined(before: readonly unknown[], after: readonly unknown[]): unknown[] {
  const known = new Set(before.map((item) => JSON.stringify(item)));
  const result = [...before];
  for (const item of after) {
    const text = JSON.stringify(item);
    if (!known.has(text)) result.push(item);
    known.add(text);
  }
  return result;
}
