/** Builds the command of this program in the role of a child process, and the environment that such a child needs. */
import type { PermissionKind } from "../sdk/plan.ts";
import type { Program } from "./system_limits.ts";

/** Role of a child process. */
export interface ChildRole {
  /** Second argument of the compiled program, after `child`. */
  readonly name: "bundle" | "guest" | "validate";
  /** URL of the first file under `deno run`. */
  readonly entry: string;
  /** Permissions under `deno run`. The compiled program has all of them, and its children revoke them. */
  readonly allow?: readonly PermissionKind[];
  /** Further flags of `deno run`. */
  readonly flags?: readonly string[];
}

/** V8 flags, which the compiled program contains: no code from strings, no optimising compiler for WebAssembly. */
const V8_FLAGS = "--v8-flags=--disallow-code-generation-from-strings,--liftoff-only";

/** Variables by which Deno finds its cache. */
const CACHE_VARIABLES = ["DENO_DIR", "HOME", "XDG_CACHE_HOME", "LOCALAPPDATA", "USERPROFILE", "SystemRoot"];

/** Returns the command of this program in a role: the compiled program, or `deno run` with the role's first file. */
export function ownProgram({ name, entry, allow = [], flags = [] }: ChildRole): Program {
  const command = Deno.execPath();
  if (Deno.build.standalone) return { command, args: ["child", name] };
  const permissions = allow.map((kind) => `--allow-${kind}`);
  return {
    command,
    args: ["run", "--quiet", "--no-prompt", "--cached-only", ...flags, V8_FLAGS, ...permissions, entry],
  };
}

/** Returns the environment of a child: empty for the compiled program, else the location of Deno's cache. */
export function ownEnv(): Record<string, string> {
  const env: Record<string, string> = {};
  if (Deno.build.standalone) return env;
  for (const name of CACHE_VARIABLES) {
    try {
      const value = Deno.env.get(name);
      if (value !== undefined) env[name] = value;
    } catch {
      // not readable: not passed on
    }
  }
  return env;
}
