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
import type { Module } from "../../sdk/types.ts";
import { checkStructure, ownId, type ValidateOptions } from "./contract_check.ts";
import { runSuite } from "./suites.ts";

/** Request to the child; the code is the frame's body. */
export interface ValidationRequest {
  bundle: Omit<ModuleBundle, "code">;
  name: string;
  base_url: string;
  allow: readonly PermissionKind[];
  options: Omit<ValidateOptions, "allow" | "call_ms" | "onStep" | "placeOf">;
  load_timeout_s: number;
}

/** Message of the child: the step that it starts, or the result. */
export type ValidatorMessage =
  | { kind: "step"; name: string }
  | { kind: "not_importable"; message: string }
  | { kind: "done"; validation: Validation };

/** Timeout of each call into the module and of each case, in milliseconds. */
const CALL_MS = 5_000;
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
    const validation = await validateModule(module, {
      ...request.options,
      allow: request.allow,
      call_ms: CALL_MS,
      onStep,
      placeOf,
    });
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

/** Validates a module. The suite runs if something was mounted without errors. */
export async function validateModule(module: object, options: ValidateOptions): Promise<Validation> {
  const id = ownId(module);
  const { type, provides, checks, mounted } = await checkStructure(module, {
    ...options,
    id: id ?? options.id,
  });
  const usable = mounted && checks.every((check) => check.passed || check.severity !== "error");
  const suite = usable && !options.structure_only
    ? await runSuite(type, module as Module, options) // it has a mount
    : [];
  return { id, type, provides, checks, suite };
}

if (import.meta.main) await runValidatorChild(); // under `deno run`; the compiled program calls it in main.ts
