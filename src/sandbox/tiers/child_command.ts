/** How a child of the process tier is started: our own program in another role, within limits that the system holds. */
import { GUEST_ROLE } from "../child/settings.ts";

/** What the system holds a child to, behind the watchdog in it (modules.md, Child mode). */
export interface SystemLimits {
  readonly memory_mb: number;
  readonly cpu_s: number;
}

/** MB that a runtime reserves for data before it has run anything (measured; modules.md). */
const RUNTIME_DATA_MB = 1_100;
/** Files a child may have open. */
const MAX_FILES = 512;
/** MB of a file that a child may write. */
const MAX_FILE_MB = 1_024;
/** Calls of the whole processor time that a child may have in its life: the watchdog counts each. */
const CPU_CALLS = 100;

/** The flags that the compiled program has baked in: no code from strings, and a start without the optimising compiler for wasm. */
const V8_FLAGS = "--v8-flags=--disallow-code-generation-from-strings,--liftoff-only";

/** The same permissions as the compiled program: the child gives them up, the worker in it gets the grant. */
const ALLOWED = ["net", "read", "write", "env", "run", "sys", "ffi"].map((kind) => `--allow-${kind}`);

/**
 * Sets the limits and becomes the program, niced where there is `nice`. The shell's own words (POSIX `ulimit`, as dash, bash and
 * busybox have it); a limit the system does not know is no reason to have none of the others.
 */
const SHELL = `
for limit in "-c 0" "-d $1" "-t $2" "-n $3" "-f $4"; do ulimit $limit 2>/dev/null || :; done
shift 4
if command -v nice >/dev/null 2>&1; then exec nice -n 5 "$@"; fi
exec "$@"
`;

/** A program and its arguments. */
export interface Program {
  readonly command: string;
  readonly args: readonly string[];
}

/** How a child is started; `detached`: Deno has to give it a group of its own. */
export interface ChildProgram extends Program {
  readonly detached: boolean;
}

/**
 * Returns how a child is started, in a group of its own: by `setsid` where there is one. Deno's own way (`detached`) copies this
 * process's memory map first and stops its thread for 8 to 80 ms; without it a start takes 0.4 ms (measured at 150 MB, Deno 2.9).
 */
export function childCommand(limits: SystemLimits): ChildProgram {
  const command = Deno.execPath();
  const args = ownArguments();
  const [setsid] = SETSID.filter(isThere);
  if (setsid === undefined) return { ...withLimits({ command, args }, limits), detached: true };
  return { ...withLimits({ command: setsid, args: [command, ...args] }, limits), detached: false };
}

/** Where util-linux and busybox have it. The shell that becomes it leads no group: it goes on under the same number. */
const SETSID = ["/usr/bin/setsid", "/bin/setsid"];

function isThere(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false; // or it may not be looked at: then it is not used
  }
}

/** Returns how a program of ours is started within limits: `/bin/sh` sets them, then is the program. */
export function withLimits({ command, args }: Program, { memory_mb, cpu_s }: SystemLimits): Program {
  const limits = [
    (RUNTIME_DATA_MB + memory_mb) * 1024, // KB
    cpu_s * CPU_CALLS,
    MAX_FILES,
    MAX_FILE_MB * 2048, // half KB, the unit of POSIX
  ].map(String);
  return { command: "/bin/sh", args: ["-c", SHELL, "preamp-child", ...limits, command, ...args] };
}

function ownArguments(): string[] {
  if (Deno.build.standalone) return [...GUEST_ROLE];
  const entry = new URL("../child/child_main.ts", import.meta.url).href;
  return [
    ...["run", "--quiet", "--no-prompt", "--cached-only", "--no-lock", "--unstable-worker-options"],
    V8_FLAGS,
    ...ALLOWED,
    entry,
  ];
}

/**
 * Returns what a child is started with; it gives the module other variables before that is there. Deno has to find its cache
 * when it runs from source, and must not find another one when it is compiled.
 */
export function childEnv(folder: string): Record<string, string> {
  const env: Record<string, string> = { TMPDIR: folder, NO_COLOR: "1", PATH: "/usr/local/bin:/usr/bin:/bin" };
  if (Deno.build.standalone) return { ...env, HOME: folder, DENO_DIR: folder };
  for (const name of ["DENO_DIR", "HOME", "XDG_CACHE_HOME"]) {
    const value = readEnv(name);
    if (value !== undefined) env[name] = value;
  }
  return env;
}

function readEnv(name: string): string | undefined {
  try {
    return Deno.env.get(name);
  } catch {
    return undefined; // not permitted to be read: then it is not passed on
  }
}
