/** What guests take of the machine's memory, beside bare ones, alone and many at once. */
import { openBareChild, openBareWorker } from "./bare.ts";
import { children, type Memory, memoryOf, resting } from "./children.ts";
import { type GuestKind, openSandbox, openTool } from "./tool.ts";

/** What many at once took. */
export interface Crowd extends Memory {
  /** Milliseconds until each had answered. */
  readonly ms: number;
}

/** Returns the memory of one child with a worker that answers. */
export async function memoryOfBareChild(): Promise<Memory> {
  await using bare = openBareChild();
  await bare.send("hello");
  return await memoryOf(await resting(1));
}

/** Returns the memory of one guest that answers, in the process tier. */
export async function memoryOfGuest(kind: GuestKind): Promise<Memory> {
  const sandbox = openSandbox(0);
  await using tool = await openTool(sandbox, kind);
  await tool.call({ text: "hello" });
  return await memoryOf(await resting(1));
}

/** Returns the MB that `count` bare workers add to this process, and as many guests in workers. */
export async function memoryOfWorkers(count: number): Promise<{ bare_mb: number; guest_mb: number }> {
  await using opened = new AsyncDisposableStack();
  const before = Deno.memoryUsage().rss;
  for (let index = 0; index < count; index++) {
    const bare = opened.use(openBareWorker());
    await bare.send("hello");
  }
  const between = Deno.memoryUsage().rss;
  const sandbox = openSandbox(0);
  for (let index = 0; index < count; index++) {
    const tool = opened.use(await openTool(sandbox, { tier: "worker" }));
    await tool.call({ text: "hello" });
  }
  const after = Deno.memoryUsage().rss;
  return { bare_mb: (between - before) / count / 1e6, guest_mb: (after - between) / count / 1e6 };
}

/** Starts so many bare children at once. */
export async function crowdOfBareChildren(count: number): Promise<Crowd> {
  return await crowd(count, async () => {
    const bare = openBareChild();
    await bare.send("hello");
    return bare;
  });
}

/** Starts so many guests at once. */
export async function crowdOfGuests(count: number, kind: GuestKind): Promise<Crowd> {
  const sandbox = openSandbox(0);
  return await crowd(count, async () => {
    const tool = await openTool(sandbox, kind);
    await tool.call({ text: "hello" });
    return tool;
  });
}

async function crowd(count: number, open: () => Promise<AsyncDisposable>): Promise<Crowd> {
  await using opened = new AsyncDisposableStack();
  const start = performance.now();
  for (const one of await Promise.all(Array.from({ length: count }, open))) opened.use(one);
  const ms = performance.now() - start;
  return { ms, ...await memoryOf(await children()) };
}
