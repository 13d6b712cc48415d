/**
 * Compares two plans: what the second one widens, what it narrows, and other changes. A change counts as
 * widening unless it is known to narrow or to be harmless. Pure.
 */
import { compareLimit, LIMIT_NAMES } from "./check/field_checks.ts";
import {
  diffConfig,
  diffGrants,
  DiffReport,
  diffSpec,
  type PlanDiff,
  type Redact,
  sourceText,
} from "./diff_module.ts";
import type { PlanText } from "./compile.ts";
import type { Lock } from "./lock.ts";
import { askedOf } from "./permissions/permission_block.ts";
import type { PlanEnvReference } from "./env.ts";
import { isObject, jsonEqual, type JsonObject } from "../sdk/json.ts";
import { toolChanges } from "../sdk/pinned_tools.ts";
import type { ModuleSpec, MountPlan } from "../sdk/plan.ts";

/** One side of a comparison. */
export interface ComparedPlan {
  readonly plan: MountPlan;
  readonly env: readonly PlanEnvReference[];
  readonly written: JsonObject;
  /** The tools of MCP servers in the plan's lock. */
  readonly servers?: Lock["servers"] | undefined;
  /** The texts in the plan's lock. */
  readonly locked_texts?: Lock["texts"] | undefined;
  /** The texts that its modules read now. */
  readonly read_texts?: readonly PlanText[] | undefined;
}

/**
 * Returns the differences from `from` to `to`. Equal plans give three empty lists.
 *
 * @param redact Redacts the values that are reported. A changed secret is still reported.
 */
export function diffPlans(from: ComparedPlan, to: ComparedPlan, redact: Redact): PlanDiff {
  const report = new DiffReport(redact);
  diffModules(from, to, report);
  diffLimits(from.plan, to.plan, report);
  diffSession(from.plan, to.plan, report);
  report.change("other", "system", from.plan.system, to.plan.system, "The system instruction changed");
  diffAgents(from.plan.agents, to.plan.agents, report);
  if (!jsonEqual(from.plan.spawn ?? null, to.plan.spawn ?? null)) {
    report.add("widens", "spawn", from.plan.spawn, to.plan.spawn, "How child sessions are made changed");
  }
  diffRest(from.written, to.written, report);
  diffServers(from, to, report);
  diffTexts(from, to, report);
  return report.diff;
}

/** Reports texts for the model that differ: those in the locks, and those that modules read now. */
function diffTexts(from: ComparedPlan, to: ComparedPlan, report: DiffReport): void {
  const compare = (place: string, before: Digests, after: Digests) => {
    for (const name of new Set([...before.keys(), ...after.keys()])) {
      const [old, now] = [before.get(name), after.get(name)];
      const fact = old === undefined ? "was added" : now === undefined ? "was removed" : "changed";
      report.change("other", `${place}.${name}`, old, now, `The text of ${name} ${fact}`);
    }
  };
  const locked = ({ locked_texts = {} }: ComparedPlan): Digests =>
    new Map(Object.entries(locked_texts).map(([name, { sha256 }]) => [name, sha256]));
  const read = ({ read_texts = [] }: ComparedPlan): Digests =>
    new Map(
      read_texts.filter(({ label }) => !SYSTEM_LABEL.test(label)).map(({ label, sha256 }) => [label, sha256]),
    );
  if (from.locked_texts && to.locked_texts) compare("lock.texts", locked(from), locked(to));
  if (from.read_texts && to.read_texts) compare("texts", read(from), read(to));
}

/** Name → digest of a text. */
type Digests = ReadonlyMap<string, string>;

/** Labels of texts that are compared as parts of the plan. */
const SYSTEM_LABEL = /^(?:agents\b.*\.)?system$/;

