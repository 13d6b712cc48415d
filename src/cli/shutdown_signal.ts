/** SIGINT and SIGTERM: the first stops in order, the second at once (behaviour.md §15; http.md, Running). */
import { EXIT } from "./exit.ts";
import type { Io } from "./terminal/io.ts";

/** Returns a signal that aborts when the process is told to stop; told again, the process ends. */
export function stopSignal(io: Io, onFirst: () => void): AbortSignal {
  const stop = new AbortController();
  io.onStop(() => {
    if (stop.signal.aborted) io.exit(EXIT.interrupted);
    onFirst();
    stop.abort();
  });
  return stop.signal;
}
