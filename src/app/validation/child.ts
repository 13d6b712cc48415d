/**
 * The child process that validates a module's structure and behaviour: foreign code that has only the
 * permissions that its author requested, and no environment variables. Handles one request and exits.
 */
import {
  FrameWriter,
  parentFrames,
  replaceConsole,
  revokePermissions,
  writeAllSync,
} from "../../process/child_io.ts";
import { displayErrorLocation, linkModule } from "../../loader/link.ts";
import { installSdk } from "../../sdk/sdk_global.ts";
import type { ModuleBundle } from "../../loader/types.ts";
import { errorMessage } from "../../sdk/errors.ts";
import type { PermissionKind } from "../../sdk/plan.ts";
import type { Validation } from "./checklist.ts";
import type { JsonObject } from "../../sdk/json.ts";
import type { Module, ModuleType } from "../../sdk/types.ts";
import { checkStructure, ownId } from "./contract_check.ts";
import { runSuite } from "./suites.ts";

/** Request to the child; the code is the frame's body. */
export interface ValidationRequest {
  bundle: Omit<ModuleBundle, "code">;
  name: string;
  base_url: string;
  allow: readonly PermissionKind[];
  options: Omit<ValidateOptions, "onStep" | "placeOf">;
  load_timeout_s: number;
}

/** Message of the child: the step that it starts, or the result. */
export type ValidatorMessage =
  | { kind: "step"; name: string }
  | { kind: "not_importable"; message: string }
  | { kind: "done"; validation: Validation };

/** Maximum size of a request: a bundle and its source map. */
const MAX_REQUEST_BYTES = 192 * 1024 * 1024;

/** Validates the module on stdin, writes progress and result to stdout, and exits. */
export async function runValidatorChild(): Promise<never> {
  const frame = await parentFrames(MAX_REQUEST_BYTES).next();
  if (!frame) Deno.exit(1);
  const request = JSON.parse(frame.text) as ValidationRequest; // from the parent process
  const code = new TextDecoder().decode(frame.body);
  replaceConsole(writeToStderr); // stdout carries frames
  const output = new FrameWriter();
  const write = async (message: ValidatorMessage) => await output.write(JSON.stringify(message));
  const exit: (code: number) => never = Deno.exit;
  for (const name of ["exit", "kill"]) Object.defineProperty(Deno, name, { value: () => refuse(name) });
  await installSdk(request.bundle.uses);
  revokePermissions(request.allow);
  await write({ kind: "step", name: "import" });
  try {
    const module = await linkModule({ ...request.bundle, code }, {
      instance: "validate",
      timeout_s: request.load_timeout_s,
      name: request.name,
      base_url: request.base_url,
    });
    const onStep = (name: string) => void write({ kind: "step", name });
    const placeOf = (error: unknown) => displayErrorLocation(error, request.bundle.files, request.base_url);
    const validation = await validateModule(module, { ...request.options, onStep, placeOf });
    await write({ kind: "done", validation });
  } catch (error) {
    await write({ kind: "not_importable", message: errorMessage(error) });
  }
  exit(0); // the module may have left timers or connections
}

/** Replaces functions that end the process, which a session's sandbox lacks too. */
function refuse(name: string): never {
  throw new TypeError(`Deno.${name} is not available: a module must not end its process`);
}

function writeToStderr(...values: unknown[]): void {
  const text = values.map((value) => typeof value === "string" ? value : Deno.inspect(value)).join(" ");
  writeAllSync(Deno.stderr, new TextEncoder().encode(`${text}\n`));
}

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

if (import.meta.main) await runValidatorChild(); // under `deno run`; the compiled program calls it in main.ts