/** Reports tools that differ in the locks. A server that only one lock has is a change of a config. */
function diffServers(
  { servers: before = {} }: ComparedPlan,
  { servers: after = {} }: ComparedPlan,
  report: DiffReport,
) {
  for (const [name, tools] of Object.entries(after)) {
    const known = Object.hasOwn(before, name) ? before[name] : undefined;
    for (const change of known ? toolChanges(name, known, tools) : []) {
      report.add("widens", `lock.servers.${name}`, undefined, undefined, change);
    }
  }
}

/** Maps the modules of a plan by type and name. A second module of the same name has a number in its key. */
function modulesByKey({ session, providers, tools, hooks }: MountPlan): Map<string, ModuleSpec> {
  const found = new Map<string, ModuleSpec>();
  const counts = new Map<string, number>();
  for (const spec of [...providers, ...tools, ...hooks]) {
    const name = `${spec.type} ${spec.instance_id ?? spec.module}`;
    const count = (counts.get(name) ?? 0) + 1;
    counts.set(name, count);
    found.set(count === 1 ? name : `${name} ${count}`, spec);
  }
  // a plan has exactly one orchestrator and one context, so their names are not in the key
  return found.set("orchestrator", session.orchestrator).set("context", session.context);
}

function diffModules(from: ComparedPlan, to: ComparedPlan, report: DiffReport): void {
  const before = modulesByKey(from.plan);
  const after = modulesByKey(to.plan);
  for (const [key, spec] of before) if (!after.has(key)) removed(spec, report);
  for (const [key, spec] of after) {
    const old = before.get(key);
    if (old?.module === spec.module) {
      diffSpec(old, spec, report);
      diffGrants(askedOf(old, from.plan), spec, to.plan, report);
      diffConfig(old, spec, report);
    } else {
      if (old) {
        const message = `"${spec.module}" replaces "${old.module}"`;
        report.add("widens", spec.path, old.module, spec.module, message);
      } else added(spec, report);
      diffGrants(undefined, spec, to.plan, report);
    }
    diffEnv(old, spec, from, to, report);
  }
  diffOrder(from.plan, to.plan, report);
}

function added(spec: ModuleSpec, report: DiffReport): void {
  const message = `${spec.type} "${spec.module}" was added`;
  const from = sourceText(spec.source);
  // a built-in hook can only observe, inject and deny
  const kind = spec.type === "hook" && spec.source.kind === "builtin"
    ? spec.module === "hooks-approval" ? "narrows" : "other"
    : "widens";
  report.add(kind, spec.path, undefined, spec.module, from === null ? message : `${message}, from ${from}`);
}

function removed(spec: ModuleSpec, report: DiffReport): void {
  const message = `${spec.type} "${spec.module}" was removed`;
  if (spec.type === "hook") {
    report.add("widens", spec.path, spec.module, undefined, `${message}: what it denied is now allowed`);
  } else report.add("narrows", spec.path, spec.module, undefined, message);
}

/** Reports variables that a module receives in one plan only; names, never values. */
function diffEnv(
  old: ModuleSpec | undefined,
  spec: ModuleSpec,
  from: ComparedPlan,
  to: ComparedPlan,
  report: DiffReport,
): void {
  const before = namesOf(from.env, old);
  const after = namesOf(to.env, spec);
  for (const [name, path] of after) {
    const message = `"${spec.module}" receives the variable ${name}`;
    if (!before.has(name)) report.add("widens", path, undefined, name, message);
  }
  for (const [name, path] of before) {
    const message = `"${spec.module}" no longer receives the variable ${name}`;
    if (!after.has(name)) report.add("narrows", path, name, undefined, message);
  }
}

function namesOf(env: readonly PlanEnvReference[], spec: ModuleSpec | undefined): Map<string, string> {
  if (!spec) return new Map();
  // the config of orchestrator and context may also be at top level
  const places = [`${spec.path}.`, ...spec.path.startsWith("session.") ? [`${spec.type}.`] : []];
  const own = env.filter(({ path, expanded }) => expanded && places.some((place) => path.startsWith(place)));
  return new Map(own.map(({ name, path }) => [name, path]));
}

