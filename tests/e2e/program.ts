/**
 * The program as a process: `deno run` with the permissions of `deno task start`, or the executable that
 * `$PROGRAM_UNDER_TEST` names. Knows how to start it, talk to it and end it surely; what it should do is the
 * tests' business.
 */
import { cli } from "../../src/cli/mod.ts";
import { endChild, Tail } from "../support/child_process.ts";
import { HANGS_MS } from "../support/clock.ts";
import { fakeIo } from "../support/io.ts";
import { assertCommandReplays, assertLinesAreJson, assertRunsReplay, type Result } from "./after_effects.ts";

/** The project's root as a path, with a slash at the end. */
export const ROOT: string = new URL("../../", import.meta.url).pathname;

/** How to start the program. */
export interface ProgramOptions {
  /** Added to the environment, which has no `PREAMP_*` of its own. */
  env?: Record<string, string>;
  /** Default: the project's root. */
  cwd?: string;
  /** Text on stdin; default none, as if from an empty file. */
  stdin?: string;
  /** Runs it in a terminal without colours: stdout has all that is displayed, and keys are typed. */
  terminal?: boolean;
}

/** What a command left when it had ended. */
export interface Ended {
  code: number;
  signal: Deno.Signal | null;
  stdout: string;
  stderr: string;
}

/** A process of the program that is under way. */
export interface Program extends AsyncDisposable {
  readonly pid: number;
  /** What it has written so far. */
  readonly stdout: Tail;
  readonly stderr: Tail;
  kill(signal: Deno.Signal): void;
  /** Types keys into its terminal. */
  type(keys: string): Promise<void>;
  /** Resolves when it has ended. */
  readonly ended: Promise<Ended>;
}

/** A started server with its address. */
export interface ServerProgram extends Program {
  /** Base URL, without a slash at the end. */
  readonly url: string;
  /** The key that it generated and printed; empty when it printed none. */
  readonly key: string;
  /** Sends a request with that key. */
  fetch(path: string, init?: RequestInit): Promise<Response>;
  /** Sends JSON with that key and resolves to the JSON of the answer. */
  post(
    path: string,
    body: unknown,
    headers?: Record<string, string>,
  ): Promise<{ status: number; body: Json }>;
  /** Resolves to the JSON that a path answers. */
  get(path: string): Promise<{ status: number; body: Json }>;
}

/** JSON whose shape the test asserts. */
// deno-lint-ignore no-explicit-any
export type Json = any;

/** Starts a command. Dispose of it, or await `ended`. */
export async function startProgram(args: readonly string[], options: ProgramOptions = {}): Promise<Program> {
  const { terminal = false } = options;
  const words = [...await commandLine(), ...args];
  const [command = "", ...given] = terminal ? inTerminal(words) : words;
  const home = await Deno.makeTempDir({ prefix: "preamp-home-" }); // its store is its own, unless the test names one
  const child = new Deno.Command(command, {
    args: given,
    clearEnv: true,
    env: {
      ...environment(),
      PREAMP_HOME: home,
      ...terminal ? { TERM: "xterm", NO_COLOR: "1" } : {},
      ...options.env,
    },
    cwd: options.cwd ?? ROOT,
    stdin: options.stdin === undefined && !terminal ? "null" : "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const stdout = new Tail(child.stdout);
  const stderr = new Tail(child.stderr);
  const keys = terminal ? child.stdin.getWriter() : null;
  if (options.stdin !== undefined) await writeAll(child.stdin, options.stdin);
  const ended = Promise.all([child.status, stdout.closed, stderr.closed]).then(async ([{ code, signal }]) => {
    await keys?.close().catch(() => {}); // the program has ended
    await Deno.remove(home, { recursive: true });
    assertNothingUnhandled(args, terminal ? stdout.text : stderr.text);
    return { code, signal, stdout: stdout.text, stderr: stderr.text };
  });
  ended.catch(() => {}); // thrown to who disposes of it or waits for its end
  return {
    pid: child.pid,
    stdout,
    stderr,
    ended,
    kill: (signal) => child.kill(signal),
    type: async (text) => await keys?.write(new TextEncoder().encode(text)),
    async [Symbol.asyncDispose]() {
      const late = setTimeout(() => endChild(child, "SIGKILL"), HANGS_MS);
      endChild(child, "SIGTERM");
      await ended;
      clearTimeout(late);
    },
  };
}

/**
 * Matches an unhandled error of the host, as Deno prints it (maybe in colours) before it ends a process, and
 * as the server logs it. Deno before 2.9 also prints the errors that a hostile guest leaves uncaught in its
 * own worker; they end only it.
 */
const UNHANDLED =
  /^.{0,20}error.{0,10}: .{0,20}Uncaught(?! \(in worker "guest"\)).*$|^.*"code":"(?:unhandled_rejection|uncaught_error)".*$/m;

/**
 * @throws {Error} when the host left an error unhandled, or printed a warning of Node's, whatever else it did
 * right.
 */
function assertNothingUnhandled(args: readonly string[], stderr: string): void {
  const found = UNHANDLED.exec(stderr) ?? /^.*\bDeprecationWarning\b.*$/m.exec(stderr);
  if (found) throw new Error(`"preamp ${args.join(" ")}" left an error unhandled: ${found[0]}`);
}

/** Runs a command to its end; a run is replayed then. @throws {Error} when it does not end. */
export async function runProgram(args: readonly string[], options: ProgramOptions = {}): Promise<Ended> {
  const ended = await runToEnd(args, options);
  // modules read variables of the process, which are those of all test files: a command that sets some has a
  // process
  const is_here = Object.keys(options.env ?? {}).every((name) => name.startsWith("PREAMP_"));
  await assertReplays(args, ended, options, is_here ? runHere : runToEnd);
  return ended;
}

/**
 * As {@link runProgram}, in this process unless an executable is tested: for commands whose start, signals
 * and permissions are tested elsewhere. Variables are those of Preamp only.
 */
export async function runCommand(args: readonly string[], options: ProgramOptions = {}): Promise<Result> {
  if (Deno.env.has("PROGRAM_UNDER_TEST")) return await runProgram(args, options);
  const ended = await runHere(args, options);
  await assertReplays(args, ended, options, runHere);
  return ended;
}

async function assertReplays(
  args: readonly string[],
  ended: Result,
  options: ProgramOptions,
  again: (args: readonly string[], options: ProgramOptions) => Promise<Result>,
): Promise<void> {
  await assertCommandReplays(
    args,
    ended,
    (args, stdin) => again(args, stdin === undefined ? options : { ...options, stdin }),
  );
}

/** Runs a command in this process. */
async function runHere(
  args: readonly string[],
  { cwd = ROOT, env = {}, stdin = "" }: ProgramOptions,
): Promise<Result> {
  const home = await Deno.makeTempDir({ prefix: "preamp-home-" });
  const io = fakeIo({
    cwd: new URL(`file://${cwd.replace(/\/?$/, "/")}`),
    env: { ...environment(), PREAMP_HOME: home, ...env },
    stdin,
  });
  try {
    const code = await cli(args, io);
    return { code, stdout: io.stdout, stderr: io.stderr };
  } finally {
    await Deno.remove(home, { recursive: true });
  }
}

async function runToEnd(args: readonly string[], options: ProgramOptions): Promise<Ended> {
  const program = await startProgram(args, options);
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    program.kill("SIGKILL");
  }, HANGS_MS);
  const ended = await program.ended;
  clearTimeout(timer);
  if (late) throw new Error(`Cannot run "preamp ${args.join(" ")}": it did not end\n${ended.stderr}`);
  return ended;
}

