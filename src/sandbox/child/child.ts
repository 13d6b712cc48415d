/**
 * Child process of the process tier: starts the worker that runs the module, forwards frames and enforces limits. The order
 * matters: the worker starts with its grant, then this process revokes all its own permissions, then the module's code arrives.
 */
import { PERMISSION_KINDS } from "../../sdk/plan.ts";
import { grantKey, guestGrant } from "../tiers/worker_permissions.ts";
import { type GuestWorker, loadAhead, startGuestWorker, workerLoaded } from "../tiers/start_worker.ts";
import { LineReader } from "./line_reader.ts";
import { type ChildSettings, EXIT, type MakeReady, type Readiness, WATCH } from "./settings.ts";
import { Watchdog } from "./watchdog.ts";

/** Most bytes that are written synchronously: they fit into the buffer of a pipe. */
const SMALL = 16 * 1024;
/** Most bytes of a line of the host, such as a bundle or a history. */
const MAX_LINE = 64 * 1024 * 1024;

/** Serves one module until stdin closes, then exits. Must be the first code of the process. */
export async function runGuestChild(): Promise<never> {
  silenceConsole(); // stdout carries frames
  const lines = new Lines();
  const first = JSON.parse(await lines.next()) as MakeReady | ChildSettings; // from the host
  const ready = "ready" in first ? first.ready : null;
  const warm = ready && startWorker(ready);
  const settings = "ready" in first ? JSON.parse(await lines.next()) as ChildSettings : first;
  const { grant, uses, env, memory_mb, cpu_s } = settings;
  setEnv(env);
  // the host assigns a warm child only to modules with the same grant
  if (ready && grantKey(guestGrant(ready.grant)) !== grantKey(guestGrant(grant))) Deno.exit(EXIT.broken);
  const guest = await (warm ?? startWorker({ grant, uses }));
  if (ready && !uses.every((part) => ready.uses.includes(part))) await loadAhead(guest, uses);
  const { worker, port } = guest;
  for (const name of PERMISSION_KINDS) Deno.permissions.revokeSync({ name });
  worker.onerror = (event) => {
    event.preventDefault();
    Deno.exit(EXIT.broken);
  };
  worker.onmessage = () => Deno.exit(EXIT.broken); // the worker runtime uses its port only
  const out = new Output();
  port.onmessage = ({ data }: MessageEvent<unknown>) => {
    if (typeof data === "string") out.write(data);
    else Deno.exit(EXIT.broken);
  };
  const watchdog = new Watchdog({ memory_mb, cpu_s });
  for (;;) {
    const line = await lines.next();
    if (line.startsWith(WATCH)) watchdog.watch(Number(line.slice(WATCH.length)));
    else port.postMessage(line);
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

/** Reads lines of the host; the process exits when stdin closes. */
class Lines {
  readonly #reader = new LineReader();
  readonly #buffer = new Uint8Array(64 * 1024);
  #queue: string[] = [];
  #at = 0;

  async next(): Promise<string> {
    while (this.#at >= this.#queue.length) {
      this.#queue = [];
      this.#at = 0;
      const count = await Deno.stdin.read(this.#buffer);
      if (count === null) Deno.exit(EXIT.end); // the host has ended
      const taken = this.#reader.take(
        this.#buffer.subarray(0, count),
        () => MAX_LINE,
        (text) => this.#queue.push(text),
      );
      if (!taken) Deno.exit(EXIT.broken);
    }
    return this.#queue[this.#at++]!;
  }
}

/** Writes the frames of the module in order. Small frames are written synchronously, which is twice as fast. */
class Output {
  readonly #encoder = new TextEncoder();
  #last: Promise<void> | null = null;

  write(text: string): void {
    const bytes = this.#encoder.encode(text + "\n");
    if (this.#last === null && bytes.length <= SMALL) {
      for (let at = 0; at < bytes.length;) at += Deno.stdout.writeSync(bytes.subarray(at));
      return;
    }
    const written = (this.#last ?? Promise.resolve()).then(() => this.#writeAll(bytes));
    this.#last = written;
    void written.then(() => {
      if (this.#last === written) this.#last = null;
    });
  }

  async #writeAll(bytes: Uint8Array): Promise<void> {
    try {
      for (let at = 0; at < bytes.length;) at += await Deno.stdout.write(bytes.subarray(at));
    } catch {
      Deno.exit(EXIT.end); // the host no longer reads
    }
  }
}

function silenceConsole(): void {
  for (const key of Object.keys(console)) {
    if (typeof Reflect.get(console, key) === "function") Reflect.set(console, key, () => {});
  }
}
