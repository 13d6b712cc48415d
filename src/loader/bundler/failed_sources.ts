/** Remembers sources on which the bundler failed, by their content, and refuses them for ten minutes. */
import { createHash } from "node:crypto";
import { PreampError } from "../../sdk/errors.ts";
import { kindOfUrl } from "../fetch/media_type.ts";
import type { BundlerFile } from "../types.ts";

/** Most remembered sources; the oldest is removed first. */
const MAX_SOURCES = 1_000;
/** Milliseconds that a source is refused; not forever, since the failure may have been the host's. */
const REMEMBERED_MS = 10 * 60_000;

interface Failure {
  until: number;
  problem: BundlerFailure;
}

/** Reason of a failed bundling. */
export interface BundlerFailure {
  readonly code: "module_invalid" | "module_load_failed";
  /** The second half of "Cannot bundle NAME: …". */
  readonly fact: string;
}

/** Failed sources with their reasons. */
export class FailedSources {
  readonly #failures = new Map<string, Failure>();

  /** Checks files. @throws {PreampError} If the bundler failed on the same files before. */
  check(files: readonly BundlerFile[], name: string): void {
    if (this.#failures.size === 0) return;
    const known = this.#failures.get(keyOf(files));
    if (known && performance.now() < known.until) throw bundleFailure(name, known.problem);
  }

  /** Adds files and returns the error for them. */
  add(files: readonly BundlerFile[], name: string, problem: BundlerFailure): PreampError {
    const key = keyOf(files);
    this.#failures.delete(key);
    this.#failures.set(key, { until: performance.now() + REMEMBERED_MS, problem });
    const [oldest] = this.#failures.keys();
    if (this.#failures.size > MAX_SOURCES && oldest !== undefined) this.#failures.delete(oldest);
    return bundleFailure(name, problem);
  }
}

/** Returns the hash of contents and kinds of files; their URLs do not matter. */
function keyOf(files: readonly BundlerFile[]): string {
  const hash = createHash("sha256");
  for (const line of files.map(({ url, sha256 }) => `${kindOfUrl(url)} ${sha256}\n`).sort()) {
    hash.update(line);
  }
  return hash.digest("hex");
}

function bundleFailure(name: string, { code, fact }: BundlerFailure): PreampError {
  return new PreampError(
    code,
    `Cannot bundle ${name}: ${fact}: make the module smaller or simpler`,
  );
}

/** Returns the reason for an error of esbuild itself. */
export function problemOfFailure(message: string): BundlerFailure {
  const fact = message.includes("call stack size exceeded")
    ? "its code is nested too deeply"
    : message.includes("memory")
    ? "it needs too much memory"
    : `the bundler failed on it (${message.slice(0, 200)})`;
  return { code: "module_invalid", fact };
}