/**
 * Starts `preamp serve` on a free port and waits until it has printed its address and its `curl`. Disposing
 * of it replays its runs and looks at its log.
 * @param args further arguments of `serve`.
 */
export async function startServer(
  args: readonly string[] = [],
  options: ProgramOptions = {},
): Promise<ServerProgram> {
  const program = await startProgram(["serve", "--port", "0", ...args], options);
  const timer = setTimeout(() => program.kill("SIGKILL"), HANGS_MS);
  const greeting = await program.stdout.until((text) => text.includes("curl "));
  clearTimeout(timer);
  // a server on every address of this machine is reached by loopback, the only one that tests may use
  const url = (greeting.split("\n", 1)[0] ?? "").replace("//0.0.0.0:", "//127.0.0.1:");
  if (!url.startsWith("http://")) {
    await program[Symbol.asyncDispose]();
    throw new Error(
      `Cannot start the server: its first line must be its address: received "${url}"\n${program.stderr.text}`,
    );
  }
  const key = /Bearer ([\w-]+)/.exec(greeting)?.[1] ?? "";
  const authorised = (headers?: HeadersInit) => {
    const all = new Headers(headers);
    if (key !== "" && !all.has("authorization")) all.set("authorization", `Bearer ${key}`);
    return all;
  };
  const send = (path: string, init: RequestInit = {}) =>
    fetch(url + path, { ...init, headers: authorised(init.headers) });
  const json = async (response: Response) => ({
    status: response.status,
    body: await response.json() as Json,
  });
  const server: ServerProgram = {
    ...program,
    url,
    key,
    fetch: send,
    get: async (path) => await json(await send(path)),
    post: async (path, body, headers = {}) =>
      await json(
        await send(path, {
          method: "POST",
          body: JSON.stringify(body),
          headers: { "content-type": "application/json", ...headers },
        }),
      ),
    async [Symbol.asyncDispose]() {
      try {
        await assertRunsReplay(server);
      } finally {
        await program[Symbol.asyncDispose]();
      }
      if (!args.includes("pretty")) assertLinesAreJson(program.stderr.text);
    },
  };
  return server;
}

/**
 * The command line before the arguments. The permissions are those of `deno task start`, wherever they
 * change.
 */
/** Returns the command that runs another one in a terminal of 100 columns, and ends with its exit code. */
function inTerminal(words: readonly string[]): string[] {
  const command = words.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(" ");
  return ["script", "-qefc", `stty cols 100 rows 40; exec ${command}`, "/dev/null"];
}

async function commandLine(): Promise<string[]> {
  const binary = Deno.env.get("PROGRAM_UNDER_TEST");
  if (binary) return [binary.startsWith("/") ? binary : ROOT + binary];
  const { tasks } = JSON.parse(await Deno.readTextFile(`${ROOT}deno.json`)) as { tasks: { start: string } };
  const [, ...args] = tasks.start.split(" ");
  return [Deno.execPath(), ...args.slice(0, args.indexOf("main.ts")), `${ROOT}main.ts`];
}

function environment(): Record<string, string> {
  const kept = Object.entries(Deno.env.toObject()).filter(([name]) => !name.startsWith("PREAMP_"));
  return Object.fromEntries(kept);
}

async function writeAll(stdin: WritableStream<Uint8Array>, text: string): Promise<void> {
  const writer = stdin.getWriter();
  try {
    await writer.write(new TextEncoder().encode(text));
    await writer.close();
  } catch (error) {
    if (!(error instanceof Deno.errors.BrokenPipe)) throw error; // it ended without reading
  }
}
