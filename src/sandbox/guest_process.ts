/**
 * Host's side of a module's process, a child of our own executable. Starts the child in a process group of
 * its own, reads its output within limits, and kills it as a group.
 */
import { concat, encodeFrame, FrameTooLarge } from "../process/frames.ts";
import { Child, ownEnv, ownProgram } from "../process/child_process.ts";
import type { SystemLimits } from "../process/system_limits.ts";
import { PERMISSION_KINDS } from "../sdk/plan.ts";
import { type Channel, type ChannelListener, type GuestExit, MEMORY, TOO_LARGE } from "./protocol.ts";
import { type ChildSettings, EXIT, type Readiness, WATCH } from "./guest_child.ts";

/** Most bytes that wait for a child that does not read. */
const MAX_WAITING = 64 * 1024 * 1024;

/** A started child, which may not have a module yet. */
export class GuestProcess implements Channel {
  readonly exited: Promise<GuestExit>;
  readonly #child: Child;
  readonly #folder: string;
  #listener: ChannelListener | null = null;
  #exit: GuestExit | null = null;
  #prepared = false;
  /** Frames of this event-loop turn; they are written together. */
  #unsent: Uint8Array[] = [];
  #unread_bytes = 0;
  /** Whether the child has sent a frame. */
  #has_answered = false;

  /** @throws {Error} if this host cannot start it. */
  constructor(limits: SystemLimits) {
    this.#folder = Deno.makeTempDirSync({ prefix: "preamp-guest-" });
    try {
      this.#child = new Child({
        ...ownProgram({
          name: "guest",
          entry: new URL("./guest_child.ts", import.meta.url).href,
          allow: PERMISSION_KINDS.filter((kind) => kind !== "import"),
          flags: ["--no-lock", "--unstable-worker-options"],
        }),
        cwd: this.#folder,
        env: childEnv(this.#folder),
        limits,
        group: true,
        limit: () => this.#listener?.limit() ?? 0,
      });
    } catch (error) {
      Deno.removeSync(this.#folder, { recursive: true });
      throw error;
    }
    this.exited = this.#run();
    this.#child.unref();
  }

  /** Starts the child's worker before it has a module. Called at most once, before {@link assign}. */
  prepare({ grant, uses }: Readiness): void {
    this.#prepared = true;
    this.send(JSON.stringify({ grant, uses }));
  }

