/** Preamp: a whole run with guards, events, hooks and log. */
import { openPreampLoop } from "../../preamp_loop.ts";
import type { Contestant } from "./contestant.ts";

/** Opens a runtime with the limits of a bench. */
export async function create(): Promise<Contestant> {
  const { loop, clock, ...opened } = await openPreampLoop();
  return { name: "Preamp", loop, clock, close: () => opened[Symbol.asyncDispose]() };
}
