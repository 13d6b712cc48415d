/** What host and child of the process tier must agree on beside the frames. Private: both are always of one build. */
import type { GuestGrant } from "../grant.ts";

/** Words of the command line of the compiled program in this role; the flavour follows. */
export const GUEST_ROLE: readonly [string, string] = ["child", "guest"];

/**
 * What a child does before it knows its module: `ready` has its worker already, with no permission, which does for a module
 * that is granted nothing; `bare` starts the worker with the grant. A worker takes half a gigabyte of what the system counts as
 * data, so that no child has two.
 */
export type ChildFlavour = "bare" | "ready";

/** First line that a child is sent: it is a spare until then. */
export interface ChildSettings {
  readonly grant: GuestGrant;
  /** Parts of the SDK the module reads. */
  readonly uses: readonly string[];
  /** The variables it may read. */
  readonly env: Readonly<Record<string, string>>;
  /** MB of memory that the module may add to the process. */
  readonly memory_mb: number;
  /** Seconds of processor time of one call. */
  readonly cpu_s: number;
}

/** A line of the host that begins so is for the child itself: milliseconds it may work now without a word; 0: for ever. */
export const WATCH = "!";

/** How a child says with its exit code why it ended. */
export const EXIT = { end: 0, memory: 81, cpu: 82, deadline: 83, broken: 84 } as const;
