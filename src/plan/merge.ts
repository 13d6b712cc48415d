/**
 * Merges plans: a plan over a plan, or an agent's overlay over its parent. Pure: neither side is changed, and
 * the result shares nothing with them.
 *
 * | value | rule |
 * |---|---|
 * | text, numbers, booleans, null | the child's |
 * | objects | field by field |
 * | lists | the child's; union for {@link UNION_KEYS} and `denied_*`; `key+` appends to the parent's `key` |
 * | `providers`, `tools`, `hooks` | by `instance_id` (or `id`), else `module`; the parent's order, new ones last |
 * | `session.orchestrator`, `session.context` | the same module: field by field; another one replaces it whole |
 * | `system` | the child's, whole |
 * | `agents` | `"all"`, `"none"` or a list of names keeps those of the parent; an object: field by field |
 *
 * A merge never loses anything that the parent denies.
 */
import { FORBIDDEN_KEYS } from "./parse/document_limits.ts";
import { keyOf } from "./source/source.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";

/** Lists of permissions and search paths, which merge by union (as in upstream's merge_tool_configs). */
const UNION_KEYS: ReadonlySet<string> = new Set([
  "allowed_write_paths",
  "allowed_read_paths",
  "denied_write_paths",
  "denied_read_paths",
  "search_paths",
]);

const LIST_SECTIONS: ReadonlySet<string> = new Set(["providers", "tools", "hooks"]);

/** Returns `child` merged over `parent`. Both are plan data, whole or partial, as parsed. */
export function mergePlans(parent: JsonObject, child: JsonObject): JsonObject {
  return mergeFields(parent, child, mergeSection);
}

/** Returns plans merged from left to right, each over the ones before it. A single plan is copied. */
export function mergeAll(plans: readonly JsonObject[]): JsonObject {
  const [first = {}, ...rest] = plans;
  return rest.reduce((merged, plan) => mergePlans(merged, plan), copyOf(first) as JsonObject);
}

/**
 * Returns the parent's agents that an overlay's `agents` keeps: `"all"` or undefined, `"none"`, or a list
 * of names.
 */
export function filterAgents(agents: JsonObject, filter: unknown): JsonObject {
  if (filter === "none") return {};
  if (!Array.isArray(filter)) return copyOf(agents) as JsonObject;
  const names = new Set(filter);
  return copyOf(Object.fromEntries(Object.entries(agents).filter(([name]) => names.has(name)))) as JsonObject;
}

type MergeValue = (key: string, parent: unknown, child: unknown) => unknown;

/** Merges field by field; `key+` of the child is applied after its `key`. */
function mergeFields(parent: JsonObject, child: JsonObject, mergeValue: MergeValue): JsonObject {
  const merged: JsonObject = {};
  for (const key of Object.keys(parent)) if (!FORBIDDEN_KEYS.has(key)) merged[key] = copyOf(parent[key]);
  const keys = Object.keys(child);
  for (const key of keys) {
    if (!FORBIDDEN_KEYS.has(key) && !isAppend(key)) merged[key] = mergeValue(key, parent[key], child[key]);
  }
  for (const key of keys) {
    const plain = key.slice(0, -1);
    if (isAppend(key) && !FORBIDDEN_KEYS.has(plain)) {
      merged[plain] = append(plain, merged[plain], child[key], mergeValue);
    }
  }
  return merged;
}

function isAppend(key: string): boolean {
  return key.length > 1 && key.endsWith("+");
}

function append(key: string, parent: unknown, child: unknown, mergeValue: MergeValue): unknown {
  const keyed = LIST_SECTIONS.has(key) && mergeValue === mergeSection;
  if (keyed || !Array.isArray(parent) || isUnion(key)) return mergeValue(key, parent, child);
  return [...parent, ...Array.isArray(child) ? child : [child]].map(copyOf);
}

/** Merges a top-level section of a plan. */
function mergeSection(key: string, parent: unknown, child: unknown): unknown {
  if (LIST_SECTIONS.has(key)) return mergeModules(parent, child);
  if (key === "system") return normal(child);
  if (key === "session" && isObject(parent) && isObject(child)) return mergeSession(parent, child);
  if (key === "agents" && isObject(parent) && !isObject(child)) return filterAgents(parent, child);
  if (key === "agents" && isObject(parent) && isObject(child)) return mergeFields(parent, child, mergeAgent);
  return mergeAny(key, parent, child);
}

/** Merges a field of an agent's overlay, which is a partial plan. */
function mergeAgent(key: string, parent: unknown, child: unknown): unknown {
  return isObject(parent) && isObject(child) ? mergePlans(parent, child) : mergeAny(key, parent, child);
}

