/** Who asks, when a command does. */
import type { Caller } from "../runs/types.ts";

/** The operator of this machine: plans named on the command line are theirs (trust.md). */
export const TERMINAL: Caller = { name: "terminal", namespace: "local", origin: "operator" };
