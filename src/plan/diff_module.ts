/**
 * Compares one module of two plans: its source, integrity, tier, permissions and config. Of a config it knows
 * only the keys that every plan gives a meaning to (`allowed_*`, `denied_*`) and the rules of
 * `hooks-approval`. Pure.
 */
import {
  askedOf,
  entryLabel,
  grantedBeyond,
  type GrantEntry,
  grantPath,
} from "./permissions/permission_block.ts";
import { formatPath, type Path } from "../sdk/value_path.ts";
import { isObject, jsonEqual, type JsonObject, type JsonValue, toPlain } from "../sdk/json.ts";
import type { Permissions } from "../sdk/contracts.ts";
import type { ModuleSpec, MountPlan, Source } from "../sdk/plan.ts";
import { hostText, isEndpoint } from "./endpoints.ts";

/** Reports how a module's source, pinned integrity and tier differ, and whether a run needs it. */
export function diffSpec(old: ModuleSpec, spec: ModuleSpec, report: DiffReport): void {
  diffSource(old, spec, report);
  diffIntegrity(old, spec, report);
  diffIsolation(old, spec, report);
  diffRequired(old, spec, report);
}

/** Maximum changed entries of a permission that are reported one by one, each with both lists. */
const MAX_ENTRIES = 20;

/** Reports how a module's grant differs from the one before; undefined: the module is new. */
export function diffGrants(
  before: Permissions | undefined,
  spec: ModuleSpec,
  to: MountPlan,
  report: DiffReport,
): void {
  const after = askedOf(spec, to);
  const path = grantPath(spec, to);
  const add = (kind: "widens" | "narrows", entries: readonly GrantEntry[], fact: string) => {
    for (const [permission, changed] of Map.groupBy(entries, (entry) => entry.permission)) {
      const labels = changed.length <= MAX_ENTRIES
        ? changed.map(entryLabel)
        : [`${changed.length} entries of ${permission}`];
      for (const label of labels) {
        const message = `"${spec.module}" ${fact} ${label}`;
        report.add(kind, `${path}.${permission}`, before?.[permission], after?.[permission], message);
      }
    }
  };
  add("widens", grantedBeyond(after, before), "is granted");
  add("narrows", grantedBeyond(before, after), "is no longer granted");
}

/** Returns a source as the plan writes it; null for a built-in module. */
export function sourceText(source: Source): string | null {
  return source.kind === "builtin" ? null : source.original;
}

function diffSource(
  { source: old }: ModuleSpec,
  { module, source, path }: ModuleSpec,
  report: DiffReport,
): void {
  const [before, after] = [urlOf(old), urlOf(source)];
  if (before === after) return;
  const kind = after === null ? "narrows" : "widens";
  const message = after === null
    ? `"${module}" is now the built-in module`
    : before === null
    ? `"${module}" is no longer the built-in module`
    : `"${module}" comes from another source`;
  report.add(kind, `${path}.source`, sourceText(old), sourceText(source), message);
}

function urlOf(source: Source): string | null {
  return source.kind === "builtin" ? null : source.kind === "url" ? source.url : source.path;
}

function diffIntegrity(old: ModuleSpec, { module, integrity, path }: ModuleSpec, report: DiffReport): void {
  if (old.integrity === integrity) return;
  const [kind, fact] = integrity === undefined
    ? ["widens", "is no longer pinned by the plan"] as const
    : old.integrity === undefined
    ? ["narrows", "is now pinned by the plan"] as const
    : ["widens", "has another integrity: its code changed"] as const;
  report.add(kind, `${path}.integrity`, old.integrity, integrity, `"${module}" ${fact}`);
}

/** Ranks of `required`. Undefined lies between: the module decides, and built-in gates are required. */
const INSISTENCE = { false: 0, undefined: 1, true: 2 } as const;

/** Compares `required`. A run that continues without a hook may do what the hook would have denied. */
function diffRequired(
  old: ModuleSpec,
  { module, required, path, type }: ModuleSpec,
  report: DiffReport,
): void {
  if (old.required === required) return;
  const step = INSISTENCE[`${required}`] - INSISTENCE[`${old.required}`];
  const kind = type !== "hook" ? "other" : step < 0 ? "widens" : "narrows";
  const message = required === true
    ? `a run fails when "${module}" cannot be mounted`
    : required === false
    ? `a run continues when "${module}" cannot be mounted`
    : `the module decides whether a run needs "${module}"`;
  report.add(kind, `${path}.required`, old.required, required, message);
}

/**
 * Compares `isolation`. Undefined means the policy's tier; a plan can only ask for a stricter one, so
 * undefined ranks with `inline`.
 */
