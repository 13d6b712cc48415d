/** What a module spec as written is known by within its list. */
import { isObject } from "../../sdk/json.ts";

/**
 * Returns the key that specs are merged by: `instance_id` (or `id`), else `module`; undefined if it is not
 * a spec.
 */
export function keyOf(spec: unknown): string | undefined {
  if (typeof spec === "string") return spec;
  if (!isObject(spec)) return undefined;
  const key = spec.instance_id ?? spec.id ?? spec.module;
  return typeof key === "string" ? key : undefined;
}

/** Returns true if a list of names includes this spec, by its key or by its module. */
export function isListed(spec: unknown, names: ReadonlySet<string>): boolean {
  const key = keyOf(spec);
  if (key === undefined) return false;
  return names.has(key) || (isObject(spec) && typeof spec.module === "string" && names.has(spec.module));
}
