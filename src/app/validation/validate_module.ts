/**
 * Validates structure and behaviour of a module in this process. The caller chooses the process, because
 * the module's code runs.
 */
import type { JsonObject } from "../../sdk/json.ts";
import type { Module, ModuleType } from "../../sdk/types.ts";
import type { Validation } from "./report.ts";
import { checkStructure, ownId } from "./contract_check.ts";
import { runSuite } from "./suites.ts";

/** Options of `validateModule`. */
export interface ValidateOptions {
  /** Id from its location: the name of its folder or file. */
  id: string;
  type?: ModuleType | undefined;
  /** The `config` to mount it with. */
  config: JsonObject;
  /** Whether to skip the suite; `mount` is then called exactly once. */
  structure_only: boolean;
  /** Timeout of each call and case, in milliseconds. Default 5,000. */
  call_ms?: number;
  /** Called before each call into the module. */
  onStep?: (name: string) => void;
  /** Returns the place of an error in the author's files. */
  placeOf?: (error: unknown) => string | undefined;
}

/** Validates a module. The suite runs if something was mounted without errors. */
export async function validateModule(module: object, options: ValidateOptions): Promise<Validation> {
  const {
    id,
    type: declared,
    config,
    structure_only,
    call_ms = 5000,
    onStep = () => {},
    placeOf = () => undefined,
  } = options;
  const own = ownId(module);
  const { type, provides, checks, mounted } = await checkStructure(module, {
    id: own ?? id,
    type: declared,
    config,
    call_ms,
    onStep,
    placeOf,
  });
  const usable = mounted && checks.every((check) => check.passed || check.severity !== "error");
  const suite = usable && !structure_only
    ? await runSuite(type, module as Module, { config, case_ms: call_ms, onStep, placeOf }) // it has a mount
    : [];
  return { id: own, type, provides, checks, suite };
}
