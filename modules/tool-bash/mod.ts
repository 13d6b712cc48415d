/** `tool-bash`: runs commands that the plan grants, and lets long ones continue as jobs. */
import { ShownOutput } from "./output.ts";
import { type Ending, RunningCommand } from "./process.ts";
import {
  type Coordinator,
  defineTool,
  errorMessage,
  type JsonObject,
  type JsonSchema,
  type ModuleInfo,
  type MountReturn,
  PreampError,
  readConfig,
  type RefuseConfig,
  type Tool,
  type ToolCallContext,
  toolFailure,
  ToolResult,
} from "preamp/base";

const CONFIG_SCHEMA: JsonSchema = {
  type: "object",
  properties: {
    root: {
      type: "string",
      format: "path",
      minLength: 1,
      description: "Folder that commands start in; default: the first readable folder",
    },
    env: {
      type: "object",
      description: "Variables of commands, besides those that they get from this process",
    },
    yield_s: {
      type: "number",
      exclusiveMinimum: 0,
      default: 10,
      description: "A command that takes longer continues as a job; less than the tool's timeout",
    },
    timeout_s: {
      type: "number",
      exclusiveMinimum: 0,
      default: 600,
      description: "Most time of a command that is not started in the background",
    },
    max_jobs: { type: "integer", minimum: 1, default: 8, description: "Jobs at once" },
    max_output_bytes: {
      type: "integer",
      minimum: 65_536,
      default: 4_194_304,
      description: "Output that is kept of one command; of all commands four times as much",
    },
  },
};

export const module: ModuleInfo = {
  id: "tool-bash",
  type: "tool",
  version: "1.0.0",
  description: "Runs commands that the plan grants, and lets long ones continue as jobs.",
  config_schema: CONFIG_SCHEMA,
  permissions: { run: ["bash"], read: ["${WORKSPACE}"] },
};

interface BashSettings {
  root?: string;
  env?: Record<string, string>;
  yield_s: number;
  timeout_s: number;
  max_jobs: number;
  max_output_bytes: number;
}

/**
 * Mounts `bash` and `job`.
 *
 * @throws {PreampError} `module_invalid` when the plan grants no program, or no folder is known.
 */
export async function mount(coordinator: Coordinator, config: JsonObject): Promise<MountReturn> {
  const settings = readConfig<BashSettings>(CONFIG_SCHEMA, config, checkEnv);
  const { run, read } = coordinator.permissions;
  const programs = run === true || Array.isArray(run) && run.length > 0 ? run : null;
  if (programs === null) refuse("the plan grants it no program: permissions such as { run: [deno, git] }");
  const folder = settings.root ?? (Array.isArray(read) ? read[0] : read === true ? "." : undefined);
  if (folder === undefined) refuse("it has no folder to start in: config.root, or permissions.read");
  const commands = new Commands(settings, folder, new Programs(programs));
  const tools = [bashTool(commands), jobTool(commands)];
  for (const tool of tools) await coordinator.mount("tools", tool, tool.name);
  coordinator.registerCapability("tool-bash.output", (name: unknown, from: unknown) => {
    return commands.readOutput(String(name), Number(from));
  });
  coordinator.registerCleanup(() => commands.end());
  return { name: module.id, version: module.version, provides: tools.map(({ name }) => name) };
}

function checkEnv({ env = {} }: BashSettings, refuse: RefuseConfig): void {
  for (const [name, value] of Object.entries(env)) {
    if (typeof value !== "string") refuse(["env", name], "must be text");
  }
}

function refuse(what: string): never {
  throw new PreampError("module_invalid", `Cannot mount ${module.id}: ${what}`);
}

const SHELLS: readonly string[] = ["bash", "sh", "zsh", "dash"];

/** The programs of the grant. */
class Programs {
  readonly #granted: true | readonly string[];
  /** Shell that runs whole texts; null: commands are started directly. */
  readonly shell: string | null;

  constructor(granted: true | readonly string[]) {
    this.#granted = granted;
    const isShell = (entry: string) => SHELLS.includes(entry.slice(entry.lastIndexOf("/") + 1));
    this.shell = granted === true ? "bash" : granted.find(isShell) ?? null;
  }

  get names(): string {
    return this.#granted === true ? "all programs" : this.#granted.join(", ");
  }

  /** Returns the granted program that a command names: by its name in PATH, or by the path of the grant. */
  find(name: string): string | null {
    if (this.#granted === true) return name;
    return this.#granted.find((entry) =>
      entry === name || entry.endsWith(`/${name}`) && !name.includes("/")
    ) ??
      null;
  }
}

/** Bytes of one answer to a reader of an output. */
const OUTPUT_PAGE_BYTES = 256 * 1024;

/** A command of this run. */
interface Job {
  readonly id: string;
  readonly command: string;
  readonly running: RunningCommand;
}

