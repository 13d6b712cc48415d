/** One module of two plans: where its code comes from, what holds it, what it is granted. Pure. */
import type { ModuleSpec, MountPlan, Source } from "../sdk/plan.ts";
import type { DiffReport } from "./diff_report.ts";
import { askedOf } from "./explain.ts";
import { grantedBeyond, type GrantEntry } from "./permissions/grants.ts";

/** Tells how a module's source, pin, tier and grant differ. `new`: the module was not there, so that only its grant is told. */
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
    const message = `"${spec.module}" is granted ${told(entry)}`;
    report.add("widens", grantPath(spec, to, permission), before?.[permission], after?.[permission], message);
  }
  for (const entry of grantedBeyond(before, after)) {
    const { permission } = entry;
    const message = `"${spec.module}" is no longer granted ${told(entry)}`;
    report.add(
      "narrows",
      grantPath(spec, to, permission),
      before?.[permission],
      after?.[permission],
      message,
    );
  }
}

/** Returns what a plan wrote as a source; null for what is compiled in. */
export function sourceText(source: Source): string | null {
  return source.kind === "builtin" ? null : source.original;
}

function told({ permission, entry }: GrantEntry): string {
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
    ? `"${module}" is the built-in one now`
    : before === null
    ? `"${module}" is no longer the built-in one`
    : `"${module}" comes from another place`;
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
    report.add("narrows", at, undefined, integrity, `"${module}" is pinned by the plan`);
  } else report.add("widens", at, old.integrity, integrity, `"${module}" is other code`);
}

/** How much a plan insists on a hook: without a word of the plan those that gate are required. */
const INSISTENCE = { false: 0, undefined: 1, true: 2 } as const;

/** A run that goes on without a hook may do what the hook would have denied. */
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
    ? `a run goes on when "${module}" cannot be mounted`
    : `what the module says decides whether a run needs "${module}"`;
  report.add(kind, `${path}.required`, old.required, required, message);
}

const STRENGTH = { inline: 0, worker: 1, process: 2 } as const;

/** Without a word of the plan the policy's tier holds, and a plan may only ask for more: none is as weak as `inline`. */
function diffIsolation(old: ModuleSpec, { module, isolation, path }: ModuleSpec, report: DiffReport): void {
  if (old.isolation === isolation) return;
  const step = STRENGTH[isolation ?? "inline"] - STRENGTH[old.isolation ?? "inline"];
  const kind = step < 0 ? "widens" : step > 0 ? "narrows" : "other";
  const message = `"${module}" runs in ${
    isolation === undefined ? "the policy's tier" : `tier "${isolation}" at least`
  }`;
  report.add(kind, `${path}.isolation`, old.isolation, isolation, message);
}
