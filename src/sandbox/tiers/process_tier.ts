/**
 * Host's side of the `process` tier, where a module runs in a child of our own executable. Starts the child in a process group of
 * its own, reads its output within limits, and kills it as a group.
 */
import type { Channel, ChannelListener, ExitReason, GuestExit } from "../channel.ts";
import { LineReader } from "../child/line_reader.ts";
import { type ChildSettings, EXIT, type MakeReady, type Readiness, WATCH } from "../child/settings.ts";
import { childCommand, childEnv, type SystemLimits } from "./child_command.ts";
import { FairScheduler } from "./fair_scheduler.ts";

/** Bytes of stderr that are kept, to recognise a child that ran out of memory. */
const MAX_STDERR = 16 * 1024;
/** Most bytes that wait for a child that does not read. */
const MAX_WAITING = 64 * 1024 * 1024;
/** Size of the read buffer in bytes. */
const READ_BYTES = 64 * 1024;
/** Milliseconds to wait for the last output of a child that has exited. */
const DRAIN_MS = 200;

/** Shared by all guests, because the host reads them on one thread. */
const SCHEDULER = new FairScheduler();

/** A started child, which may not have a module yet. */
export class GuestProcess implements Channel {
  readonly exited: Promise<GuestExit>;
  readonly stopped: Promise<boolean>;
  readonly #process: Deno.ChildProcess;
  readonly #folder: string;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #reader: ReadableStreamBYOBReader;
  readonly #encoder = new TextEncoder();
  #listener: ChannelListener | null = null;
  #exit: GuestExit | null = null;
  /** Lines of this event-loop turn; they are written together. */
  #unsent = "";
  #unread_bytes = 0;
  #stderr = "";

  constructor(process: Deno.ChildProcess, folder: string) {
    this.#process = process;
    this.#folder = folder;
    this.#writer = process.stdin.getWriter();
    this.#writer.closed.catch(() => {}); // the exit status reports it
    this.#reader = process.stdout.getReader({ mode: "byob" });
    void this.#collectStderr();
    this.exited = this.#run();
    this.stopped = this.exited.then(() => true);
    process.unref();
  }

  /** Starts the child's worker before it has a module. Called at most once, before {@link assign}. */
  prepare(ready: Readiness): void {
    this.#write(JSON.stringify({ ready } satisfies MakeReady));
  }

  /** Assigns a module's grant to the child. */
  assign(settings: ChildSettings): void {
    this.#process.ref();
    this.#write(JSON.stringify(settings));
  }

  listen(listener: ChannelListener): void {
    this.#listener = listener;
  }

  send(text: string): void {
    this.#write(text);
  }

  watch(deadline_ms: number): void {
    this.#write(`${WATCH}${Math.ceil(deadline_ms)}`);
  }

  async kill(exit: GuestExit): Promise<void> {
    this.#refProcess();
    this.#end(exit);
    await this.exited;
  }

