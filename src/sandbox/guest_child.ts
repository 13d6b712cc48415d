/**
 * Child process of a module: starts the worker that runs the module, forwards frames and enforces
 * limits. The order matters: the worker starts with its grant, then this process revokes all its own
 * permissions, then the module's code arrives.
 */
import { FrameWriter, parentFrames, replaceConsole, revokePermissions } from "../process/child_io.ts";
import {
  grantKey,
  type GuestGrant,
  guestGrant,
  type GuestWorker,
  loadAhead,
  startGuestWorker,
  workerLoaded,
} from "./guest_worker.ts";

/**
 * First frame: the worker to start. A child that is started ahead receives it before it has a module; it fits
 * modules with exactly this grant. A worker takes half a gigabyte of what the system counts as data, so no
 * child has two.
 */
export interface Readiness {
  readonly grant: GuestGrant;
  /** Parts of the SDK to load ahead; a module may use others. */
  readonly uses: readonly string[];
}

/** Second frame: assigns a module to the child. */
export interface ChildSettings extends Readiness {
  /** Environment variables that the module may read. */
  readonly env: Readonly<Record<string, string>>;
  /** Working folder of the module; absent: a folder of its own. */
  readonly folder?: string;
  /** MB that the module may add to the memory of the process. */
  readonly memory_mb: number;
  /** Processor time of one call, in seconds. */
  readonly cpu_s: number;
}

/**
 * Prefix of later frames for the child itself: the milliseconds that the module may work without another
 * frame; 0 means no limit.
 */
export const WATCH = "!";

/** Exit codes of a child, by reason. */
export const EXIT = { end: 0, memory: 81, cpu: 82, deadline: 83, broken: 84 } as const;

/** Milliseconds between two checks of the limits. */
const POLL_MS = 25;
/** Most bytes of a frame of the host, such as a bundle or a history. */
const MAX_FRAME_BYTES = 64 * 1024 * 1024;

/** Serves one module until stdin closes, then exits. Must be the first code of the process. */
export async function runGuestChild(): Promise<never> {
  replaceConsole(() => {}); // stdout carries frames
  const frames = parentFrames(MAX_FRAME_BYTES);
  const next = async () => (await frames.next())?.text ?? Deno.exit(EXIT.end); // the host has ended
  const ready = JSON.parse(await next()) as Readiness; // from the host
  const started = startWorker(ready);
  const settings = JSON.parse(await next()) as ChildSettings; // from the host
  setEnv(settings.env);
  changeFolder(settings.folder);
  // the host assigns a warm child only to modules with the same grant
  if (grantKey(guestGrant(ready.grant)) !== grantKey(guestGrant(settings.grant))) Deno.exit(EXIT.broken);
  const guest = await started;
  if (!settings.uses.every((part) => ready.uses.includes(part))) await loadAhead(guest, settings.uses);
  const { worker, port } = guest;
  revokePermissions();
  worker.onerror = (event) => {
    event.preventDefault();
    Deno.exit(EXIT.broken);
  };
  worker.onmessage = () => Deno.exit(EXIT.broken); // the worker runtime uses its port only
  const output = new FrameWriter();
  port.onmessage = ({ data }: MessageEvent<unknown>) => {
    if (typeof data === "string") void output.write(data);
    else Deno.exit(EXIT.broken);
  };
  const watchdog = new Watchdog(settings);
  for (;;) {
    const text = await next();
    if (text.startsWith(WATCH)) watchdog.watch(Number(text.slice(WATCH.length)));
    else port.postMessage(text);
  }
}

async function startWorker({ grant, uses }: Readiness): Promise<GuestWorker> {
  const guest = startGuestWorker(guestGrant(grant));
  loadTimers();
  await workerLoaded(guest);
  await loadAhead(guest, uses);
  return guest;
}

/** Makes Deno initialise its timers, which takes 4 ms, while the worker starts. */
function loadTimers(): void {
  clearTimeout(setTimeout(() => {}));
}

/** Replaces the environment of the process by the variables of the module. */
function setEnv(env: Readonly<Record<string, string>>): void {
  for (const name of Object.keys(Deno.env.toObject())) {
    if (!Object.hasOwn(env, name)) Deno.env.delete(name);
  }
  for (const [name, value] of Object.entries(env)) Deno.env.set(name, value);
}

/** Relative paths of the module start at a folder; a folder that cannot be entered changes nothing. */
function changeFolder(folder: string | undefined): void {
  try {
    if (folder !== undefined) Deno.chdir(folder);
  } catch {
    // the grant of the module has no file there
  }
}

/**
 * Ends this process when the module exceeds its memory, processor time or deadline. The module's memory is
 * counted from the use before the module is linked.
 */
class Watchdog {
  readonly #max_rss: number;
  readonly #cpu_us: number;
  #until = Infinity;
  #cpu_start = 0;

  constructor({ memory_mb, cpu_s }: ChildSettings) {
    this.#max_rss = Deno.memoryUsage().rss + memory_mb * 1024 * 1024;
    this.#cpu_us = cpu_s * 1e6;
    setInterval(() => this.#check(), POLL_MS);
  }

  /** Starts the limits of a call: its deadline in milliseconds (0: none) and its processor time. */
  watch(deadline_ms: number): void {
    this.#until = deadline_ms > 0 ? performance.now() + deadline_ms : Infinity;
    this.#cpu_start = cpuTime();
  }

  #check(): void {
    if (Deno.memoryUsage().rss > this.#max_rss) Deno.exit(EXIT.memory);
    if (cpuTime() - this.#cpu_start > this.#cpu_us) Deno.exit(EXIT.cpu);
    if (performance.now() > this.#until) Deno.exit(EXIT.deadline);
  }
}

/**
 * Returns the processor time of this process in microseconds. Deno has `cpuUsage` since 2.6, but not in its
 * types.
 */
function cpuTime(): number {
  const { cpuUsage } = Deno as unknown as { cpuUsage?: () => { user: number; system: number } };
  if (!cpuUsage) return 0;
  const { user, system } = cpuUsage();
  return user + system;
}

if (import.meta.main) await runGuestChild(); // under `deno run`; the compiled program calls it in main.ts