function diffOrder(from: MountPlan, to: MountPlan, report: DiffReport): void {
  for (const section of ["providers", "tools", "hooks"] as const) {
    const names = (plan: MountPlan) => plan[section].map(({ instance_id, module }) => instance_id ?? module);
    const [before, after] = [names(from), names(to)];
    const common = (list: string[], other: string[]) => list.filter((name) => other.includes(name));
    if (!jsonEqual(common(before, after), common(after, before))) {
      report.add("other", section, before, after, `The order of ${section} changed`);
    }
  }
}

function diffLimits(from: MountPlan, to: MountPlan, report: DiffReport): void {
  for (const name of LIMIT_NAMES) {
    const before = from.limits[name];
    const after = to.limits[name];
    if (before === after) continue;
    const path = `limits.${name}`;
    if (after === undefined) {
      report.add("widens", path, before, after, `The limit ${name} was removed: the policy's limit applies`);
    } else if (before === undefined) {
      report.add("narrows", path, before, after, `The limit ${name} was added`);
    } else {
      const order = compareLimit(after, before);
      if (order === 0) continue;
      const [kind, word] = order > 0 ? ["widens", "raised"] as const : ["narrows", "lowered"] as const;
      report.add(kind, path, before, after, `The limit ${name} was ${word}`);
    }
  }
}

const INJECTIONS = ["injection_budget_per_turn", "injection_size_limit"] as const;
const SESSION_REST = ["injection_budget_mode", "raw", "metadata", "hooks_first"] as const;

function diffSession({ session: from }: MountPlan, { session: to }: MountPlan, report: DiffReport): void {
  for (const name of INJECTIONS) {
    const before = from[name];
    const after = to[name];
    if (before === after) continue;
    const wider = (after ?? Infinity) > (before ?? Infinity) || before === undefined && after === null;
    const [kind, word] = wider ? ["widens", "raised"] as const : ["narrows", "lowered"] as const;
    const message = `The limit of what hooks may inject was ${word}`;
    report.add(kind, `session.${name}`, before, after, message);
  }
  for (const name of SESSION_REST) {
    // both weaken guards: how strictly a budget is enforced, and whether hooks mount before what they guard
    const kind = name === "injection_budget_mode" || name === "hooks_first" ? "widens" : "other";
    report.change(kind, `session.${name}`, from[name], to[name], `session.${name} changed`);
  }
}

/** Fields of an overlay that only models and people read. */
const TEXTS: ReadonlySet<string> = new Set(["description", "system", "instruction"]);

/**
 * Compares overlays. Any change but text counts as widening, because an overlay merges into a plan of its
 * own.
 */
function diffAgents(from: JsonObject, to: JsonObject, report: DiffReport): void {
  for (const name of Object.keys(from)) {
    if (!Object.hasOwn(to, name)) {
      report.add("narrows", `agents.${name}`, name, undefined, `The agent "${name}" was removed`);
    }
  }
  for (const [name, overlay] of Object.entries(to)) {
    const path = `agents.${name}`;
    if (!Object.hasOwn(from, name)) {
      report.add("widens", path, undefined, name, `The agent "${name}" was added`);
      continue;
    }
    const before = isObject(from[name]) ? from[name] : {};
    const after = isObject(overlay) ? overlay : {};
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
      const message = `${key} of the agent "${name}" changed`;
      report.change(TEXTS.has(key) ? "other" : "widens", `${path}.${key}`, before[key], after[key], message);
    }
  }
}

const COMPARED: ReadonlySet<string> = new Set([
  "session",
  "orchestrator",
  "context",
  "providers",
  "tools",
  "hooks",
  "agents",
  "spawn",
  "limits",
  "permissions",
  "system",
]);

/** Compares keys that the format does not define or that only people read. */
function diffRest(from: JsonObject, to: JsonObject, report: DiffReport): void {
  for (const key of new Set([...Object.keys(from), ...Object.keys(to)])) {
    if (!COMPARED.has(key)) report.change("other", key, from[key], to[key], `${key} changed`);
  }
}