function diffIsolation(old: ModuleSpec, { module, isolation, path }: ModuleSpec, report: DiffReport): void {
  if (old.isolation === isolation) return;
  const step = Number(isolation === "process") - Number(old.isolation === "process");
  const kind = step < 0 ? "widens" : step > 0 ? "narrows" : "other";
  const tier = isolation === undefined ? "the policy's tier" : `tier "${isolation}" at least`;
  report.add(kind, `${path}.isolation`, old.isolation, isolation, `"${module}" runs in ${tier}`);
}

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
    if (path.length === 0 && isEndpoint(spec, key) && hostText(before) !== hostText(after)) {
      const [host, old] = [hostText(after), hostText(before)];
      const message = `"${spec.module}" sends prompts to ${host}, no longer to ${old}`;
      report.add("widens", placeOf(spec, at), before, after, message, at);
    } else if (key.startsWith("allowed_") || key.startsWith("denied_")) {
      diffList(key, before, after, at, spec, report);
    } else if ((isObject(before) || before === undefined) && (isObject(after) || after === undefined)) {
      diffFields(before ?? {}, after ?? {}, at, spec, report);
    } else {
      const message = `The config of "${spec.module}" changed`;
      report.add("other", placeOf(spec, at), before, after, message, at);
    }
  }
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
 * that is as strict as the preset. A rule with `argv` or `input` must be unchanged, because its action
 * decides what it matches. Any other change counts as widening.
 */
function diffApproval(from: JsonObject, to: JsonObject, spec: ModuleSpec, report: DiffReport): void {
  const { rules: before, ...rest } = from;
  const { rules: after, ...restAfter } = to;
  if (!jsonEqual(rest, restAfter)) {
    report.add("widens", placeOf(spec, []), rest, restAfter, `Settings of "${spec.module}" changed`);
  }
  if (jsonEqual(before ?? [], after ?? [])) return;
  const stricter = isStricter(before, after, rest.preset);
  const message = stricter
    ? "Approval rules are stricter"
    : "Approval rules may allow calls that needed approval or were denied";
  report.add(stricter ? "narrows" : "widens", placeOf(spec, ["rules"]), before, after, message);
}

/** Returns whether a config of `hooks-approval` in place of another one may allow more. */
export function mayAllowMore(from: JsonObject, to: JsonObject): boolean {
  const { rules: before, preset = "ask-writes", ...rest } = from;
  const { rules: after, preset: preset_after = "ask-writes", ...rest_after } = to;
  const isKept = preset === preset_after || preset === "ask-writes"; // the others ask about more, or deny
  return !isKept || !jsonEqual(rest, rest_after) || !isStricter(before, after, preset);
}

function isStricter(before: unknown, after: unknown, preset_name: unknown): boolean {
  const [from, to] = [listOf(before) ?? [], listOf(after) ?? []];
  const preset = STRICTNESS[preset_name === "read-only" ? "deny" : "ask"]!;
  let next = 0;
  for (const rule of to) {
    if (!isObject(rule)) return false;
    if (next < from.length && isAsStrict(from[next], rule)) next++;
    else if (
      next === from.length
        ? strictness(rule.action) < preset
        : rule.action !== "deny" || dependsOnAction(rule)
    ) {
      return false;
    }
  }
  return next === from.length;
}

function dependsOnAction({ argv, input }: JsonObject): boolean {
  return argv !== undefined || input !== undefined;
}

function isAsStrict(from: unknown, to: JsonObject): boolean {
  if (jsonEqual(from, to)) return true;
  if (!isObject(from) || dependsOnAction(to)) return false;
  const { action: before, ...match } = from;
  const { action: after, ...matchAfter } = to;
  return jsonEqual(match, matchAfter) && strictness(after) >= strictness(before);
}

function strictness(action: unknown): number {
  return typeof action === "string" ? STRICTNESS[action] ?? -1 : -1;
}

function placeOf({ path }: ModuleSpec, at: Path): string {
  return `${path}.${formatPath(["config", ...at])}`;
}

export interface PlanChange {
  /** Path in the second plan; for something removed, in the first. */
  path: string;
  /** Value in the first plan; null if absent. */
  from: JsonValue;
  /** Value in the second plan; null if absent. */
  to: JsonValue;
  message: string;
}

/** Differences between two plans. */
export interface PlanDiff {
  /** Changes that allow more, or that are not known to be harmless. */
  widens: PlanChange[];
  /** Changes that allow less. */
  narrows: PlanChange[];
  /** Changes that do neither. */
  other: PlanChange[];
}

/** Redacts a value for display. `at` is its place in the config of a module, or empty. */
export type Redact = (at: Path, value: unknown) => unknown;

/** Collects changes. */
export class DiffReport {
  readonly diff: PlanDiff = { widens: [], narrows: [], other: [] };
  readonly #redact: Redact;

  constructor(redact: Redact) {
    this.#redact = redact;
  }

  /** Adds a change. */
  add(
    kind: keyof PlanDiff,
    path: string,
    from: unknown,
    to: unknown,
    message: string,
    at: Path = [],
  ): void {
    const display = (value: unknown) => toPlain(this.#redact(at, value ?? null));
    this.diff[kind].push({ path, from: display(from), to: display(to), message });
  }

  /** Adds a change if the two values differ. */
  change(kind: keyof PlanDiff, path: string, from: unknown, to: unknown, message: string): void {
    if (!jsonEqual(from ?? null, to ?? null)) this.add(kind, path, from, to, message);
  }
}
