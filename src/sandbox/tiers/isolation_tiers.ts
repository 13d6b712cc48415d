/** Finds out which isolation tiers this host supports, without starting anything. */

/** Tiers that run a module outside of this isolate. */
export type GuestTier = "worker" | "process";

/** Whether a tier is available, or why not. */
export type TierAnswer = { readonly available: true } | {
  readonly available: false;
  readonly reason: string;
};

/** Availability of each tier on this host. */
export type TierReport = Readonly<Record<GuestTier, TierAnswer>>;

let known: TierReport | undefined;

/** Returns which tiers this host supports. The result is the same for the life of the process. */
export function hostTiers(): TierReport {
  return known ??= { worker: workerTier(), process: processTier() };
}

let bundler: TierAnswer | undefined;

/** Returns whether the bundler can run in a process of its own. The result is the same for the life of the process. */
export function bundlerProcess(): TierAnswer {
  return bundler ??= mayStartItself() ? { available: true } : missing(
    "this process may not start itself (it needs --allow-run): it bundles only what modules.inline trusts, and takes what " +
      "preamp module bundle made",
  );
}

function mayStartItself(): boolean {
  try {
    const command = Deno.execPath();
    return typeof Deno.Command === "function" &&
      Deno.permissions.querySync({ name: "run", command }).state === "granted";
  } catch {
    return false; // the host has no subprocesses, or does not reveal the path of this executable
  }
}

function workerTier(): TierAnswer {
  if (typeof Worker !== "function") return missing("this host has no workers");
  if (Deno.build.standalone) return { available: true };
  const [major = 0, minor = 0] = Deno.version.deno.split(".").map(Number);
  // before 2.8 the option ends the process if its flag is missing, and the flag cannot be queried
  if (major > 2 || (major === 2 && minor >= 6)) return { available: true };
  return missing(`permissions of workers need Deno 2.6 or later: this is ${Deno.version.deno}`);
}

function processTier(): TierAnswer {
  if (Deno.build.os === "windows") return missing("limits of processes are set by a POSIX shell");
  if (typeof Deno.Command !== "function") return missing("this host starts no processes");
  if (typeof Deno.permissions?.querySync !== "function") {
    return missing("this host has no permissions to ask for");
  }
  const needed = [
    [{ name: "run", command: "/bin/sh" }, "--allow-run"],
    [{ name: "write" }, "--allow-write"],
    [{ name: "read" }, "--allow-read"],
  ] as const;
  for (const [descriptor, flag] of needed) {
    if (Deno.permissions.querySync(descriptor).state !== "granted" && !isFolderGranted(descriptor.name)) {
      return missing(`this process may not start and watch children: it needs ${flag}`);
    }
  }
  try {
    if (Deno.statSync("/bin/sh").isFile) return { available: true };
  } catch {
    // reported below
  }
  return missing("there is no /bin/sh to set a child's limits with");
}

/** Returns whether a list of folders includes the one for temporary files, where each child has its own. */
function isFolderGranted(name: "run" | "read" | "write"): boolean {
  if (name === "run") return false;
  return Deno.permissions.querySync({ name, path: "/tmp" }).state === "granted";
}

function missing(reason: string): TierAnswer {
  return { available: false, reason };
}
