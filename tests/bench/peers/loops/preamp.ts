/** Preamp: a complete run with guards, events, hooks and log. */
import { openPreampLoop } from "../../preamp_loop.ts";
import type { Contestant } from "./contestant.ts";

/** Creates the loop. */
export async function create(): Promise<Contestant> {
  const { loop, clock, ...opened } = await openPreampLoop();
  return { name: "Preamp", loop, clock, close: () => opened[Symbol.asyncDispose]() };
}
