/** The `spawn` section: what children inherit of the tools. An app-layer section whose other keys are left alone (behaviour.md §2.1). */
import type { JsonObject } from "../../sdk/json.ts";
import { object, texts } from "./field_checks.ts";
import type { Findings } from "./findings.ts";
import type { Path } from "../value_path.ts";

/**
 * Checks the `spawn` section of the plan or overlay at `path`: which tools sub-agents inherit. Other keys
 * belong to applications and are not checked.
 */
export function checkSpawn(plan: JsonObject, path: Path, findings: Findings): JsonObject | undefined {
  if (!Object.hasOwn(plan, "spawn")) return undefined;
  const at = [...path, "spawn"];
  const spawn = object(plan.spawn, at, findings, "write spawn: {exclude_tools: [tool-task]}");
  for (const key of ["exclude_tools", "tools"]) {
    if (spawn && Object.hasOwn(spawn, key)) {
      texts(spawn[key], [...at, key], findings, "write a list of module ids");
    }
  }
  return spawn;
}
