/** Messages and exit codes that host and child of the process tier share beside the frames. Private: both come from one build. */
import type { GuestGrant } from "../tiers/worker_permissions.ts";

/**
 * Worker that a child starts before it knows its module. It fits modules with exactly this grant. A worker takes half a gigabyte
 * of what the system counts as data, so no child has two.
 */
export interface Readiness {
  readonly grant: GuestGrant;
  /** Parts of the SDK to load ahead; a module may use others. */
  readonly uses: readonly string[];
}

/** First frame of a child that starts its worker ahead. */
export interface MakeReady {
  readonly ready: Readiness;
}

/** Frame that assigns a module to a child. */
export interface ChildSettings {
  readonly grant: GuestGrant;
  /** Parts of the SDK that the module uses. */
  readonly uses: readonly string[];
  /** Environment variables that the module may read. */
  readonly env: Readonly<Record<string, string>>;
  /** MB that the module may add to the memory of the process. */
  readonly memory_mb: number;
  /** Processor time of one call, in seconds. */
  readonly cpu_s: number;
}

/** Prefix of frames for the child itself: the milliseconds that the module may work without another frame; 0 means no limit. */
export const WATCH = "!";

/** Exit codes of a child, by reason. */
export const EXIT = { end: 0, memory: 81, cpu: 82, deadline: 83, broken: 84 } as const;
