/** Finds out whether this host can run modules and the bundler in child processes, without starting one. */
import type { TierAnswer } from "../policy/authorise.ts";
import { hasSystemLimits, mayRun } from "../process/system_limits.ts";

/** Text of hosts where nothing but its own watchdog limits a child. */
const WATCHDOG_ONLY =
  "watchdog only: this process cannot start /bin/sh, which sets limits of the operating system";

/** Returns what is missing in the limits of children on this host; undefined if nothing is. */
export function missingLimits(): string | undefined {
  return processTier().available && !hasSystemLimits() ? WATCHDOG_ONLY : undefined;
}

let tier: TierAnswer | undefined;

/** Returns whether modules can run in child processes. The answer stays for the life of the process. */
export function processTier(): TierAnswer {
  return tier ??= findProcessTier();
}

let bundler: TierAnswer | undefined;

/**
 * Returns whether the bundler can run in a process of its own. The answer stays for the life of the process.
 */
export function bundlerProcess(): TierAnswer {
  return bundler ??= mayStartItself() ? { available: true } : missing(
    "this process may not start itself (it needs --allow-run): it bundles only trusted modules, and takes what " +
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

function findProcessTier(): TierAnswer {
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
