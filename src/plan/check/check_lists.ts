/** Checks the lists of a plan (providers, tools, hooks) and the rules between their entries. */
import type { ModuleType } from "../../sdk/contracts.ts";
import { canonicalJson, type JsonObject } from "../../sdk/json.ts";
import type { ModuleSpec } from "../../sdk/plan.ts";
import { checkSpec } from "./check_spec.ts";
import type { Findings } from "../../sdk/findings.ts";
import { describe, type Path } from "../../sdk/value_path.ts";
import type { SourceOptions } from "../source/source.ts";

/** Sections that are lists of modules, with the type of their entries. */
export const LIST_SECTIONS: Readonly<Record<"providers" | "tools" | "hooks", ModuleType>> = {
  providers: "provider",
  tools: "tool",
  hooks: "hook",
};

/** Returns the specs of one section of the object at `path`. Invalid specs are reported and left out. */
export function checkList(
  plan: JsonObject,
  section: keyof typeof LIST_SECTIONS,
  path: Path,
  findings: Findings,
  options: SourceOptions,
): ModuleSpec[] {
  if (!Object.hasOwn(plan, section)) return [];
  const at = [...path, section];
  const value = plan[section];
  if (!Array.isArray(value)) {
    const message = `Cannot read ${section}: must be a list: received ${describe(value)}`;
    findings.error(at, "type", message, `write ${section}: [${LIST_SECTIONS[section]}-…]`);
    return [];
  }
  const specs: ModuleSpec[] = [];
  const places: number[] = [];
  for (const [index, item] of value.entries()) {
    const spec = checkSpec(item, LIST_SECTIONS[section], [...at, index], findings, options);
    if (!spec) continue;
    specs.push(spec);
    places.push(index);
  }
  checkInstances(specs, places, at, findings, section === "providers");
  if (section !== "providers") checkDuplicates(specs, places, at, findings);
  return specs;
}

/**
 * Checks that no two entries share an instance id, and that at most one entry of a provider module has
 * none.
 */
function checkInstances(
  specs: readonly ModuleSpec[],
  places: readonly number[],
  at: Path,
  findings: Findings,
  required: boolean,
): void {
  const ids = new Set<string>();
  const plain = new Set<string>();
  for (const [index, spec] of specs.entries()) {
    const place = [...at, places[index]!];
    if (spec.instance_id !== undefined) {
      if (ids.has(spec.instance_id)) {
        const message = `Cannot use instance_id ${
          describe(spec.instance_id)
        }: another entry of this list has it`;
        findings.error(
          [...place, "instance_id"],
          "duplicate_instance_id",
          message,
          "use a different one",
        );
      }
      ids.add(spec.instance_id);
    } else if (required) {
      if (plain.has(spec.module)) {
        const message =
          `Cannot mount module "${spec.module}" twice: only one entry may go without instance_id`;
        findings.error(place, "instance_id_required", message, "add an instance_id");
      }
      plain.add(spec.module);
    }
  }
}

/** Warns about a module that is listed twice with the same config. */
function checkDuplicates(
  specs: readonly ModuleSpec[],
  places: readonly number[],
  at: Path,
  findings: Findings,
): void {
  if (new Set(specs.map(({ module }) => module)).size === specs.length) return;
  const seen = new Set<string>();
  for (const [index, spec] of specs.entries()) {
    const key = canonicalJson([spec.module, spec.instance_id ?? null, spec.config]);
    if (seen.has(key) && spec.instance_id === undefined) {
      const message = `Module "${spec.module}" is listed twice in this list with the same config`;
      findings.warn(
        [...at, places[index]!],
        "duplicate_module",
        message,
        "remove one, or give it its own config",
      );
    }
    seen.add(key);
  }
}
