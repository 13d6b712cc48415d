/**
 * The `process` tier: a module in a child of our own executable. Here is the host's side of it: started in a group of its own,
 * read within bounds, killed as a group.
 */
import type { Channel, ChannelListener, ExitReason, GuestExit } from "../channel.ts";
import { LineReader } from "../child/line_reader.ts";
import { type ChildSettings, EXIT, type MakeReady, type Readiness, WATCH } from "../child/settings.ts";
import { childCommand, childEnv, type SystemLimits } from "./child_command.ts";
import { FairScheduler } from "./fair_scheduler.ts";

/** Bytes of stderr that are kept, to tell a child that had no memory from others. */
const MAX_STDERR = 16 * 1024;
/** Bytes that wait for a child that does not read. */
const MAX_WAITING = 64 * 1024 * 1024;
/** Bytes that are read at once. */
const READ_BYTES = 64 * 1024;
/** Milliseconds that what a dead child wrote last may take to arrive. */
const DRAIN_MS = 200;

/** One for the process: its guests share one thread. */
const SCHEDULER = new FairScheduler();

/** A child that is there, and perhaps belongs to nobody yet. */
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
  /** Lines of this turn of the event loop: they are written at once. */
  #unsent = "";
  #unread_bytes = 0;
  #stderr = "";

  constructor(process: Deno.ChildProcess, folder: string) {
    this.#process = process;
    this.#folder = folder;
    this.#writer = process.stdin.getWriter();
    this.#writer.closed.catch(() => {}); // a child that ended says so with its status
    this.#reader = process.stdout.getReader({ mode: "byob" });
    void this.#collectStderr();
    this.exited = this.#run();
    this.stopped = this.exited.then(() => true);
    process.unref();
  }

  /** Has the child start its worker before it has a module. Before {@link assign}, once. */
  prepare(ready: Readiness): void {
    this.#write(JSON.stringify({ ready } satisfies MakeReady));
  }

  /** Gives the child its module's grant; it is nobody else's from here on. */
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

  async kill(death: GuestExit): Promise<void> {
    this.#refProcess();
    this.#end(death);
    await this.exited;
  }

  /** Who waits for the end of a spare child keeps this process alive until then. */
  #refProcess(): void {
    try {
      this.#process.ref();
    } catch {
      // it has ended already: there is nothing to wait for
    }
  }

  /** Whether it still runs, as far as we know. */
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
      return this.#end({ cause: "violation", detail: "it does not read what it is sent" });
    }
    this.#writer.write(bytes).then(
      () => {
        this.#unread_bytes -= bytes.length;
      },
      () => {}, // it ended: its status tells
    );
  }

  /** The first death counts: what follows is its consequence. */
  #end(death: GuestExit): void {
    if (this.#exit) return;
    this.#exit = death;
    this.#killGroup();
  }

  /** All that the child started, too: it leads a group of its own. */
  #killGroup(): void {
    for (const pid of [-this.#process.pid, this.#process.pid]) {
      try {
        Deno.kill(pid, "SIGKILL");
      } catch {
        // nobody of that number is left
      }
    }
  }

  async #run(): Promise<GuestExit> {
    const reading = this.#read();
    const status = await this.#process.status;
    this.#killGroup(); // what the child started outlives it otherwise
    await Promise.race([reading, new Promise((resolve) => setTimeout(resolve, DRAIN_MS))]);
    this.#exit ??= this.#exitOf(status);
    await this.#reader.cancel().catch(() => {}); // its other end is gone
    await this.#writer.abort().catch(() => {});
    await Deno.remove(this.#folder, { recursive: true }).catch(() => {}); // its own folder, perhaps already gone
    return this.#exit;
  }

  async #read(): Promise<void> {
    const lines = new LineReader();
    const limit = () => this.#listener?.limit() ?? 0;
    let buffer = new ArrayBuffer(READ_BYTES);
    try {
      for (;;) {
        const { value, done } = await this.#reader.read(new Uint8Array(buffer)); // the same memory each time
        if (done) return;
        buffer = value.buffer;
        const texts: string[] = [];
        const taken = lines.take(value, limit, (text) => void texts.push(text));
        await this.#deliver(texts);
        if (!taken) return this.#end({ cause: "output", detail: "it sent more than it may at once" });
      }
    } catch {
      // cancelled, or broken: the status tells
    }
  }

  /** A guest that floods takes no more than its turn of the server's thread, and waits while the host is busy with it. */
  async #deliver(texts: readonly string[]): Promise<void> {
    for (const text of texts) {
      if (this.#exit) return;
      SCHEDULER.begin();
      this.#listener?.take(text);
      // answering is work too, and may be done without the event loop ever coming round
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
      // it ended
    }
  }

  #exitOf({ code, signal }: Deno.CommandStatus): GuestExit {
    const cause = BY_CODE[code];
    if (cause) return { cause, detail: DETAILS[cause] };
    if (signal === "SIGXCPU") return { cause: "timeout", detail: DETAILS.timeout };
    if (/out of memory|memory allocation of|Cannot allocate memory/i.test(this.#stderr)) {
      return { cause: "memory", detail: DETAILS.memory };
    }
    const how = signal ? `it was ended by ${signal}` : `its process ended with code ${code}`;
    return { cause: "crashed", detail: how };
  }
}

const BY_CODE: Readonly<Record<number, Exclude<ExitReason, "ended">>> = {
  [EXIT.memory]: "memory",
  [EXIT.cpu]: "timeout",
  [EXIT.deadline]: "timeout",
};

const DETAILS: Readonly<Record<Exclude<ExitReason, "ended">, string>> = {
  memory: "it took more memory than it may (isolation.memory_mb)",
  timeout: "it took more processor time than a call may (isolation.cpu_s), or did not answer in time",
  crashed: "its process ended",
  output: "it sent more than it may",
  violation: "it broke the protocol",
};

/** Starts a child that waits for its module. @throws {Error} when this host cannot start one. */
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
