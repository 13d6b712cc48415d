/** Result of validating a module: checks and the number of findings. */
import type { Check } from "../../kernel/mounting/module_checks.ts";
import type { ModuleType } from "../../sdk/types.ts";

/** Checks of one module. */
export interface Validation {
  /** Id that the module exports; null if none. */
  id: string | null;
  type: ModuleType;
  /** Names that it mounted of its type; for a hook, its events. */
  provides: string[];
  /** Checks of its structure: exports, mount, mounted instances. */
  checks: Check[];
  /** Cases of its type's contract suite. Empty if the suite did not run. */
  suite: Check[];
}

/** Counts errors and warnings. `strict`: warnings count as errors. */
export function countFindings(
  checks: readonly Check[],
  strict: boolean,
): { errors: number; warnings: number } {
  const of = (severity: Check["severity"]) =>
    checks.filter((check) => !check.passed && check.severity === severity).length;
  return strict
    ? { errors: of("error") + of("warning"), warnings: 0 }
    : { errors: of("error"), warnings: of("warning") };
}
