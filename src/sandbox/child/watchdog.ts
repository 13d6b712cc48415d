/** Ends this process when the module in its worker exceeds its memory, processor time or deadline. */
import { EXIT } from "./settings.ts";

/** Milliseconds between two checks. */
const POLL_MS = 25;

/** Watches its own process. The module's memory is counted from the use before the module is linked. */
export class Watchdog {
  readonly #max_rss: number;
  readonly #cpu_us: number;
  #until = Infinity;
  #cpu_start = 0;

  constructor({ memory_mb, cpu_s }: { memory_mb: number; cpu_s: number }) {
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

/** Returns the processor time of this process in microseconds. Deno has `cpuUsage` since 2.6, but not in its types. */
function cpuTime(): number {
  const { cpuUsage } = Deno as unknown as { cpuUsage?: () => { user: number; system: number } };
  if (!cpuUsage) return 0;
  const { user, system } = cpuUsage();
  return user + system;
}
