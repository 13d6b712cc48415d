/**
 * Sources that the bundler failed on: it is not asked again about the same bytes, whoever sends them and under whatever
 * address. Bounded, and for a while only: a failure may also have been this host's.
 */
import { createHash } from "node:crypto";
import { PreampError } from "../../sdk/errors.ts";
import { kindOfUrl } from "../fetch/media_type.ts";
import type { BundlerFile } from "../types.ts";

/** Sources that are remembered; the one that failed longest ago is forgotten first. */
const MAX_SOURCES = 1_000;
/** Milliseconds that a source is remembered. */
const REMEMBERED_MS = 10 * 60_000;

interface Failure {
  until: number;
  problem: BundlerFailure;
}

/** Why the bundler has no answer for a source. */
export interface BundlerFailure {
  readonly code: "module_invalid" | "module_load_failed";
  /** The second half of "Cannot bundle NAME: …". */
  readonly fact: string;
}

/** Remembers on which bytes the bundler failed, and why. */
export class FailedSources {
  readonly #failures = new Map<string, Failure>();

  /** @throws {PreampError} `module_invalid` when the bundler failed on these files before. */
  check(files: readonly BundlerFile[], name: string): void {
    if (this.#failures.size === 0) return;
    const known = this.#failures.get(keyOf(files));
    if (known && performance.now() < known.until) throw bundleFailure(name, known.problem);
  }

  /** Remembers files and returns the error for them. */
  add(files: readonly BundlerFile[], name: string, problem: BundlerFailure): PreampError {
    const key = keyOf(files);
    this.#failures.delete(key);
    this.#failures.set(key, { until: performance.now() + REMEMBERED_MS, problem });
    const [oldest] = this.#failures.keys();
    if (this.#failures.size > MAX_SOURCES && oldest !== undefined) this.#failures.delete(oldest);
    return bundleFailure(name, problem);
  }
}

/** Returns a hash of contents: the address of a file says only how it is read. */
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

/** Returns what an error of the bundler itself says about the source. */
export function problemOfFailure(message: string): BundlerFailure {
  const fact = message.includes("call stack size exceeded")
    ? "its code is nested too deep"
    : message.includes("memory")
    ? "it takes more memory than there is for it"
    : `the bundler failed on it (${message.slice(0, 200)})`;
  return { code: "module_invalid", fact };
}
