/**
 * Limits that the operating system enforces on a child process. `/bin/sh` sets them with `ulimit` and
 * replaces itself by the program. On a host without it a child is started directly, and only its own watchdog
 * limits it.
 */

/** Limits of a child, a second line behind the watchdog in the child. */
export interface SystemLimits {
  readonly memory_mb: number;
  readonly cpu_s: number;
}

/** A program and its arguments. */
export interface Program {
  readonly command: string;
  readonly args: readonly string[];
}

/** A program as it is passed to Deno. `detached`: Deno creates the process group. */
export interface StartedProgram extends Program {
  readonly detached: boolean;
}

/** MB of data that the runtime reserves before it executes anything (measured). */
const RUNTIME_DATA_MB = 1_100;
/** Most files that a child may have open. */
const MAX_FILES = 512;
/** Largest file that a child may write, in MB. */
const MAX_FILE_MB = 1_024;
/** Total processor time of a child, in multiples of the limit of one call. The watchdog limits each call. */
const CPU_CALLS = 100;

const SHELL = "/bin/sh";

/**
 * Paths of `setsid` in util-linux and busybox. The shell leads no group, so `setsid` keeps its process id.
 */
const SETSID = ["/usr/bin/setsid", "/bin/setsid"];

/**
 * Sets the limits and starts the program, with `nice` if available. A limit that the system does not support
 * is skipped.
 */
const SCRIPT = `
for limit in "-c 0" "-d $1" "-t $2" "-n $3" "-f $4"; do ulimit $limit 2>/dev/null || :; done
shift 4
if command -v nice >/dev/null 2>&1; then exec nice -n 5 "$@"; fi
exec "$@"
`;

let has_limits: boolean | undefined;

/**
 * Returns whether this process may start a POSIX shell. The result is the same for the life of the process.
 */
export function hasSystemLimits(): boolean {
  return has_limits ??= Deno.build.os !== "windows" && mayRun(SHELL) && isFile(SHELL);
}

/**
 * Returns how to start a program within limits. With `group` it leads a process group: `setsid` creates it in
 * 0.4 ms, while Deno's option `detached` copies the memory map of this process and blocks its thread for 8 to
 * 80 ms (150 MB, Deno 2.9).
 */
export function withLimits(
  program: Program,
  { memory_mb, cpu_s }: SystemLimits,
  group: boolean,
): StartedProgram {
  if (!hasSystemLimits()) return { ...program, detached: group };
  const limits = [
    (RUNTIME_DATA_MB + memory_mb) * 1024, // KB
    cpu_s * CPU_CALLS,
    MAX_FILES,
    MAX_FILE_MB * 2048, // half KB, the unit of POSIX
  ].map(String);
  const setsid = group ? SETSID.filter(isFile).slice(0, 1) : [];
  return {
    command: SHELL,
    args: ["-c", SCRIPT, "preamp-child", ...limits, ...setsid, program.command, ...program.args],
    detached: group && setsid.length === 0,
  };
}

/** Returns whether this process may start a program. */
export function mayRun(command: string): boolean {
  return typeof Deno.Command === "function" && typeof Deno.permissions?.querySync === "function" &&
    Deno.permissions.querySync({ name: "run", command }).state === "granted";
}

function isFile(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false; // or not readable
  }
}
