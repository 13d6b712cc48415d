/**
 * The validator child as the command line sees it: started for one module, watched step by step, killed when a step does not
 * end. A module that loops for ever, ends the process or eats memory costs its author an error and nobody else anything.
 */
import { failed } from "../../kernel/mounting/module_checks.ts";
import type { Check } from "../../kernel/mounting/validate_instance.ts";
import { cacheEnv, V8_FLAGS } from "../../loader/bundler/bundler_process.ts";
import { encodeFrame, type Frame, FrameReader } from "../../loader/bundler/frames.ts";
import { PreampError } from "../../sdk/errors.ts";
import type { ModuleBundle } from "../../loader/types.ts";
import type { PermissionKind } from "../../sdk/permission_kinds.ts";
import type { ValidationRequest } from "./child.ts";
import type { Validation } from "./report.ts";

/** First two words of the command line of the compiled program in this role. */
export const VALIDATOR_ROLE: readonly [string, string] = ["child", "validate"];

/** What came of the process. */
export type ProcessOutcome =
  | { kind: "done"; validation: Validation; console: string }
  | { kind: "failed"; check: Check; console: string };

/** How the process is held. */
export interface ProcessOptions {
  /** Milliseconds between two signs of life; a case gives up by itself after 5 s. Default 10 s. */
  step_ms?: number;
  /** Variables the module sees when `env` is allowed. Default: this process's. */
  env?: () => Record<string, string>;
}

/** Milliseconds until the child must have begun: a cold cache on a slow machine. */
const START_MS = 60_000;
const MAX_FRAME_BYTES = 16 * 1024 * 1024;
/** Bytes of the module's console that are kept. */
const MAX_CONSOLE_BYTES = 64 * 1024;

/**
 * Runs a module's validation in a process of its own.
 * @throws {PreampError} `module_load_failed` when this host cannot start one.
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
        fact = `${step} was not done within ${wait_ms / 1000} s, and its process was ended`;
        break;
      }
      if (!frame) break;
      wait_ms = step_ms;
      const { kind, name, message } = frame.header;
      if (kind === "step") step = String(name);
      else if (kind === "not_importable") fact = String(message);
      else validation = frame.header.validation as Validation; // what child.ts wrote
    }
  } finally {
    kill(child);
    await writing;
    await stdout.cancel().catch(() => {}); // its other end is gone
  }
  const { code: exit, signal } = await child.status;
  const text = await console;
  if (validation) return { kind: "done", validation, console: text };
  fact ??= `it ended its process ${signal === null ? `with code ${exit}` : `(${signal})`} during ${step}`;
  const check = step === "import" ? failed("module_importable", fact) : failed("protocol_compliance", fact);
  return { kind: "failed", check, console: text };
}

function spawn(allow: readonly PermissionKind[], env: () => Record<string, string>): Deno.ChildProcess {
  try {
    return new Deno.Command(Deno.execPath(), {
      args: Deno.build.standalone ? [...VALIDATOR_ROLE] : sourceArguments(allow),
      clearEnv: true,
      // where Deno finds its cache is not shown to the module, which may not read variables
      env: allow.includes("env") ? env() : Deno.build.standalone ? {} : cacheEnv(),
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
  } catch (error) {
    throw new PreampError(
      "module_load_failed",
      "Cannot validate a module: this process may not start itself: give it --allow-run",
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
  next.catch(() => {}); // after a timeout nobody waits for it
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<"late">((resolve) => timer = setTimeout(() => resolve("late"), wait_ms));
  try {
    return await Promise.race([next, late]);
  } catch {
    return null; // bytes that are no message: the module wrote to the wire, or the process died while writing
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
    // it ended before it had read everything: its exit tells
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
    // it is gone already
  }
}