  /** Keeps this process alive until the child has exited. */
  #refProcess(): void {
    try {
      this.#process.ref();
    } catch {
      // it has exited already
    }
  }

  /** Whether the child is not known to have exited. */
  get alive(): boolean {
    return this.#exit === null;
  }

  #write(line: string): void {
    if (this.#exit) return;
    if (this.#unsent === "") queueMicrotask(() => this.#flush());
    this.#unsent += line + "\n";
  }

  #flush(): void {
    if (this.#exit) return;
    const bytes = this.#encoder.encode(this.#unsent);
    this.#unsent = "";
    this.#unread_bytes += bytes.length;
    if (this.#unread_bytes > MAX_WAITING) {
      return this.#end({ cause: "violation", detail: "it does not read its input" });
    }
    this.#writer.write(bytes).then(
      () => {
        this.#unread_bytes -= bytes.length;
      },
      () => {}, // the exit status reports it
    );
  }

  /** Records the first exit reason, since later ones are its consequences, and kills the child. */
  #end(exit: GuestExit): void {
    if (this.#exit) return;
    this.#exit = exit;
    this.#killGroup();
  }

  /** Kills the child and all processes that it started. */
  #killGroup(): void {
    for (const pid of [-this.#process.pid, this.#process.pid]) {
      try {
        Deno.kill(pid, "SIGKILL");
      } catch {
        // no such process is left
      }
    }
  }

  async #run(): Promise<GuestExit> {
    const reading = this.#read();
    const status = await this.#process.status;
    this.#killGroup(); // also processes that the child started
    await Promise.race([reading, new Promise((resolve) => setTimeout(resolve, DRAIN_MS))]);
    this.#exit ??= this.#exitOf(status);
    await this.#reader.cancel().catch(() => {}); // the other end is closed
    await this.#writer.abort().catch(() => {});
    await Deno.remove(this.#folder, { recursive: true }).catch(() => {}); // the folder may be gone already
    return this.#exit;
  }

  async #read(): Promise<void> {
    const lines = new LineReader();
    const limit = () => this.#listener?.limit() ?? 0;
    let buffer = new ArrayBuffer(READ_BYTES);
    try {
      for (;;) {
        const { value, done } = await this.#reader.read(new Uint8Array(buffer)); // perf: the same memory each time
        if (done) return;
        buffer = value.buffer;
        const texts: string[] = [];
        const taken = lines.take(value, limit, (text) => void texts.push(text));
        await this.#deliver(texts);
        if (!taken) return this.#end({ cause: "output", detail: "it sent a message that is too large" });
      }
    } catch {
      // cancelled or broken: the exit status reports it
    }
  }

  /** Delivers texts in the slices of the scheduler, and waits while the host is busy with this guest. */
  async #deliver(texts: readonly string[]): Promise<void> {
    for (const text of texts) {
      if (this.#exit) return;
      SCHEDULER.begin();
      this.#listener?.take(text);
      // answering counts as work too, and may never return to the event loop
      for (let busy = this.#listener?.ready(); busy; busy = this.#listener?.ready()) await busy;
      const turn = SCHEDULER.end();
      if (turn) await turn;
    }
  }

  async #collectStderr(): Promise<void> {
    const decoder = new TextDecoder();
    try {
      for await (const chunk of this.#process.stderr) {
        this.#stderr = (this.#stderr + decoder.decode(chunk, { stream: true })).slice(-MAX_STDERR);
      }
    } catch {
      // the child has exited
    }
  }

  #exitOf({ code, signal }: Deno.CommandStatus): GuestExit {
    const cause = BY_CODE[code];
    if (cause) return { cause, detail: DETAILS[cause] };
    if (signal === "SIGXCPU") return { cause: "timeout", detail: DETAILS.timeout };
    if (/out of memory|memory allocation of|Cannot allocate memory/i.test(this.#stderr)) {
      return { cause: "memory", detail: DETAILS.memory };
    }
    const detail = signal ? `the process was killed by ${signal}` : `its process ended with code ${code}`;
    return { cause: "crashed", detail };
  }
}

const BY_CODE: Readonly<Record<number, Exclude<ExitReason, "ended">>> = {
  [EXIT.memory]: "memory",
  [EXIT.cpu]: "timeout",
  [EXIT.deadline]: "timeout",
};

const DETAILS: Readonly<Record<Exclude<ExitReason, "ended">, string>> = {
  memory: "it exceeded its memory limit (isolation.memory_mb)",
  timeout: "it exceeded its processor time (isolation.cpu_s), or did not answer in time",
  crashed: "its process ended",
  output: "it sent more data than allowed",
  violation: "it broke the protocol",
};

/** Starts a child without a module. @throws {Error} if this host cannot start it. */
export function startGuestProcess(limits: SystemLimits): GuestProcess {
  const folder = Deno.makeTempDirSync({ prefix: "preamp-guest-" });
  const { command, args, detached } = childCommand(limits);
  try {
    const process = new Deno.Command(command, {
      args: [...args],
      cwd: folder,
      env: childEnv(folder),
      clearEnv: true,
      detached,
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    return new GuestProcess(process, folder);
  } catch (error) {
    Deno.removeSync(folder, { recursive: true });
    throw error;
  }
}
