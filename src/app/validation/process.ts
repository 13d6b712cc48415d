/**
 * Runs the validator child process for one module, and kills it when a step times out. A module that loops
 * forever, exits or exhausts the memory cannot affect the parent.
 */
import { type Check, failed } from "../../kernel/module_checks.ts";
import { encodeFrame, type Frame } from "../../process/frames.ts";
import { Child, ownEnv, ownProgram } from "../../process/child_process.ts";
import { LateError } from "../../process/system_clock.ts";
import { PreampError } from "../../sdk/errors.ts";
import type { ModuleBundle } from "../../loader/types.ts";
import type { PermissionKind } from "../../sdk/plan.ts";
import type { ValidationRequest, ValidatorMessage } from "./validator_child.ts";
import type { Validation } from "./checklist.ts";

/** Result of the child process. */
export type ProcessOutcome =
  | { kind: "done"; validation: Validation; console: string }
  | { kind: "failed"; check: Check; console: string };

/** Options of `validateInProcess`. */
export interface ProcessOptions {
  /**
   * Milliseconds of its own time that the child may take between two messages. A case times out after 5 s
   * itself. Default 10 s.
   */
  step_ms?: number;
  /** Environment of the module if `env` is allowed. Default: this process's. */
  env?: () => Record<string, string>;
}

/** Milliseconds of its own time for the child's start; a cold cache on a slow disk needs long. */
const START_MS = 60_000;
const MAX_FRAME_BYTES = 16 * 1024 * 1024;
/**
 * Limits of the child: more than a module has in a session by default. A worker that the module starts
 * reserves about a gigabyte of them.
 */
const LIMITS = { memory_mb: 2_048, cpu_s: 30 };

/**
 * Validates a module in a child process.
 *
 * @throws {PreampError} `module_load_failed` if this host cannot start one.
 */
export async function validateInProcess(
  { code, ...bundle }: ModuleBundle,
  request: Omit<ValidationRequest, "bundle">,
  { step_ms = 10_000, env = () => Deno.env.toObject() }: ProcessOptions = {},
): Promise<ProcessOutcome> {
  const child = startChild(request.allow, env);
  const message = encodeFrame(JSON.stringify({ bundle, ...request }), [new TextEncoder().encode(code)]);
  // it may exit before it has read everything: its status is reported
  child.write(message).then(() => child.end()).catch(() => {});
  let step = "import";
  let wait_ms = START_MS;
  let validation: Validation | undefined;
  let fact: string | undefined;
  try {
    for (;;) {
      const frame = await nextFrame(child, wait_ms);
      if (frame === "late") {
        fact = `${step} timed out after ${wait_ms / 1000} s of work; its process was killed`;
        break;
      }
      if (!frame) break;
      wait_ms = step_ms;
      const answer = JSON.parse(frame.text) as ValidatorMessage; // written by validator_child.ts
      if (answer.kind === "step") step = answer.name;
      else if (answer.kind === "not_importable") fact = answer.message;
      else validation = answer.validation;
    }
  } finally {
    await child.close();
  }
  const { code: exit, signal } = await child.status;
  const console = child.stderr;
  if (validation) return { kind: "done", validation, console };
  fact ??= `its process exited ${signal === null ? `with code ${exit}` : `(${signal})`} during ${step}`;
  const check = step === "import" ? failed("module_importable", fact) : failed("protocol_compliance", fact);
  return { kind: "failed", check, console };
}

function startChild(allow: readonly PermissionKind[], env: () => Record<string, string>): Child {
  try {
    return new Child({
      ...ownProgram({
        name: "validate",
        entry: new URL("./validator_child.ts", import.meta.url).href,
        allow,
      }),
      // the variables of Deno's cache are not visible to the module, which has no env permission
      env: allow.includes("env") ? env() : ownEnv(),
      limits: LIMITS,
      keep_stderr: "start", // the module's console
      limit: () => MAX_FRAME_BYTES,
    });
  } catch (error) {
    throw new PreampError(
      "module_load_failed",
      "Cannot validate a module: this process may not start child processes; run it with --allow-run",
      { cause: error },
    );
  }
}

async function nextFrame(child: Child, wait_ms: number): Promise<Frame | null | "late"> {
  try {
    return await child.within(wait_ms, child.next());
  } catch (error) {
    return error instanceof LateError ? "late" : null; // invalid: the module wrote to stdout, or ended while it wrote
  }
}
