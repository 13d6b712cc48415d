/** Other processes of a bench: servers that tell their address on the first line of stdout, and how much memory they take. */

/** A server in a process of its own. */
export interface ServerProcess extends AsyncDisposable {
  readonly pid: number;
  /** Base URL, without a slash at the end. */
  readonly url: string;
}

/** What to run. */
export interface Program {
  command: string;
  args: readonly string[];
  env?: Record<string, string>;
}

/** The project's root as a path. */
export const ROOT: string = new URL("../../", import.meta.url).pathname;

/** Milliseconds a server may take until it tells its address. */
const START_TIMEOUT_MS = 30_000;

/**
 * Starts a server and waits for its address. Disposing ends it.
 *
 * @throws {Error} with what it wrote to stderr, when it ends before it tells its address.
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
  const errors = tail(child.stderr);
  const timer = setTimeout(() => child.kill("SIGKILL"), START_TIMEOUT_MS);
  const { line, rest } = await firstLine(child.stdout);
  clearTimeout(timer);
  const drained = Promise.all([rest, errors.ended, child.status]);
  if (!line.startsWith("http://")) {
    child.kill("SIGKILL");
    await drained;
    const command = [program.command, ...program.args].join(" ");
    throw new Error(
      `Cannot start "${command}": its first line must be its address: received "${line}"\n${errors.text()}`,
    );
  }
  return {
    pid: child.pid,
    url: line.replace(/\/$/, ""),
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      const kill = setTimeout(() => child.kill("SIGKILL"), 5_000);
      await drained;
      clearTimeout(kill);
    },
  };
}

/** Resolves to the first line of a stream, or all of it when it ends before; reads the rest away. */
async function firstLine(stream: ReadableStream<Uint8Array>): Promise<{ line: string; rest: Promise<void> }> {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!text.includes("\n")) {
    const { value, done } = await reader.read();
    if (done) break;
    text += value;
  }
  return { line: text.split("\n", 1)[0] ?? "", rest: readAway(reader) };
}

async function readAway(reader: ReadableStreamDefaultReader<string>): Promise<void> {
  while (!(await reader.read()).done);
}

/** Keeps the last 4,000 characters of a stream. */
function tail(stream: ReadableStream<Uint8Array>): { text(): string; ended: Promise<void> } {
  let kept = "";
  async function read(): Promise<void> {
    for await (const text of stream.pipeThrough(new TextDecoderStream())) kept = (kept + text).slice(-4_000);
  }
  return { text: () => kept, ended: read() };
}

/** Resolves to the resident memory of a process in MB, by Linux's `/proc`; null elsewhere. */
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

/** Resolves to the processor time that a process has taken, in ms, by Linux's `/proc`; null elsewhere. */
export async function processorMs(pid: number): Promise<number | null> {
  try {
    let total = 0;
    for await (const { name } of Deno.readDir(`/proc/${pid}/task`)) {
      // nanoseconds on a processor come first (Linux, Documentation/scheduler/sched-stats); `stat` counts in hundredths
      total += Number((await Deno.readTextFile(`/proc/${pid}/task/${name}/schedstat`)).split(" ")[0]);
    }
    return total / 1e6;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

/** Resolves to the arguments of `deno task start`, the way this project is started from source. */
export async function startArguments(): Promise<string[]> {
  const config = JSON.parse(await Deno.readTextFile(`${ROOT}deno.json`)) as { tasks: { start: string } };
  return config.tasks.start.split(" ").slice(1); // without "deno"
}

/** Resolves to the size of the compiled program in MB, or null when it was not compiled. */
export async function compiledProgram(): Promise<{ path: string; mb: number } | null> {
  const path = `${ROOT}dist/preamp`;
  try {
    return { path, mb: (await Deno.stat(path)).size / 1e6 };
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}
