/** The compiled program as one of its own children: holds nothing, does nothing else. Under `deno run` they have files of their own. */

/** Runs the child of this role until it ends the process; returns when there is no such role. */
export async function runChild(role: readonly string[]): Promise<void> {
  // the place where one module of a run lives (src/sandbox/tiers/child_command.ts)
  if (role[0] === "guest") {
    const { runGuestChild } = await import("../sandbox/child/child.ts");
    await runGuestChild();
  }
  // the bundler of modules (src/loader/bundler/bundler_process.ts)
  if (role.join(" ") === "bundle") {
    const { runBundlerChild } = await import("../loader/bundler/bundler_child.ts");
    await runBundlerChild();
  }
  // the place where `preamp module validate` tries a module (src/app/validation/process.ts)
  if (role.join(" ") === "validate") {
    const { runValidatorChild } = await import("../app/validation/child.ts");
    await runValidatorChild();
  }
}
