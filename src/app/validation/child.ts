/**
 * The child process that validates a module: foreign code that has only the permissions that its author
 * requested, and no environment variables. Handles one request and exits.
 */
import { encodeFrame, FrameReader } from "../../loader/bundler/frames.ts";
import { displayErrorLocation, linkModule } from "../../loader/link.ts";
import { installSdk } from "../../sdk/sdk_global.ts";
import type { ModuleBundle } from "../../loader/types.ts";
import { errorMessage } from "../../sdk/errors.ts";
import type { JsonObject } from "../../sdk/json.ts";
import { PERMISSION_KINDS, type PermissionKind } from "../../sdk/plan.ts";
import { validateModule } from "./validate_module.ts";
import type { ValidateOptions } from "./validate_module.ts";

/** Request to the child; the code is the frame's body. */
export interface ValidationRequest {
  bundle: Omit<ModuleBundle, "code">;
  name: string;
  base_url: string;
  allow: readonly PermissionKind[];
  options: Omit<ValidateOptions, "onStep" | "placeOf">;
  load_timeout_s: number;
}

/** Maximum size of a request: a bundle and its source map. */
const MAX_REQUEST_BYTES = 192 * 1024 * 1024;

/** Validates the module on stdin, writes progress and result to stdout, and exits. */
export async function runValidatorChild(): Promise<never> {
  const frame = await new FrameReader(readStdin, MAX_REQUEST_BYTES).next();
  if (!frame) Deno.exit(1);
  const request = frame.header as unknown as ValidationRequest; // from the parent process
  const code = new TextDecoder().decode(frame.body);
  forwardConsole();
  const exit: (code: number) => never = Deno.exit;
  for (const name of ["exit", "kill"]) Object.defineProperty(Deno, name, { value: () => refuse(name) });
  await installSdk(request.bundle.uses);
  for (const name of PERMISSION_KINDS) {
    if (!request.allow.includes(name)) Deno.permissions.revokeSync({ name });
  }
  write({ kind: "step", name: "import" });
  try {
    const module = await linkModule({ ...request.bundle, code }, {
      instance: "validate",
      timeout_s: request.load_timeout_s,
      name: request.name,
      base_url: request.base_url,
    });
    const onStep = (name: string) => write({ kind: "step", name });
    const placeOf = (error: unknown) => displayErrorLocation(error, request.bundle.files, request.base_url);
    const validation = await validateModule(module, { ...request.options, onStep, placeOf });
    write({ kind: "done", validation });
  } catch (error) {
    write({ kind: "not_importable", message: errorMessage(error) });
  }
  exit(0); // the module may have left timers or connections
}

/** Replaces functions that end the process, which a session's sandbox lacks too. */
function refuse(name: string): never {
  throw new TypeError(`Deno.${name} is not available: a module must not end its process`);
}

/** Writes a frame synchronously, so that it is sent even if the next step never ends. */
function write(header: JsonObject): void {
  const bytes = encodeFrame(header);
  for (let at = 0; at < bytes.length;) at += Deno.stdout.writeSync(bytes.subarray(at));
}

/** Sends console output to stderr, because stdout carries the protocol. */
function forwardConsole(): void {
  const say = (...values: unknown[]) => {
    const text = values.map((value) => typeof value === "string" ? value : Deno.inspect(value)).join(" ");
    const bytes = new TextEncoder().encode(`${text}\n`);
    for (let at = 0; at < bytes.length;) at += Deno.stderr.writeSync(bytes.subarray(at));
  };
  for (const key of Object.keys(console)) {
    if (typeof Reflect.get(console, key) === "function") Reflect.set(console, key, say);
  }
}

async function readStdin(): Promise<Uint8Array | null> {
  const buffer = new Uint8Array(64 * 1024);
  const count = await Deno.stdin.read(buffer);
  return count === null ? null : buffer.subarray(0, count);
}
