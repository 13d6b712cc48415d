/**
 * The child of the process tier: a worker with the module in it, and around it a process that holds nothing, carries the frames
 * and watches (modules.md, Child mode). The order is the point: the worker is started with its grant, then this isolate gives up
 * every permission, and only then is the module's code let in.
 */
import { PERMISSION_KINDS } from "../../sdk/plan.ts";
import { grantKey, guestGrant } from "../tiers/worker_permissions.ts";
import { type GuestWorker, loadAhead, startGuestWorker, workerLoaded } from "../tiers/start_worker.ts";
import { LineReader } from "./line_reader.ts";
import { type ChildSettings, EXIT, type MakeReady, type Readiness, WATCH } from "./settings.ts";
import { Watchdog } from "./watchdog.ts";

/** Bytes that are written at once without waiting: a pipe takes them. */
const SMALL = 16 * 1024;
/** Bytes of a line of the host: a bundle, a history. */
const MAX_LINE = 64 * 1024 * 1024;

/** Serves one module until stdin closes, then ends the process. The first thing that a process of this role does. */
export async function runGuestChild(): Promise<never> {
  silenceConsole(); // stdout is the wire
  const lines = new Lines();
  let told = JSON.parse(await lines.next()) as MakeReady | ChildSettings; // the host's
  const ready = "ready" in told ? told.ready : null;
  const spare = ready && startWorker(ready);
  if ("ready" in told) told = JSON.parse(await lines.next()) as ChildSettings;
  const { grant, uses, env, memory_mb, cpu_s } = told;
  setEnv(env);
  // the host gives it only what it is ready for
  if (ready && grantKey(guestGrant(ready.grant)) !== grantKey(guestGrant(grant))) Deno.exit(EXIT.broken);
  const root = await (spare ?? startWorker({ grant, uses }));
  if (ready && !uses.every((part) => ready.uses.includes(part))) await loadAhead(root, uses);
  const { worker, port } = root;
  for (const name of PERMISSION_KINDS) Deno.permissions.revokeSync({ name });
  worker.onerror = (event) => {
    event.preventDefault();
    Deno.exit(EXIT.broken);
  };
  worker.onmessage = () => Deno.exit(EXIT.broken); // its root never uses this wire
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
  const root = startGuestWorker(guestGrant(grant));
  loadTimers();
  await workerLoaded(root);
  await loadAhead(root, uses);
  return root;
}

/** Deno makes its timers when they are first used, which takes 4 ms: here, while the worker is busy, and not in the watchdog. */
function loadTimers(): void {
  clearTimeout(setTimeout(() => {}));
}

/** What the process was started with is not the module's to see. */
function setEnv(env: Readonly<Record<string, string>>): void {
  for (const name of Object.keys(Deno.env.toObject())) {
    if (!Object.hasOwn(env, name)) Deno.env.delete(name);
  }
  for (const [name, value] of Object.entries(env)) Deno.env.set(name, value);
}

/** Lines of the host, one after the other; the process ends with them. */
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
      if (count === null) Deno.exit(EXIT.end); // the host is gone
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

/** Frames of the module, in order. Small ones are written at once, which is twice as fast as to wait for each. */
class Output {
  readonly #encoder = new TextEncoder();
  #last: Promise<void> | null = null;

  write(text: string): void {
    const bytes = this.#encoder.encode(text + "\n");
    if (this.#last === null && bytes.length <= SMALL) {
      for (let at = 0; at < bytes.length;) at += Deno.stdout.writeSync(bytes.subarray(at));
      return;
    }
    const mine = (this.#last ?? Promise.resolve()).then(() => this.#writeAll(bytes));
    this.#last = mine;
    void mine.then(() => {
      if (this.#last === mine) this.#last = null;
    });
  }

  async #writeAll(bytes: Uint8Array): Promise<void> {
    try {
      for (let at = 0; at < bytes.length;) at += await Deno.stdout.write(bytes.subarray(at));
    } catch {
      Deno.exit(EXIT.end); // nobody reads any more
    }
  }
}

function silenceConsole(): void {
  for (const key of Object.keys(console)) {
    if (typeof Reflect.get(console, key) === "function") Reflect.set(console, key, () => {});
  }
}
