/** Structure and behaviour of a module in this process. Whoever calls decides which process that is: {@link module} is code. */
import type { JsonObject } from "../../sdk/json.ts";
import type { Module, ModuleType } from "../../sdk/types.ts";
import type { Validation } from "./report.ts";
import { checkStructure, ownId } from "./contract_check.ts";
import { runSuite } from "./suites.ts";

/** What is tried, and how. */
export interface ValidateOptions {
  /** Id from its place: the folder or the file's name. */
  id: string;
  type?: ModuleType | undefined;
  /** The `config` it is mounted with. */
  config: JsonObject;
  /** Whether the suite is left out; `mount` is then called exactly once. */
  structure_only: boolean;
  /** Milliseconds for each call and case. Default 5,000. */
  call_ms?: number;
  /** Told before each call into the module. */
  onStep?: (name: string) => void;
  /** Returns where in the author's files an error was thrown. */
  placeOf?: (error: unknown) => string | undefined;
}

/** Resolves to what was found. The suite is run when there is something mounted and no error was found. */
export async function validateModule(module: object, options: ValidateOptions): Promise<Validation> {
  const {
    id,
    type: given,
    config,
    structure_only,
    call_ms = 5000,
    onStep = () => {},
    placeOf = () => undefined,
  } = options;
  const own = ownId(module);
  const { type, provides, checks, mounted } = await checkStructure(module, {
    id: own ?? id,
    type: given,
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
