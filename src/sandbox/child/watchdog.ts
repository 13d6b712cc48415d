/** Ends this process when the module in its worker has too much: memory, processor time of a call, time without a word. */
import { EXIT } from "./settings.ts";

/** Milliseconds between two looks (modules.md, Child mode). */
const POLL_MS = 25;

/** Watches the process it is in. The module's memory counts from what the process has before the module is there. */
export class Watchdog {
  readonly #max_rss: number;
  readonly #cpu_us: number;
  #until = Infinity;
  #cpu_start = 0;

  constructor({ memory_mb, cpu_s }: { memory_mb: number; cpu_s: number }) {
    this.#max_rss = Deno.memoryUsage().rss + memory_mb * 1024 * 1024;
    this.#cpu_us = cpu_s * 1e6;
    setInterval(() => this.#look(), POLL_MS);
  }

  /** A call begins: it may take so many milliseconds, and its processor time counts from here. 0: as long as it likes. */
  watch(deadline_ms: number): void {
    this.#until = deadline_ms > 0 ? performance.now() + deadline_ms : Infinity;
    this.#cpu_start = cpuTime();
  }

  #look(): void {
    if (Deno.memoryUsage().rss > this.#max_rss) Deno.exit(EXIT.memory);
    if (cpuTime() - this.#cpu_start > this.#cpu_us) Deno.exit(EXIT.cpu);
    if (performance.now() > this.#until) Deno.exit(EXIT.deadline);
  }
}

/** Microseconds of processor time of this process; Deno has it since 2.6, its types do not say so. */
function cpuTime(): number {
  const { cpuUsage } = Deno as unknown as { cpuUsage?: () => { user: number; system: number } };
  if (!cpuUsage) return 0;
  const { user, system } = cpuUsage();
  return user + system;
}