/** A command that cannot be started, in words for the model. */
class CommandError extends Error {}

/** The commands of one run. */
class Commands {
  readonly settings: BashSettings;
  readonly programs: Programs;
  readonly #folder: string;
  readonly #jobs = new Map<string, Job>();
  #last_id = 0;

  constructor(settings: BashSettings, folder: string, programs: Programs) {
    this.settings = settings;
    this.programs = programs;
    this.#folder = folder;
  }

  /** Starts a command. @throws {CommandError} */
  async start(command: string, has_input: boolean): Promise<Job> {
    if ([...this.#jobs.values()].filter(({ running }) => !running.ending).length >= this.settings.max_jobs) {
      throw new CommandError(`${this.settings.max_jobs} commands are running: stop a job first`);
    }
    const [path, ...args] = await this.#words(command);
    const { max_output_bytes } = this.settings;
    try {
      const running = new RunningCommand({
        path: path!,
        args,
        cwd: this.#folder,
        env: { ...environment(), ...this.settings.env },
        has_input,
        max_output_bytes,
        shell: this.programs.shell,
      });
      const job = { id: String(++this.#last_id), command, running };
      this.#jobs.set(job.id, job);
      this.#dropOutputs(4 * max_output_bytes);
      return job;
    } catch (error) {
      throw new CommandError(`${path} cannot be started: ${errorMessage(error)}`);
    }
  }

  /** @throws {CommandError} */
  job(id: string): Job {
    const job = this.#jobs.get(id);
    if (job) return job;
    throw new CommandError(`There is no job ${id}; jobs: ${[...this.#jobs.keys()].join(", ") || "none"}`);
  }

  /** Returns a part of a kept output; null for an unknown name, or one whose output was dropped. */
  readOutput(name: string, from: number): { base64: string; bytes: number } | null {
    const output = this.#jobs.get(name.replace(/^output:/, ""))?.running.output;
    if (!output || !Number.isSafeInteger(from) || from < 0) return null;
    return { base64: output.slice(from, OUTPUT_PAGE_BYTES).toBase64(), bytes: output.kept };
  }

  /** Stops all commands. */
  async end(): Promise<void> {
    const running = [...this.#jobs.values()].map(({ running }) => running);
    for (const one of running) one.stop("the run ended", { now: true });
    await Promise.all(running.map(({ ended }) => ended));
  }

  /** Forgets the oldest commands that have ended, so that the outputs have at most `max` bytes. */
  #dropOutputs(max: number): void {
    let bytes = 0;
    for (const { id, running } of [...this.#jobs.values()].reverse()) {
      bytes += running.output.kept;
      if (bytes > max && running.ending) this.#jobs.delete(id);
    }
  }

  /** Returns the program and its arguments. @throws {CommandError} */
  async #words(command: string): Promise<string[]> {
    const { shell } = this.programs;
    if (command.includes("\0")) throw new CommandError("A command must not contain NUL");
    // one stream for both, so that their order is kept
    if (shell !== null) return [shell, "-c", `exec 2>&1; ${command}`];
    const { MAX_COMMAND_CHARS, readShell } = await import("../shell/commands.ts");
    const { plain } = readShell(command);
    if (plain === null) {
      const reason = command.length > MAX_COMMAND_CHARS ? "is too long" : "needs a shell";
      throw new CommandError(
        `The command ${reason}, and the plan grants none: send one command with its words, without ; | & < > $ ` +
          `and patterns. Programs: ${this.programs.names}`,
      );
    }
    const program = this.programs.find(plain[0]!);
    if (program !== null) return [program, ...plain.slice(1)];
    throw new CommandError(`The plan does not grant ${plain[0]}. Programs: ${this.programs.names}`);
  }
}

/** Variables of this process that commands get. */
const PASSED_ON = ["PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "DENO_DIR", "DENO_TLS_CA_STORE"];

/** Returns the environment of commands: nothing that could be a secret, and no colours or pagers. */
function environment(): Record<string, string> {
  const env: Record<string, string> = { TERM: "dumb", NO_COLOR: "1", PAGER: "cat", GIT_PAGER: "cat" };
  for (const name of PASSED_ON) {
    try {
      const value = Deno.env.get(name);
      if (value !== undefined) env[name] = value;
    } catch {
      // a sandbox may not read it
    }
  }
  env.PATH ??= "/usr/local/bin:/usr/bin:/bin";
  return env;
}

/** A timer has at most 2³¹ ms, so a longer time needs no timer. */
const MAX_TIMEOUT_S = 2_000_000;

interface BashInput {
  command: string;
  timeout_s?: number;
  background?: boolean;
}

function bashTool(commands: Commands): Tool {
  const { programs, settings } = commands;
  const how = programs.shell === null
    ? `Run one command without shell syntax. Programs: ${programs.names}.`
    : `Run a ${programs.shell} command in the working folder.`;
  return defineTool({
    name: "bash",
    description:
      `${how} Long output is cut in the middle. A command that takes more than ${settings.yield_s} s ` +
      "continues as a job.",
    input: {
      type: "object",
      properties: {
        command: { type: "string", minLength: 1 },
        timeout_s: { type: "number", exclusiveMinimum: 0, description: "Stop the command after this time" },
        background: {
          type: "boolean",
          description: "Start it as a job, such as a server; it can be written to",
        },
        description: { type: "string", description: "What the command does, for the person who is asked" },
      },
      required: ["command"],
    },
    risk: "high",
    async execute({ command, timeout_s, background = false }: BashInput, call) {
      return await answered(async () => {
        const job = await commands.start(command, background);
        const limit = Math.min(timeout_s ?? MAX_TIMEOUT_S, background ? MAX_TIMEOUT_S : settings.timeout_s);
        if (limit < MAX_TIMEOUT_S) job.running.stopAfter(limit * 1000, `it took more than ${limit} s`);
        return await resultOf(job, background ? 0 : settings.yield_s, call, { stops: true });
      });
    },
  });
}

interface JobInput {
  id: string;
  action: "poll" | "write" | "stop";
  input?: string;
}

function jobTool(commands: Commands): Tool {
  return defineTool({
    name: "job",
    description: "See what a job has written since the last time, write to its input, or stop it.",
    input: {
      type: "object",
      properties: {
        id: { type: "string" },
        action: { type: "string", enum: ["poll", "write", "stop"] },
        input: { type: "string", description: "Text for write; include the newline. Empty: close the input" },
      },
      required: ["id", "action"],
    },
    risk: "high",
    async execute({ id, action, input = "" }: JobInput, call) {
      return await answered(async () => {
        const job = commands.job(id);
        if (action === "stop") job.running.stop("it was stopped");
        else if (action === "write") {
          if (job.running.ending) throw new CommandError(`Job ${id} has ended`);
          if (input === "") job.running.closeInput();
          else {
            await job.running.write(input).catch((error) => {
              throw new CommandError(`Job ${id} cannot be written to: ${errorMessage(error)}`);
            });
          }
        }
        return await resultOf(job, commands.settings.yield_s, call, { stops: false });
      });
    },
  });
}

async function answered(answer: () => Promise<unknown>): Promise<unknown> {
  try {
    return await answer();
  } catch (error) {
    if (error instanceof CommandError) return toolFailure(error.message, { type: "command_error" });
    throw error;
  }
}

/** Maximum commands that are named of those that were stopped with another one. */
const MAX_LEFT_NAMES = 3;

/**
 * Waits for a command up to a time, and shows what it writes; resolves to its new output and its state.
 *
 * @param options `stops`: whether the command is stopped when the call is cancelled.
 */
async function resultOf(
  job: Job,
  yield_s: number,
  call: ToolCallContext | undefined,
  { stops }: { stops: boolean },
): Promise<unknown> {
  const { running, id } = job;
  const signal = stops ? call?.signal : undefined;
  const stop = () => running.stop("the call was cancelled", { now: true });
  if (signal?.aborted) stop();
  signal?.addEventListener("abort", stop, { once: true });
  const shown = call?.output && new ShownOutput((text, stream) => call.output!(text, stream));
  running.watch = shown ? (chunk, stream) => shown.add(chunk, stream) : null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  try {
    const late = new Promise<null>((resolve) => timer = setTimeout(() => resolve(null), yield_s * 1000));
    const ending = await Promise.race([running.ended, late]);
    const text = running.output.unread(`output:${id}`);
    const written = text === "" || text.endsWith("\n") ? text : `${text}\n`;
    if (ending === null) return `${written}(still running as job ${id}: see job; it ends with the run)`;
    return endedText(written, ending);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", stop);
    running.watch = null;
    shown?.end();
  }
}

function endedText(shown: string, { exit_code, stopped, left }: Ending): unknown {
  const more = left.length > MAX_LEFT_NAMES ? ` and ${left.length - MAX_LEFT_NAMES} more` : "";
  const note = left.length === 0
    ? ""
    : `; still running, so stopped with it: ${
      left.slice(0, MAX_LEFT_NAMES).join(", ")
    }${more}; background keeps ` +
      "a command running";
  const text = `${shown}(${
    stopped === null ? "" : `stopped, because ${stopped}; `
  }exit code ${exit_code}${note})`;
  if (exit_code === 0 && stopped === null) return text;
  const reason = stopped === null
    ? `the command ended with exit code ${exit_code}`
    : `stopped, because ${stopped}`;
  return ToolResult({
    success: false,
    output: text,
    error: { message: reason, type: "command_failed", exit_code },
  });
}
