/** What host and child of the process tier must agree on beside the frames. Private: both are always of one build. */
import type { GuestGrant } from "../tiers/worker_permissions.ts";

/** The command line of the compiled program in this role. */
export const GUEST_ROLE: readonly [string, string] = ["child", "guest"];

/**
 * What a child may be told before it knows its module: to start the worker already, with this grant. It does for modules that are
 * granted just that. A worker takes half a gigabyte of what the system counts as data, so that no child has two.
 */
export interface Readiness {
  readonly grant: GuestGrant;
  /** Parts of the SDK to load ahead; a module may read others. */
  readonly uses: readonly string[];
}

/** A child's first line when it is to be ready for something. */
export interface MakeReady {
  readonly ready: Readiness;
}

/** The line by which a child gets its module: it is a spare until then. */
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