  /** Assigns a module's grant to the child. */
  assign(settings: ChildSettings): void {
    this.#child.ref();
    if (!this.#prepared) this.prepare(settings);
    this.send(JSON.stringify(settings));
  }

  listen(listener: ChannelListener): void {
    this.#listener = listener;
  }

  send(text: string): void {
    if (this.#exit) return;
    if (this.#unsent.length === 0) queueMicrotask(() => this.#flush());
    this.#unsent.push(encodeFrame(text));
  }

  watch(deadline_ms: number): void {
    this.send(`${WATCH}${Math.ceil(deadline_ms)}`);
  }

  within<T>(ms: number, work: Promise<T>): Promise<T> {
    return this.#child.within(ms, work);
  }

  async kill(exit: GuestExit): Promise<void> {
    this.#child.ref(); // keeps this process alive until the child has exited
    this.#end(exit);
    await this.exited;
  }

  /** Whether the child is not known to have exited. */
  get alive(): boolean {
    return this.#exit === null;
  }

  #flush(): void {
    if (this.#exit) return;
    const [first, second] = this.#unsent;
    const bytes = second ? concat(this.#unsent) : first!; // called after a frame was added
    this.#unsent = [];
    this.#unread_bytes += bytes.length;
    if (this.#unread_bytes > MAX_WAITING) {
      return this.#end({ cause: "violation", detail: "it does not read its input" });
    }
    this.#child.write(bytes).then(
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
    this.#child.kill();
  }

  async #run(): Promise<GuestExit> {
    const reading = this.#read();
    await this.#child.status;
    const status = await this.#child.close(reading);
    this.#exit ??= this.#exitOf(status);
    await Deno.remove(this.#folder, { recursive: true }).catch(() => {}); // the folder may be gone already
    return this.#exit;
  }

  async #read(): Promise<void> {
    try {
      for (let frame = await this.#child.next(); frame; frame = await this.#child.next()) {
        this.#has_answered = true;
        await this.#deliver(frame.text);
      }
    } catch (error) {
      // otherwise cancelled or broken: the exit status reports it
      if (error instanceof FrameTooLarge) this.#end(TOO_LARGE);
    }
  }

  /** Delivers a text in the slices of the scheduler. */
  async #deliver(text: string): Promise<void> {
    if (this.#exit) return;
    SCHEDULER.begin();
    this.#listener?.take(text);
    const turn = SCHEDULER.end();
    if (turn) await turn;
  }

  #exitOf({ code, signal }: Deno.CommandStatus): GuestExit {
    const known = signal === "SIGXCPU" ? TIMEOUT : EXITS[code];
    if (known) return known;
    const { stderr } = this.#child;
    // without memory for a message, the engine aborts in silence
    if (NO_MEMORY.test(stderr) || signal === "SIGABRT" && stderr === "") return MEMORY;
    // Deno says so of each thread; one that has answered lacks the memory of a stack
    if (this.#has_answered && NO_THREAD.test(stderr)) return MEMORY;
    const detail = signal ? `the process was killed by ${signal}` : `its process ended with code ${code}`;
    return { cause: "crashed", detail };
  }
}

/** Text of Deno when a thread cannot be started, at its start and later. */
const NO_THREAD = /unable to create worker threads/;
/** Texts of Deno, Rust, V8 and the operating system. */
const NO_MEMORY = /out of memory|memory allocation of|buffer allocation failed|Cannot allocate memory/i;
const TIMEOUT: GuestExit = {
  cause: "timeout",
  detail: "it exceeded its processor time (isolation.cpu_s), or did not answer in time",
};
const EXITS: Readonly<Record<number, GuestExit>> = {
  [EXIT.memory]: MEMORY,
  [EXIT.cpu]: TIMEOUT,
  [EXIT.deadline]: TIMEOUT,
};

/**
 * Returns the environment of a child, which replaces it by the module's variables before it links the module.
 */
function childEnv(folder: string): Record<string, string> {
  return {
    TMPDIR: folder,
    NO_COLOR: "1",
    PATH: "/usr/local/bin:/usr/bin:/bin",
    ...(Deno.build.standalone ? { HOME: folder, DENO_DIR: folder } : ownEnv()),
  };
}

/** Milliseconds of work before a guest must wait; well below an acceptable delay of a request. */
const SLICE_MS = 4;
/** Milliseconds after which past work no longer counts. */
const WINDOW_MS = 50;

/**
 * Shares the main thread among guests: after 4 ms of work in 50 ms a guest waits until the others have been
 * served.
 */
export class FairScheduler {
  readonly #monotonic: () => number;
  readonly #later: (then: () => void) => void;
  readonly #waiting: (() => void)[] = [];
  #window_start = 0;
  #worked_ms = 0;
  #started_at = 0;

  /**
   * @param monotonic Returns monotonic milliseconds. Default `performance.now`.
   * @param later Calls back in the next event-loop turn. Default: a timer.
   */
  constructor(
    monotonic: () => number = () => performance.now(),
    later: (then: () => void) => void = (then) => void setTimeout(then, 0),
  ) {
    this.#monotonic = monotonic;
    this.#later = later;
  }

  /** Starts a unit of work. */
  begin(): void {
    this.#started_at = this.#monotonic();
  }

  /**
   * Ends a unit of work. Returns a promise if the slice is used up; it resolves after other events were
   * handled. Waiting guests resume one per event-loop turn.
   */
  end(): Promise<void> | undefined {
    const now = this.#monotonic();
    if (now - this.#window_start > WINDOW_MS) {
      this.#window_start = now;
      this.#worked_ms = 0;
    }
    this.#worked_ms += now - this.#started_at;
    if (this.#worked_ms < SLICE_MS && this.#waiting.length === 0) return undefined;
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      if (this.#waiting.length === 1) this.#later(() => this.#resumeNext());
    });
  }

  #resumeNext(): void {
    this.#worked_ms = 0;
    this.#window_start = this.#monotonic();
    const next = this.#waiting.shift();
    if (this.#waiting.length > 0) this.#later(() => this.#resumeNext());
    next?.();
  }
}

/** Shared by all guests, because the host reads them on one thread. */
const SCHEDULER = new FairScheduler();