function mergeSession(parent: JsonObject, child: JsonObject): JsonObject {
  const merged = mergeFields(parent, child, (key, before, after) => {
    return key === "orchestrator" || key === "context"
      ? mergeSlot(before, after)
      : mergeAny(key, before, after);
  });
  for (const slot of ["orchestrator", "context"]) {
    // a source belongs to its module
    const changed = Object.hasOwn(child, slot) && moduleOf(child[slot]) !== moduleOf(parent[slot]);
    if (changed && !Object.hasOwn(child, `${slot}_source`)) delete merged[`${slot}_source`];
  }
  return merged;
}

function mergeSlot(parent: unknown, child: unknown): unknown {
  if (typeof child === "string" && moduleOf(parent) === child) return copyOf(parent);
  return isObject(child) || isObject(parent) ? mergeSpec(parent, child) : normal(child);
}

/**
 * Merges one spec over another. Another module replaces source, pin and grants; the parent's denials
 * remain.
 */
function mergeSpec(parent: unknown, child: unknown): unknown {
  if (parent === undefined) return normal(child);
  const before = typeof parent === "string" ? { module: parent } : parent;
  const after = typeof child === "string" ? { module: child } : child;
  if (!isObject(before)) return normal(child);
  if (!isObject(after)) return before === parent ? copyOf(parent) : before;
  const same = after.module === undefined || moduleOf(after) === moduleOf(before);
  if (same) return mergeFields(before, after, mergeAny);
  return mergeFields(denialsOf(before) ?? {}, after, mergeAny);
}

/**
 * Merges lists of modules by key, in the parent's order. Entries that are not modules remain, for the
 * checker to report.
 */
function mergeModules(parent: unknown, child: unknown): unknown {
  if (!Array.isArray(parent)) return Array.isArray(child) ? child.map(normal) : normal(child);
  if (!Array.isArray(child)) return copyOf(parent);
  const merged = parent.map(copyOf);
  const free = Map.groupBy(parent.keys(), (index) => keyOf(parent[index]));
  for (const item of child) {
    const key = keyOf(item);
    const index = key === undefined ? undefined : free.get(key)?.shift();
    if (index === undefined) merged.push(normal(item));
    else if (typeof item !== "string" || keyOf(parent[index]) !== item) {
      merged[index] = mergeSpec(parent[index], item);
    }
  }
  return merged;
}

function moduleOf(spec: unknown): unknown {
  return isObject(spec) ? spec.module : spec;
}

/** Merges any value below the sections. */
function mergeAny(key: string, parent: unknown, child: unknown): unknown {
  if (isUnion(key) && Array.isArray(parent)) return union(parent, child);
  if (isObject(parent) && isObject(child)) return mergeFields(parent, child, mergeAny);
  const kept = denialsOf(parent);
  if (kept === undefined) return normal(child);
  return isObject(child) ? mergeFields(kept, child, mergeAny) : kept;
}

function isUnion(key: string): boolean {
  return UNION_KEYS.has(key) || key.startsWith("denied_");
}

function union(parent: readonly unknown[], child: unknown): unknown[] {
  const merged = parent.map(copyOf);
  const seen = new Set(parent.map((item) => JSON.stringify(item)));
  for (const item of Array.isArray(child) ? child : []) {
    const text = JSON.stringify(item);
    if (!seen.has(text)) merged.push(copyOf(item));
    seen.add(text);
  }
  return merged;
}

/** Returns only the `denied_*` lists of a value, at any depth; undefined if it has no such list. */
function denialsOf(value: unknown): JsonObject | undefined {
  if (!isObject(value)) return undefined;
  const kept: JsonObject = {};
  for (const key of Object.keys(value)) {
    if (FORBIDDEN_KEYS.has(key)) continue;
    const item = value[key];
    const denials = key.startsWith("denied_") && Array.isArray(item) ? copyOf(item) : denialsOf(item);
    if (denials !== undefined) kept[key] = denials;
  }
  return Object.keys(kept).length > 0 ? kept : undefined;
}

/** Returns a copy of a value that has no parent: `key+` becomes `key`. */
function normal(value: unknown): unknown {
  return isObject(value) ? mergeFields({}, value, (_, __, child) => normal(child)) : copyOf(value);
}

function copyOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copyOf);
  if (!isObject(value)) return value;
  const copy: JsonObject = {};
  for (const key of Object.keys(value)) if (!FORBIDDEN_KEYS.has(key)) copy[key] = copyOf(value[key]);
  return copy;
}
