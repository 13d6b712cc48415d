/** Where in a plan `${VAR}` means a variable: in every `config`, never in text for the model. */
import { type EnvReference, visitEnv } from "./env.ts";
import { formatPath, type Path } from "./value_path.ts";

/** A reference in a plan. */
export interface PlanEnvReference extends EnvReference {
  /**
   * False where references are not expanded, such as in `source`. A reference there is a mistake or an
   * attack.
   */
  expanded: boolean;
  /** The path as steps, to locate the reference in the text. */
  at: Path;
}

const SECTIONS: ReadonlySet<unknown> = new Set(["providers", "tools", "hooks"]);
const SINGLE: ReadonlySet<unknown> = new Set(["orchestrator", "context"]);
const TEXTS: ReadonlySet<unknown> = new Set(["system", "instruction", "description"]);

/**
 * Returns the references of a plan as written. Skips text that only models and people read (`system`,
 * `instruction`, `description`, `session.metadata`), which is never expanded.
 */
export function findPlanEnv(plan: unknown): PlanEnvReference[] {
  const found: PlanEnvReference[] = [];
  visitEnv(
    plan,
    (name, path) => {
      found.push({ name, path: formatPath(path), expanded: isConfig(withoutAgent(path)), at: [...path] });
    },
    (path) => isText(withoutAgent(path)),
  );
  return found;
}

function withoutAgent(path: Path): Path {
  return path[0] === "agents" ? path.slice(2) : path;
}

function isText(path: Path): boolean {
  return path.length === 1 && TEXTS.has(path[0]) ||
    path.length === 2 && path[0] === "session" && path[1] === "metadata";
}

function isConfig(path: Path): boolean {
  if (SINGLE.has(path[0])) return path[1] === "config";
  if (path[0] === "session") return SINGLE.has(path[1]) && path[2] === "config";
  return SECTIONS.has(path[0]) && path[2] === "config";
}
