/** Starts the compiled program as one of its own child processes. Under `deno run` each child has an entry file. */

/** Runs the child process of this role, which ends the process itself. Returns if there is no such role. */
export async function runChild(role: readonly string[]): Promise<void> {
  // a sandboxed module (src/sandbox/tiers/process_tier.ts)
  if (role[0] === "guest") {
    const { runGuestChild } = await import("../sandbox/child/child.ts");
    await runGuestChild();
  }
  // the bundler (src/loader/bundler/bundler_process.ts)
  if (role.join(" ") === "bundle") {
    const { runBundlerChild } = await import("../loader/bundler/bundler_child.ts");
    await runBundlerChild();
  }
  // a module under `preamp module validate` (src/app/validation/process.ts)
  if (role.join(" ") === "validate") {
    const { runValidatorChild } = await import("../app/validation/child.ts");
    await runValidatorChild();
  }
}
