/**
 * Runs the validator child process for one module, and kills it when a step times out. A module that loops
 * forever, exits or exhausts the memory cannot affect the parent.
 */
import { failed } from "../../kernel/mounting/module_checks.ts";
import type { Check } from "../../kernel/mounting/validate_instance.ts";
import { cacheEnv, V8_FLAGS } from "../../loader/bundler/bundler_process.ts";
import { encodeFrame, type Frame, FrameReader } from "../../loader/bundler/frames.ts";
import { PreampError } from "../../sdk/errors.ts";
import type { ModuleBundle } from "../../loader/types.ts";
import type { PermissionKind } from "../../sdk/plan.ts";
import type { ValidationRequest } from "./child.ts";
import type { Validation } from "./report.ts";

/** Command-line role of the validator child in the compiled program. */
export const VALIDATOR_ROLE: readonly [string, string] = ["child", "validate"];

/** Result of the child process. */
export type ProcessOutcome =
  | { kind: "done"; validation: Validation; console: string }
  | { kind: "failed"; check: Check; console: string };

/** Options of `validateInProcess`. */
export interface ProcessOptions {
  /** Timeout between two messages, in milliseconds. A case times out after 5 s itself. Default 10 s. */
  step_ms?: number;
  /** Environment of the module if `env` is allowed. Default: this process's. */
  env?: () => Record<string, string>;
}

/** Timeout of the child's start in milliseconds; a cold cache on a slow machine needs long. */
const START_MS = 60_000;
const MAX_FRAME_BYTES = 16 * 1024 * 1024;
/** Maximum size of the module's console output. */
const MAX_CONSOLE_BYTES = 64 * 1024;

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
  const child = spawn(request.allow, env);
  const console = keep(child.stderr);
  const writing = send(child.stdin, encodeFrame({ bundle, ...request }, [new TextEncoder().encode(code)]));
  const stdout = child.stdout.getReader();
  const frames = new FrameReader(async () => (await stdout.read()).value ?? null, MAX_FRAME_BYTES);
  let step = "import";
  let wait_ms = START_MS;
  let validation: Validation | undefined;
  let fact: string | undefined;
  try {
    for (;;) {
      const frame = await within(frames.next(), wait_ms);
      if (frame === "late") {
        fact = `${step} timed out after ${wait_ms / 1000} s; its process was killed`;
        break;
      }
      if (!frame) break;
      wait_ms = step_ms;
      const { kind, name, message } = frame.header;
      if (kind === "step") step = String(name);
      else if (kind === "not_importable") fact = String(message);
      else validation = frame.header.validation as Validation; // written by child.ts
    }
  } finally {
    kill(child);
    await writing;
    await stdout.cancel().catch(() => {}); // the child has closed it
  }
  const { code: exit, signal } = await child.status;
  const text = await console;
  if (validation) return { kind: "done", validation, console: text };
  fact ??= `its process exited ${signal === null ? `with code ${exit}` : `(${signal})`} during ${step}`;
  const check = step === "import" ? failed("module_importable", fact) : failed("protocol_compliance", fact);
  return { kind: "failed", check, console: text };
}

function spawn(allow: readonly PermissionKind[], env: () => Record<string, string>): Deno.ChildProcess {
  try {
    return new Deno.Command(Deno.execPath(), {
      args: Deno.build.standalone ? [...VALIDATOR_ROLE] : sourceArguments(allow),
      clearEnv: true,
      // the variables of Deno's cache are not visible to the module, which has no env permission
      env: allow.includes("env") ? env() : Deno.build.standalone ? {} : cacheEnv(),
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
  } catch (error) {
    throw new PreampError(
      "module_load_failed",
      "Cannot validate a module: this process may not start child processes; run it with --allow-run",
      { cause: error },
    );
  }
}

function sourceArguments(allow: readonly PermissionKind[]): string[] {
  const entry = new URL("./child_main.ts", import.meta.url).href;
  return [
    "run",
    "--quiet",
    "--no-prompt",
    "--cached-only",
    V8_FLAGS,
    ...allow.map((kind) => `--allow-${kind}`),
    entry,
  ];
}

async function within(next: Promise<Frame | null>, wait_ms: number): Promise<Frame | null | "late"> {
  next.catch(() => {}); // after a timeout nothing awaits it
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<"late">((resolve) => timer = setTimeout(() => resolve("late"), wait_ms));
  try {
    return await Promise.race([next, late]);
  } catch {
    return null; // invalid frame: the module wrote to stdout, or the process ended while writing
  } finally {
    clearTimeout(timer);
  }
}

async function send(stdin: WritableStream<Uint8Array>, bytes: Uint8Array): Promise<void> {
  const writer = stdin.getWriter();
  try {
    await writer.write(bytes);
    await writer.close();
  } catch {
    // it exited before it had read everything: its status is reported
  }
}

async function keep(stream: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of stream) {
    if (text.length < MAX_CONSOLE_BYTES) text += decoder.decode(chunk, { stream: true });
  }
  return text.slice(0, MAX_CONSOLE_BYTES);
}

function kill(child: Deno.ChildProcess): void {
  try {
    child.kill("SIGKILL");
  } catch {
    // it has exited
  }
}
