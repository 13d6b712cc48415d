/**
 * Time limits of child processes that hold on a busy machine: the time that a child waits for a processor
 * does not count.
 */
import { hasSystemLimits } from "./system_limits.ts";
import { LateError, within } from "./system_clock.ts";

/** Reads the processor time of a process, in milliseconds since its start; undefined if it is unknown. */
export type ProcessorTime = () => Promise<number | undefined>;

/** Part of the limit that passes before the processor time is read first: most work ends before. */
const FIRST = 1 / 20;
/** Part of the limit between two reads. */
const INTERVAL = 1 / 4;
/** Part of an interval that a process works at least, unless it is idle. */
const WORKING = 1 / 100;

/**
 * Waits for work of a process for at most `ms` milliseconds of its own time: its processor time, and time in
 * which it was idle. Where the processor time is unknown, all time counts. The work continues after a
 * timeout.
 *
 * @param wait Default: {@link within}.
 * @throws {LateError} after that time; after 100 times as long even if the process hardly works.
 */
export async function withinOwnTime<T>(
  ms: number,
  work: Promise<T>,
  processorTime: ProcessorTime,
  wait: (ms: number, work: Promise<T>) => Promise<T> = within,
): Promise<T> {
  let own_ms = 0;
  let before: number | undefined;
  for (let interval_ms = ms * FIRST; own_ms < ms; interval_ms = ms * INTERVAL) {
    try {
      return await wait(interval_ms, work);
    } catch (error) {
      if (!(error instanceof LateError)) throw error;
    }
    const now = await processorTime();
    const worked_ms = now === undefined || before === undefined ? 0 : now - before;
    before = now;
    own_ms += worked_ms < interval_ms * WORKING ? interval_ms : worked_ms;
  }
  throw new LateError(`not done within ${ms} ms`);
}

/** Writes the fields of `/proc` or, on other systems than Linux, the time as POSIX describes it for `ps`. */
const SCRIPT =
  `{ IFS= read -r line < /proc/$1/stat && printf '%s' "$line"; } 2>/dev/null || ps -o time= -p $1`;
/** Milliseconds of a tick in `/proc`: `sysconf(_SC_CLK_TCK)` is 100 on all platforms of Linux. */
const TICK_MS = 10;

/** Resolves to the processor time of a process of this user; undefined if this host does not reveal it. */
export async function processorTimeOf(pid: number): Promise<number | undefined> {
  if (!hasSystemLimits()) return undefined;
  try {
    const { stdout } = await new Deno.Command("/bin/sh", {
      args: ["-c", SCRIPT, "preamp-time", String(pid)],
      clearEnv: true,
      env: { PATH: "/usr/bin:/bin", LC_ALL: "C" },
      stdin: "null",
      stderr: "null",
    }).output();
    return timeIn(new TextDecoder().decode(stdout));
  } catch {
    return undefined; // no process can be started now
  }
}

/** Returns the time in an output of the script. Exported for its test. */
export function timeIn(text: string): number | undefined {
  const fields = text.slice(text.lastIndexOf(")") + 1).trim().split(" "); // the name before may contain anything
  if (text.includes(")")) return (Number(fields[11]) + Number(fields[12])) * TICK_MS; // utime and stime, proc_pid_stat(5)
  const time = /^(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)$/.exec(text.trim()); // [[dd-]hh:]mm:ss
  if (!time) return undefined;
  const [days = 0, hours = 0, minutes, seconds] = time.slice(1).map((part) => Number(part ?? 0));
  return (((days * 24 + hours) * 60 + minutes!) * 60 + seconds!) * 1000;
}
