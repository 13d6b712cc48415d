/** Measures the memory of guests and of bare processes, alone and many at once. */
import { openBareChild } from "./bare.ts";
import { children, type Memory, memoryOf, resting } from "./children.ts";
import { type GuestKind, openSandbox, openTool } from "./tool.ts";

/** Figures of many started at once. */
export interface Crowd extends Memory {
  /** Milliseconds until all have answered. */
  readonly ms: number;
}

/** Returns the memory of one bare child process after its first answer. */
export async function memoryOfBareChild(): Promise<Memory> {
  await using bare = openBareChild();
  await bare.send("hello");
  return await memoryOf(await resting(1));
}

/** Returns the memory of one guest after its first answer. */
export async function memoryOfGuest(kind: GuestKind): Promise<Memory> {
  const sandbox = openSandbox("no pool");
  await using tool = await openTool(sandbox, kind);
  await tool.call({ text: "hello" });
  return await memoryOf(await resting(1));
}

/** Starts `count` bare child processes at once. */
export async function crowdOfBareChildren(count: number): Promise<Crowd> {
  return await crowd(count, async () => {
    const bare = openBareChild();
    await bare.send("hello");
    return bare;
  });
}

/** Starts `count` guests at once. */
export async function crowdOfGuests(count: number, kind: GuestKind): Promise<Crowd> {
  const sandbox = openSandbox("no pool");
  return await crowd(count, async () => {
    const tool = await openTool(sandbox, kind);
    await tool.call({ text: "hello" });
    return tool;
  });
}

async function crowd(count: number, open: () => Promise<AsyncDisposable>): Promise<Crowd> {
  await using opened = new AsyncDisposableStack();
  const start = performance.now();
  for (const item of await Promise.all(Array.from({ length: count }, open))) opened.use(item);
  const ms = performance.now() - start;
  return { ms, ...await memoryOf(await children()) };
}
