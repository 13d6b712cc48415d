/** One module of two plans: where its code comes from, what holds it, what it is granted. Pure. */
import type { ModuleSpec, MountPlan, Source } from "../sdk/plan.ts";
import type { DiffReport } from "./diff_report.ts";
import { askedOf } from "./explain.ts";
import { grantedBeyond, type GrantEntry } from "./permissions/grants.ts";

/**
 * Reports how a module's source, pinned integrity, tier and grant differ. `new`: only the grant is
 * compared.
 */
export function diffSpec(
  old: ModuleSpec,
  spec: ModuleSpec,
  from: MountPlan,
  to: MountPlan,
  report: DiffReport,
  what: "same" | "new" = "same",
): void {
  if (what === "same") {
    diffSource(old, spec, report);
    diffIntegrity(old, spec, report);
    diffIsolation(old, spec, report);
    diffRequired(old, spec, report);
  }
  const before = askedOf(old, from);
  const after = askedOf(spec, to);
  for (const entry of grantedBeyond(after, before)) {
    const { permission } = entry;
    const message = `"${spec.module}" is granted ${entryLabel(entry)}`;
    report.add("widens", grantPath(spec, to, permission), before?.[permission], after?.[permission], message);
  }
  for (const entry of grantedBeyond(before, after)) {
    const { permission } = entry;
    const message = `"${spec.module}" is no longer granted ${entryLabel(entry)}`;
    report.add(
      "narrows",
      grantPath(spec, to, permission),
      before?.[permission],
      after?.[permission],
      message,
    );
  }
}

/** Returns a source as the plan writes it; null for a built-in module. */
export function sourceText(source: Source): string | null {
  return source.kind === "builtin" ? null : source.original;
}

function entryLabel({ permission, entry }: GrantEntry): string {
  return entry === true ? `all of ${permission}` : `${permission} ${JSON.stringify(entry)}`;
}

function grantPath(spec: ModuleSpec, plan: MountPlan, permission: string): string {
  const own = spec.permissions !== undefined || plan.permissions === undefined || spec.type !== "tool";
  return own ? `${spec.path}.permissions.${permission}` : `permissions.${permission}`;
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
  const at = `${path}.integrity`;
  if (integrity === undefined) {
    report.add("widens", at, old.integrity, undefined, `"${module}" is no longer pinned by the plan`);
  } else if (old.integrity === undefined) {
    report.add("narrows", at, undefined, integrity, `"${module}" is now pinned by the plan`);
  } else {report.add(
      "widens",
      at,
      old.integrity,
      integrity,
      `"${module}" has another integrity: its code changed`,
    );}
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

const STRENGTH = { inline: 0, worker: 1, process: 2 } as const;

/**
 * Compares `isolation`. Undefined means the policy's tier; a plan can only ask for a stricter one, so
 * undefined ranks with `inline`.
 */
function diffIsolation(old: ModuleSpec, { module, isolation, path }: ModuleSpec, report: DiffReport): void {
  if (old.isolation === isolation) return;
  const step = STRENGTH[isolation ?? "inline"] - STRENGTH[old.isolation ?? "inline"];
  const kind = step < 0 ? "widens" : step > 0 ? "narrows" : "other";
  const message = `"${module}" runs in ${
    isolation === undefined ? "the policy's tier" : `tier "${isolation}" at least`
  }`;
  report.add(kind, `${path}.isolation`, old.isolation, isolation, message);
}
