/** Builds the command line of a child of the process tier: this program in another role, within limits of the operating system. */
import { GUEST_ROLE } from "../child/settings.ts";

/** Limits that the operating system enforces, as a second line behind the watchdog in the child. */
export interface SystemLimits {
  readonly memory_mb: number;
  readonly cpu_s: number;
}

/** MB of data that the runtime reserves before it executes anything (measured). */
const RUNTIME_DATA_MB = 1_100;
/** Most files that a child may have open. */
const MAX_FILES = 512;
/** Largest file that a child may write, in MB. */
const MAX_FILE_MB = 1_024;
/** Total processor time of a child, in multiples of the limit of one call. The watchdog limits each call. */
const CPU_CALLS = 100;

/** V8 flags that the compiled program contains: no code from strings, no optimising compiler for WebAssembly. */
const V8_FLAGS = "--v8-flags=--disallow-code-generation-from-strings,--liftoff-only";

/** Permissions of the compiled program. The child revokes them after it has started the worker with its grant. */
const ALLOWED = ["net", "read", "write", "env", "run", "sys", "ffi"].map((kind) => `--allow-${kind}`);

/**
 * Sets the limits with POSIX `ulimit` and replaces itself by the program, with `nice` if available. A limit that the system does
 * not support is skipped.
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

/** Command of a child. `detached`: Deno must create the process group. */
export interface ChildProgram extends Program {
  readonly detached: boolean;
}

/**
 * Returns the command of a child in a process group of its own, created by `setsid` if available. Deno's option `detached` copies
 * the memory map of this process and blocks its thread for 8 to 80 ms; with `setsid` a start takes 0.4 ms (150 MB, Deno 2.9).
 */
export function childCommand(limits: SystemLimits): ChildProgram {
  const command = Deno.execPath();
  const args = ownArguments();
  const [setsid] = SETSID.filter(isThere);
  if (setsid === undefined) return { ...withLimits({ command, args }, limits), detached: true };
  return { ...withLimits({ command: setsid, args: [command, ...args] }, limits), detached: false };
}

/** Paths of `setsid` in util-linux and busybox. The shell leads no group, so `setsid` keeps its process id. */
const SETSID = ["/usr/bin/setsid", "/bin/setsid"];

function isThere(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false; // or not readable
  }
}

/** Returns the command that runs a program within limits: `/bin/sh` sets them and replaces itself by the program. */
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
 * Returns the environment of a child process, which replaces it by the module's variables before it links the module. Deno needs
 * its cache folder when it runs from source; the compiled program gets an empty one.
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
    return undefined; // not readable: not passed on
  }
}
