/**
 * Runs a function on a stranger's bytes in a worker: the main thread serves others meanwhile, and a deadline
 * can end it.
 *
 * The worker's first file calls {@link serveTask}. The compiled program has that file too:
 * `.tasks/compile.ts` names it.
 */

/** The first file of a worker, and the function that it serves. */
export interface WorkerFile<Input, Output> {
  /** Its URL, made from `import.meta.url` of the file beside it. */
  readonly source: URL;
  /** Its path in the compiled program, relative to the main file. */
  readonly compiled: string;
  /** Runs the function here where no worker can start, as in a sandbox, which has a process of its own. */
  readonly inline: (input: Input) => Promise<Output>;
}

/** Options of {@link inWorker}. */
export interface TaskOptions {
  readonly signal?: AbortSignal | undefined;
  /** Time of the function itself; waiting for a worker does not count. */
  readonly timeout_ms: number;
  /** Buffers of the input that are moved, not copied. */
  readonly transfer?: readonly Transferable[];
}

/** Workers at once: each may take some hundred megabytes. */
const MAX_WORKERS = 2;

let running = 0;
const waiting: (() => void)[] = [];

type Answer<Output> = { output: Output } | { error: string };

/**
 * Resolves to the function's output.
 *
 * @throws {Error} what the function throws, its message only; after `timeout_ms`, that it took too long.
 * Rejects with the signal's reason on abort.
 */
export async function inWorker<Input, Output>(
  file: WorkerFile<Input, Output>,
  input: Input,
  options: TaskOptions,
): Promise<Output> {
  options.signal?.throwIfAborted();
  if (typeof Worker === "undefined") return await file.inline(input);
  if (running >= MAX_WORKERS) await turn(options.signal);
  else running++;
  let worker: Worker | undefined;
  try {
    worker = startWorker(file);
    if (worker === undefined || !await isReady(worker)) return await file.inline(input);
    return await answerOf(worker, input, options);
  } finally {
    worker?.terminate();
    const next = waiting.shift();
    if (next) next(); // it takes this one's place
    else running--;
  }
}

/** Resolves when another worker ends and leaves its place. */
function turn(signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const start = () => {
      signal?.removeEventListener("abort", leave);
      resolve();
    };
    const leave = () => {
      waiting.splice(waiting.indexOf(start), 1);
      reject(signal!.reason);
    };
    waiting.push(start);
    signal?.addEventListener("abort", leave, { once: true });
  });
}

/** Returns a worker; undefined where this process may not read its file. */
function startWorker({ source, compiled }: WorkerFile<never, unknown>): Worker | undefined {
  // cast: the option is specific to Deno
  const options = { type: "module", name: "task", deno: { permissions: "none" } } as WorkerOptions;
  try {
    return new Worker(Deno.build.standalone ? new URL(compiled, Deno.mainModule) : source, options);
  } catch {
    return undefined;
  }
}

/** Resolves to whether the file of a worker was loaded. An application that was compiled may not have it. */
function isReady(worker: Worker): Promise<boolean> {
  return new Promise((resolve) => {
    worker.onmessage = () => resolve(true);
    worker.onerror = (event) => {
      event.preventDefault();
      resolve(false);
    };
  });
}

function answerOf<Input, Output>(
  worker: Worker,
  input: Input,
  { signal, timeout_ms, transfer = [] }: TaskOptions,
): Promise<Output> {
  const { promise, resolve, reject } = Promise.withResolvers<Output>();
  const abort = () => reject(signal!.reason);
  if (signal?.aborted) abort();
  signal?.addEventListener("abort", abort, { once: true });
  worker.onmessage = ({ data }: MessageEvent<Answer<Output>>) => {
    if ("error" in data) reject(new Error(data.error));
    else resolve(data.output);
  };
  worker.onerror = (event) => {
    event.preventDefault();
    reject(new Error(event.message));
  };
  const timer = setTimeout(() => reject(new Error(`it took more than ${timeout_ms / 1000} s`)), timeout_ms);
  worker.postMessage({ input }, [...transfer]);
  return promise.finally(() => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
  });
}

/** Serves a function in this worker. */
export function serveTask<Input, Output>(task: (input: Input) => Output | Promise<Output>): void {
  // cast: the types of this program are those of a main thread
  const scope = globalThis as unknown as Pick<Worker, "postMessage" | "onmessage">;
  scope.onmessage = async ({ data }: MessageEvent<{ input: Input }>) => {
    try {
      scope.postMessage({ output: await task(data.input) } satisfies Answer<Output>);
    } catch (error) {
      scope.postMessage(
        { error: error instanceof Error ? error.message : String(error) } satisfies Answer<Output>,
      );
    }
  };
  scope.postMessage("ready");
}
