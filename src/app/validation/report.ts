/** What validating a module comes to: findings and how severe they are (behaviour.md §3.5). Data and counting only. */
import type { Check } from "../../kernel/mounting/validate_instance.ts";
import type { ModuleType } from "../../sdk/types.ts";

/** What was found about a module that was run. */
export interface Validation {
  /** Id the module gives itself; null when it gives none. */
  id: string | null;
  type: ModuleType;
  /** Names it mounted of its type; for a hook the events it listens to. */
  provides: string[];
  /** What it is: exports, mount, what was mounted. */
  checks: Check[];
  /** What it does: the contract suite of its type. Empty when it was not run. */
  suite: Check[];
}

/** Returns how many findings stand in the way; `strict`: warnings do too. */
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
