/** Runs one program with all programs that it starts, and stops them together. */
import { CommandOutput } from "./output.ts";

type Timer = ReturnType<typeof setTimeout>;

/** What is started. */
export interface Program {
  readonly path: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Record<string, string>;
  /** Whether its input is open for {@link RunningCommand.write}. */
  readonly has_input: boolean;
  readonly max_output_bytes: number;
  /** Shell that can stop a group where there is no `Deno.kill`; null: only the program is stopped. */
  readonly shell: string | null;
}

/** How a command ended. */
export interface Ending {
  readonly exit_code: number;
  /** Why it was stopped; null: it ended by itself. */
  readonly stopped: string | null;
  /** What it had started, was running when it ended by itself, and was stopped: commands, or `a program`. */
  readonly left: readonly string[];
}

/** Time in which a stopped command may end by itself, and in which the rest of its output is read. */
const TERM_MS = 2_000;
const DRAIN_MS = 250;

/** A command that was started. */
export class RunningCommand {
  readonly output: CommandOutput;
  /** Resolves when the program has ended, even if a program that it started has its output open. */
  readonly ended: Promise<Ending>;
  ending: Ending | null = null;
  readonly #child: Deno.ChildProcess;
  /** The arguments as one text. */
  readonly #words: string;
  readonly #readers: ReadableStreamDefaultReader<Uint8Array>[] = [];
  readonly #input: WritableStreamDefaultWriter<Uint8Array> | null;
  readonly #signals: (signal: Deno.Signal) => Promise<boolean>;
  readonly #commands: (group: number) => Promise<string[] | null>;
  readonly #killAll = (): void => this.#kill("SIGKILL");
  /** Receives what is written while someone waits for the command. */
  watch: ((chunk: Uint8Array, stream: "stdout" | "stderr") => void) | null = null;
  #stopped: string | null = null;
  readonly #timers: Timer[] = [];

