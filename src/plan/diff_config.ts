/**
 * A module's config in two plans. What a config means is the module's; known here are the names that every plan gives a
 * meaning to (`allowed_*`, `denied_*`: merge.ts) and the rules of `hooks-approval`, which are a part of what a plan may do.
 */
import { isObject, jsonEqual, type JsonObject } from "../sdk/json.ts";
import type { ModuleSpec } from "../sdk/plan.ts";
import type { DiffReport } from "./diff_report.ts";
import { formatPath, type Path } from "./value_path.ts";

/** Reports how the config of a module differs. */
export function diffConfig(old: ModuleSpec, spec: ModuleSpec, report: DiffReport): void {
  if (spec.module === "hooks-approval") diffApproval(old.config, spec.config, spec, report);
  else diffFields(old.config, spec.config, [], spec, report);
}

function diffFields(
  from: JsonObject,
  to: JsonObject,
  path: Path,
  spec: ModuleSpec,
  report: DiffReport,
): void {
  for (const key of new Set([...Object.keys(from), ...Object.keys(to)])) {
    const [before, after] = [from[key], to[key]];
    if (jsonEqual(before ?? null, after ?? null)) continue;
    const at = [...path, key];
    if (isPathList(key)) diffList(key, before, after, at, spec, report);
    else if ((isObject(before) || before === undefined) && (isObject(after) || after === undefined)) {
      diffFields(isObject(before) ? before : {}, isObject(after) ? after : {}, at, spec, report);
    } else {report.add(
        "other",
        placeOf(spec, at),
        before,
        after,
        `The config of "${spec.module}" changed`,
        key,
      );}
  }
}

function isPathList(key: string): boolean {
  return key.startsWith("allowed_") || key.startsWith("denied_");
}

/**
 * Compares an `allowed_*` or `denied_*` list. Adding or removing a whole `allowed_*` counts as widening,
 * because the default is unknown.
 */
function diffList(
  key: string,
  from: unknown,
  to: unknown,
  path: Path,
  spec: ModuleSpec,
  report: DiffReport,
): void {
  const [before, after] = [listOf(from), listOf(to)];
  const place = placeOf(spec, path);
  const allows = key.startsWith("allowed_");
  const whole = !before || !after;
  const gained = hasBeyond(after, before);
  const lost = hasBeyond(before, after);
  if (whole ? allows || !after : allows ? gained : lost) {
    report.add("widens", place, from, to, `"${spec.module}" may be allowed more through ${key}`);
  }
  if (whole ? !allows && after : allows ? lost : gained) {
    report.add("narrows", place, from, to, `"${spec.module}" is allowed less through ${key}`);
  }
}

function hasBeyond(list: readonly unknown[] = [], other: readonly unknown[] = []): boolean {
  return list.some((item) => !other.some((candidate) => jsonEqual(candidate, item)));
}

function listOf(value: unknown): readonly unknown[] | undefined {
  return Array.isArray(value) ? value : undefined;
}

const STRICTNESS: Readonly<Record<string, number>> = { allow: 0, ask: 1, deny: 2 };

/**
 * Compares approval rules, of which the first match decides. Provably no looser are: the same rules in the
 * same order, actions as strict or stricter, additional `deny` rules, and at the end any additional rule
 * but `allow`. A rule with `argv` must be unchanged, because its action decides what it matches. Any other
 * change counts as widening.
 */
function diffApproval(from: JsonObject, to: JsonObject, spec: ModuleSpec, report: DiffReport): void {
  const { rules: before, ...rest } = from;
  const { rules: after, ...restAfter } = to;
  if (!jsonEqual(rest, restAfter)) {
    report.add("widens", placeOf(spec, []), rest, restAfter, `Settings of "${spec.module}" changed`);
  }
  if (jsonEqual(before ?? [], after ?? [])) return;
  const stricter = isStricter(listOf(before) ?? [], listOf(after) ?? []);
  const message = stricter
    ? "Approval rules are stricter"
    : "Approval rules may allow calls that needed approval or were denied";
  report.add(stricter ? "narrows" : "widens", placeOf(spec, ["rules"]), before, after, message);
}

function isStricter(from: readonly unknown[], to: readonly unknown[]): boolean {
  let next = 0;
  for (const rule of to) {
    if (!isObject(rule)) return false;
    if (next < from.length && isAsStrict(from[next], rule)) next++;
    else if (
      next === from.length ? strictness(rule.action) < 1 : rule.action !== "deny" || rule.argv !== undefined
    ) {
      return false;
    }
  }
  return next === from.length;
}

function isAsStrict(from: unknown, to: JsonObject): boolean {
  if (jsonEqual(from, to)) return true;
  if (!isObject(from) || to.argv !== undefined) return false;
  const { action: before, ...match } = from;
  const { action: after, ...matchAfter } = to;
  return jsonEqual(match, matchAfter) && strictness(after) >= strictness(before);
}

function strictness(action: unknown): number {
  return typeof action === "string" ? STRICTNESS[action] ?? -1 : -1;
}

function placeOf({ path }: ModuleSpec, at: Path): string {
  const rest = formatPath(["config", ...at]);
  return `${path}.${rest}`;
}
