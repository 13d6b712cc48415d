/** Bundles the script of the server's page with the loader's bundler, which is closed again. */
import type { BundlerFile } from "../loader/types.ts";
import { bundlerProcess } from "../sandbox/process_support.ts";

/** The sources of a script. */
export interface ScriptSources {
  /** URL of the first file. */
  readonly entry: string;
  readonly files: readonly BundlerFile[];
  /** Maps bare specifiers to URLs of files. */
  readonly imports: Readonly<Record<string, string>>;
}

/** Bundles a script for browsers; resolves to its code, or to the URLs of files that are missing. */
export type BundleScript = (sources: ScriptSources) => Promise<{ code: string } | { missing: string[] }>;

/** Milliseconds of its own time for a bundle: the sources are the program's own. */
const DEADLINE_MS = 60_000;

/**
 * Bundles in a child process, or in this one where none can be started.
 *
 * @throws {Error} that lists what is wrong in the sources; `module_load_failed` if the bundler fails.
 */
export const bundleScript: BundleScript = async ({ imports, ...sources }) => {
  const own = bundlerProcess();
  const bundler = own.available
    ? (await import("../loader/bundler/bundler_process.ts")).createBundlerProcess({
      deadline_ms: DEADLINE_MS,
    })
    : (await import("../loader/bundler/bundler_in_process.ts")).createInProcessBundler(own.reason);
  try {
    const answer = await bundler.bundle(
      { ...sources, redirects: {}, failed: {}, esm_host: "none", page: { imports, jsx: "preact" } },
      { name: "the page", owner: "server", trusted: true },
    );
    if (answer.kind === "missing") return { missing: answer.urls.map(({ url }) => url) };
    if (answer.kind === "bundle") {
      return { code: answer.code.slice(0, answer.code.lastIndexOf("\n//# sourceMappingURL=") + 1) };
    }
    const places = answer.problems.map(({ message, url, line }) => `${url}:${line}: ${message}`);
    throw new Error(`Cannot bundle the page: ${places.join("; ")}`);
  } finally {
    await bundler.close();
  }
};