  /** @throws when the program cannot be started. */
  constructor({ path, args, cwd, env, has_input, max_output_bytes, shell }: Program) {
    this.output = new CommandOutput(max_output_bytes);
    this.#words = args.join(" ").trim();
    this.#child = new Deno.Command(path, {
      args: [...args],
      cwd,
      env,
      clearEnv: true,
      detached: true, // the leader of a group, so that all can be stopped
      stdin: has_input ? "piped" : "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    this.#input = has_input ? this.#child.stdin.getWriter() : null;
    this.#signals = groupKiller(this.#child, shell, env);
    this.#commands = (group) => commandsOfGroup(group, shell, env);
    globalThis.addEventListener("unload", this.#killAll); // the program exits without the end of the run
    const read = (["stdout", "stderr"] as const).map((name) => this.#read(this.#child[name], name));
    this.ended = this.#end(read);
  }

  /** Writes to the program's input. @throws when it has none, or has closed it. */
  async write(text: string): Promise<void> {
    if (this.#input === null) throw new TypeError("it was started without input: start it with background");
    await this.#input.write(new TextEncoder().encode(text));
  }

  /** Closes the program's input. */
  closeInput(): void {
    this.#input?.close().catch(() => {}); // the program has ended
  }

  /** Stops the command, at once or after it was asked to end. */
  stop(reason: string, { now = false } = {}): void {
    if (this.ending !== null) return;
    this.#stopped ??= reason;
    if (now) return this.#kill("SIGKILL");
    this.#kill("SIGTERM");
    this.#timers.push(setTimeout(() => this.#kill("SIGKILL"), TERM_MS));
  }

  /** Stops the command after a time. */
  stopAfter(ms: number, reason: string): void {
    this.#timers.push(setTimeout(() => this.stop(reason), ms));
  }

  #kill(signal: Deno.Signal): void {
    void this.#signals(signal); // it never rejects
  }

  async #read(stream: ReadableStream<Uint8Array>, name: "stdout" | "stderr"): Promise<void> {
    const reader = stream.getReader();
    this.#readers.push(reader);
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        this.output.add(value);
        this.watch?.(value, name);
      }
    } catch {
      // the stream was cancelled, because another program has it open
    }
  }

  async #end(read: Promise<void>[]): Promise<Ending> {
    const { code } = await this.#child.status;
    for (const timer of this.#timers) clearTimeout(timer);
    const left = this.#stopped === null ? await this.#running() : [];
    this.#killAll(); // what it has started
    globalThis.removeEventListener("unload", this.#killAll);
    const all = Promise.all(read);
    let timer: Timer | undefined;
    const late = new Promise<void>((resolve) => timer = setTimeout(resolve, DRAIN_MS));
    await Promise.race([all, late]);
    clearTimeout(timer);
    for (const reader of this.#readers) await reader.cancel().catch(() => {}); // it has ended
    this.closeInput();
    return this.ending = { exit_code: code, stopped: this.#stopped, left };
  }

  /** Resolves to the programs of the group that are running: their commands, or `a program`. */
  async #running(): Promise<string[]> {
    if (!await this.#signals("SIGCONT")) return []; // which changes nothing: they are about to be stopped
    const commands = await this.#commands(this.#child.pid);
    if (commands === null) return ["a program"];
    const others = commands.filter((command) => !command.endsWith(this.#words)); // which is a subshell
    return commands.length > 0 && others.length === 0 ? ["a part of the command"] : others.map(shortened);
  }
}

/** Maximum characters of a command that is named. */
const MAX_NAME_CHARS = 60;

function shortened(command: string): string {
  const line = command.replace(/[^\P{Cc}]+/gu, " ");
  return line.length > MAX_NAME_CHARS ? `${line.slice(0, MAX_NAME_CHARS).toWellFormed()}…` : line;
}

/**
 * Resolves to the commands of a group's running programs; null where there is no `/proc`, or no shell to
 * read it: Deno itself needs all permissions for that.
 */
async function commandsOfGroup(
  group: number,
  shell: string | null,
  env: Record<string, string>,
): Promise<string[] | null> {
  if (shell === null) return null;
  const list = `[ -r /proc/self/stat ] || exit 1
    for at in /proc/[0-9]*; do {
      read -r stat < $at/stat && set -- \${stat##*) } && [ "$3" = ${group} ] &&
      printf '%s ' "$1" && tr '\\0\\n' '  ' < $at/cmdline && echo
    } 2>/dev/null; done; exit 0`;
  const listed = await outputOf(shell, env, list);
  if (listed === null) return null;
  const programs = new TextDecoder().decode(listed).split("\n").filter(Boolean);
  return programs.filter((line) => !/^[ZX]/.test(line)).map((line) => line.slice(1).trim());
}

/**
 * Returns a function that sends a signal to a program and all that it started, and resolves to whether any of
 * them is there. It is sent at once where there is `Deno.kill`.
 */
function groupKiller(
  child: Deno.ChildProcess,
  shell: string | null,
  env: Record<string, string>,
): (signal: Deno.Signal) => Promise<boolean> {
  return (signal) => {
    try {
      Deno.kill(-child.pid, signal);
      return Promise.resolve(true);
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return Promise.resolve(false); // all have ended
      try {
        child.kill(signal); // a sandbox has no Deno.kill
      } catch {
        // the program has ended
      }
      if (shell === null) return Promise.resolve(false);
      const kill = `kill -${signal.slice(3)} -- -${child.pid}`;
      return outputOf(shell, env, kill).then((output) => output !== null);
    }
  };
}

/** Resolves to what a shell prints for a text; null when the text fails, or the shell cannot be started. */
async function outputOf(
  shell: string,
  env: Record<string, string>,
  text: string,
): Promise<Uint8Array | null> {
  try {
    const { success, stdout } = await new Deno.Command(shell, {
      args: ["-c", text],
      env,
      clearEnv: true,
      stdin: "null",
      stderr: "null",
    }).output();
    return success ? stdout : null;
  } catch {
    return null; // such as a shell that the sandbox may not start
  }
}
