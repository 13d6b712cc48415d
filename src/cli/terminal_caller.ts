import type { Caller } from "../runs/types.ts";

/**
 * The caller of a command: plans named on the command line are an operator's
 * (src/docs/security.md#who-is-trusted).
 */
export const TERMINAL: Caller = { name: "terminal", namespace: "local", origin: "operator" };
