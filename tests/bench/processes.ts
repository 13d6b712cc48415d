/** Starts servers as child processes and reads the memory and processor time of processes. */
import { endChild, Tail } from "../support/child_process.ts";

/** A server that runs as a child process. */
export interface ServerProcess extends AsyncDisposable {
  readonly pid: number;
  /** Base URL without a trailing slash. */
  readonly url: string;
}

/** A command with its arguments. */
export interface Program {
  command: string;
  args: readonly string[];
  env?: Record<string, string>;
}

/** The project's root as a path. */
export const ROOT: string = new URL("../../", import.meta.url).pathname;

/** Maximum milliseconds until a server prints its address. */
const START_TIMEOUT_MS = 30_000;

/**
 * Starts a server and waits for its address, the first line of its stdout. Disposing stops it.
 *
 * @throws {Error} with the end of its stderr, when it exits before it prints its address.
 */
export async function startServer(program: Program): Promise<ServerProcess> {
  const child = new Deno.Command(program.command, {
    args: [...program.args],
    env: program.env ?? {},
    cwd: ROOT,
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const [stdout, stderr] = [new Tail(child.stdout), new Tail(child.stderr)];
  const timer = setTimeout(() => endChild(child, "SIGKILL"), START_TIMEOUT_MS);
  const [line = ""] = (await stdout.until((text) => text.includes("\n"))).split("\n", 1);
  clearTimeout(timer);
  const ended = Promise.all([stdout.closed, stderr.closed, child.status]);
  if (!line.startsWith("http://")) {
    endChild(child, "SIGKILL");
    await ended;
    const command = [program.command, ...program.args].join(" ");
    throw new Error(
      `Cannot start "${command}": its first line must be its address: received "${line}"\n${
        stderr.text.slice(-4_000)
      }`,
    );
  }
  return {
    pid: child.pid,
    url: line.replace(/\/$/, ""),
    async [Symbol.asyncDispose]() {
      endChild(child, "SIGTERM");
      const kill = setTimeout(() => endChild(child, "SIGKILL"), 5_000);
      await ended;
      clearTimeout(kill);
    },
  };
}

/** Resolves to the resident memory of a process in MB, read from Linux's `/proc`; null on other systems. */
export async function residentMb(pid: number): Promise<number | null> {
  try {
    const status = await Deno.readTextFile(`/proc/${pid}/status`);
    const kilobytes = status.split("\n").find((line) => line.startsWith("VmRSS:"))?.split(/\s+/)[1];
    return kilobytes === undefined ? null : Number(kilobytes) / 1024;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

/** Resolves to the processor time of a process in ms, read from Linux's `/proc`; null on other systems. */
export async function processorMs(pid: number): Promise<number | null> {
  try {
    let total = 0;
    for await (const { name } of Deno.readDir(`/proc/${pid}/task`)) {
      // nanoseconds on a processor come first (Linux, Documentation/scheduler/sched-stats); `stat` counts in
      // hundredths
      total += Number((await Deno.readTextFile(`/proc/${pid}/task/${name}/schedstat`)).split(" ")[0]);
    }
    return total / 1e6;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

/** Resolves to the processor time in ms of a process and its children; null where it cannot be measured. */
export async function familyProcessorMs(pid: number): Promise<number | null> {
  const own = await processorMs(pid);
  if (own === null) return null;
  const children = (await Deno.readTextFile(`/proc/${pid}/task/${pid}/children`)).split(" ").filter(Boolean);
  const times = await Promise.all(children.map((child) => processorMs(Number(child))));
  return times.reduce((sum: number, ms) => sum + (ms ?? 0), own); // null: a child that has ended meanwhile
}

/** Options of {@link preampProgram}. */
export interface PreampOptions {
  /** Folder of its data. */
  home: string;
  /** URL of its store. */
  store: string;
  /** Folder of named plans. Default: that of `deno task start`. */
  plans?: string;
  /** Variables beside those that lift limits. */
  env?: Record<string, string>;
}

/** Resolves to the command of `preamp serve` from source, without keys, rates and limits of runs at once. */
export async function preampProgram({ home, store, plans, env }: PreampOptions): Promise<Program> {
  return {
    command: Deno.execPath(),
    args: [
      ...[...await startArguments(), "--port", "0", "--no-auth", "--store", store],
      ...(plans === undefined ? [] : ["--plans", plans]),
    ],
    env: {
      PREAMP_HOME: home,
      PREAMP_LIMITS_MAX_CONCURRENT_RUNS: "1000",
      PREAMP_LIMITS_MAX_RUNS_PER_KEY: "1000",
      PREAMP_RATES_REQUESTS_PER_MINUTE: "0",
      PREAMP_RATES_RUNS_PER_MINUTE: "0",
      NO_COLOR: "1",
      ...env,
    },
  };
}

/** Resolves to the arguments of `deno task start`, which starts the program from source. */
export async function startArguments(): Promise<string[]> {
  const config = JSON.parse(await Deno.readTextFile(`${ROOT}deno.json`)) as { tasks: { start: string } };
  return config.tasks.start.split(" ").slice(1); // without "deno"
}

/** Resolves to the size of the compiled program in MB, or null when it does not exist. */
export async function compiledProgram(): Promise<{ path: string; mb: number } | null> {
  const path = `${ROOT}dist/preamp`;
  try {
    return { path, mb: (await Deno.stat(path)).size / 1e6 };
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}
