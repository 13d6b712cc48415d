/**
 * How long work takes, measured in the processor time of this thread: that does not grow while other
 * processes, or tests in other threads, have the cores.
 */
import process from "node:process";
import { turn } from "../../src/testing/clocks.ts";

/**
 * Resolves to the value of `work`, and to the longest processor time in milliseconds between two turns of
 * this thread's event loop while it was under way. Systems count in steps of about 10 ms.
 */
export async function busyTime<T>(work: () => Promise<T>): Promise<{ value: T; busy_ms: number }> {
  let busy_ms = 0;
  let last = process.threadCpuUsage();
  const measure = () => {
    const { user, system } = process.threadCpuUsage(last);
    busy_ms = Math.max(busy_ms, (user + system) / 1000);
    last = process.threadCpuUsage();
  };
  await turn();
  const timer = setInterval(measure, 1);
  try {
    const value = await work();
    await turn(); // ends the turn in which `work` ended
    measure();
    return { value, busy_ms };
  } finally {
    clearInterval(timer);
  }
}

/** Resolves to the processor time of `work` on this thread in milliseconds, in steps of about 10 ms. */
export async function processorTime(work: () => unknown): Promise<number> {
  const before = process.threadCpuUsage();
  await work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}
