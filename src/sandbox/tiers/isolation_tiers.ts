/** Which tiers this host can give, found out without starting anything (modules.md: a host that cannot give a tier says so). */

/** The tiers that run a module elsewhere. */
export type GuestTier = "worker" | "process";

/** Whether a tier is to be had, or why not. */
export type TierAnswer = { readonly available: true } | {
  readonly available: false;
  readonly reason: string;
};

/** What this host has. */
export type TierReport = Readonly<Record<GuestTier, TierAnswer>>;

let known: TierReport | undefined;

/** Returns what this host has. The answer does not change while the process lives. */
export function hostTiers(): TierReport {
  return known ??= { worker: workerTier(), process: processTier() };
}

let bundler: TierAnswer | undefined;

/** Returns whether the bundler of modules can have a process of its own here. The answer does not change either. */
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
    return false; // this host has no programs, or does not say where this one is
  }
}

function workerTier(): TierAnswer {
  if (typeof Worker !== "function") return missing("this host has no workers");
  if (Deno.build.standalone) return { available: true };
  const [major = 0, minor = 0] = Deno.version.deno.split(".").map(Number);
  // before 2.8 the option ends the process where its flag is missing, and nobody can ask for the flag
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
    // told below
  }
  return missing("there is no /bin/sh to set a child's limits with");
}

/** A child has a folder of its own under the system's: that much of a list will do. */
function isFolderGranted(name: "run" | "read" | "write"): boolean {
  if (name === "run") return false;
  return Deno.permissions.querySync({ name, path: "/tmp" }).state === "granted";
}

function missing(reason: string): TierAnswer {
  return { available: false, reason };
}
