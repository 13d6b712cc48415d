/** Finds out which isolation tiers this host supports, without starting anything. */
import type { TierAnswer, TierReport } from "../../policy/authorise.ts";
import { hasSystemLimits, mayRun } from "../../process/system_limits.ts";

/** Tiers that run a module outside of this isolate. */
export type GuestTier = "worker" | "process";

/** Text of hosts where nothing but its own watchdog limits a child. */
const WATCHDOG_ONLY =
  "watchdog only: this process cannot start /bin/sh, which sets limits of the operating system";

/** Returns what is missing in the limits of children on this host; undefined if nothing is. */
export function missingLimits(): string | undefined {
  return hostTiers().process.available && !hasSystemLimits() ? WATCHDOG_ONLY : undefined;
}

let known: TierReport | undefined;

/** Returns which tiers this host supports. The result is the same for the life of the process. */
export function hostTiers(): TierReport {
  return known ??= { worker: workerTier(), process: processTier() };
}

let bundler: TierAnswer | undefined;

/**
 * Returns whether the bundler can run in a process of its own. The result is the same for the life of the
 * process.
 */
export function bundlerProcess(): TierAnswer {
  return bundler ??= mayStartItself() ? { available: true } : missing(
    "this process may not start itself (it needs --allow-run): it bundles only what modules.inline trusts, and takes what " +
      "preamp module bundle made",
  );
}

function mayStartItself(): boolean {
  try {
    return mayRun(Deno.execPath());
  } catch {
    return false; // the host does not reveal the path of this executable
  }
}

function workerTier(): TierAnswer {
  if (typeof Worker !== "function") return missing("this host has no workers");
  if (Deno.build.standalone) return { available: true };
  const [major = 0, minor = 0] = Deno.version.deno.split(".").map(Number);
  if (major < 2 || (major === 2 && minor < 6)) {
    return missing(`permissions of workers need Deno 2.6 or later: this is ${Deno.version.deno}`);
  }
  return hasUnstableOptions() ? { available: true } : missing(
    'permissions of workers need "worker-options" and "kv" under "unstable" in deno.json, and this host does not show whether it ' +
      "applies them",
  );
}

/**
 * Returns whether this process has the unstable features that deno.json lists. A missing flag ends the
 * process, and it cannot be queried; so `Deno.openKv`, of the same list, shows it. A host that provides
 * `Deno.cron`, which is not listed, provides both by itself, so that it shows nothing there.
 */
function hasUnstableOptions(): boolean {
  return typeof Deno.openKv === "function" && typeof Deno.cron !== "function";
}

function processTier(): TierAnswer {
  if (Deno.build.os === "windows") {
    return missing("a child and what it starts are ended as a POSIX process group");
  }
  if (typeof Deno.Command !== "function") return missing("this host starts no processes");
  if (typeof Deno.permissions?.querySync !== "function") {
    return missing("this host has no permissions to ask for");
  }
  const granted = {
    run: hasSystemLimits() || mayStartItself(),
    write: hasTemporaryFolder("write"),
    read: hasTemporaryFolder("read"),
  };
  for (const [name, is_granted] of Object.entries(granted)) {
    if (!is_granted) {
      return missing(`this process may not start and watch children: it needs --allow-${name}`);
    }
  }
  return { available: true };
}

/** Returns whether this process may use the folder for temporary files, where each child has its own. */
function hasTemporaryFolder(name: "read" | "write"): boolean {
  return [{ name }, { name, path: "/tmp" }].some((descriptor) =>
    Deno.permissions.querySync(descriptor).state === "granted"
  );
}

function missing(reason: string): TierAnswer {
  return { available: false, reason };
}
