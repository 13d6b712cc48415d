/** Computes the digest of a module's graph, and compares files and graphs with the pins of plan and lock. */
import { isInline, type Lock, type LockedFile, LockLookup } from "../plan/lock.ts";
import { canonicalHash } from "../sdk/digest.ts";
import { PreampError } from "../sdk/errors.ts";
import { displayUrl } from "./module_errors.ts";
import { mediaTypeOf } from "./fetch/specifiers.ts";
import type { GraphFile, LoadContext, LoadSpec } from "./types.ts";

/** Pins of one module. */
export interface IntegrityPins {
  /** Digests that the graph must have, at most one. */
  readonly integrity: readonly string[];
  /** Whether the lock contains the module: then it must contain all its files. */
  readonly locked: boolean;
  /** Lock whose files must have the locked bytes, whichever module imports them. */
  readonly lock?: Lock;
  readonly base_url?: string;
}

/**
 * Returns a module's pins.
 * @throws {PreampError} `module_pin_required` if every module must be pinned and this one is not;
 * `module_integrity_mismatch` if plan and lock differ.
 */
export function pinsOf(spec: LoadSpec, context: LoadContext, name: string): IntegrityPins {
  const { lock, base_url } = context;
  const locked = lock ? LockLookup.of(lock, base_url).modulesOf(spec.source) : [];
  const pinned = [spec.integrity, ...locked.map((module) => module.integrity)];
  const integrity = [...new Set(pinned.filter((digest) => digest !== undefined))];
  if (integrity.length > 1) {
    throw new PreampError(
      "module_integrity_mismatch",
      spec.integrity === undefined
        ? `Cannot load ${name}: the lock has it twice, as ${integrity[0]} and as ${
          integrity[1]
        }: run preamp plan lock`
        : `Cannot load ${name}: the plan pins ${integrity[0]} and the lock ${
          integrity[1]
        }: run preamp plan lock, or remove one of them`,
    );
  }
  if ((context.frozen ?? context.policy.modules.frozen) && integrity.length === 0) {
    throw new PreampError(
      "module_pin_required",
      `Cannot load ${name}: every module must be pinned, and neither plan nor lock has its integrity: run preamp plan lock`,
    );
  }
  return {
    integrity,
    locked: locked.length > 0,
    ...(lock ? { lock } : {}),
    ...(base_url === undefined ? {} : { base_url }),
  };
}

/** Compares a file with the lock. @throws {PreampError} `module_integrity_mismatch` if the bytes differ. */
export function checkFile(file: GraphFile, pins: IntegrityPins): void {
  const expected = lockedFiles(file, pins).find(({ sha256 }) => sha256 !== file.sha256);
  if (expected === undefined) return;
  throw new PreampError(
    "module_integrity_mismatch",
    `Cannot load ${
      displayUrl(file.url, pins.base_url)
    }: its bytes are not those of the lock: expected sha256 ` +
      `${expected.sha256}: received ${file.sha256} (${file.bytes} bytes, the lock says ${expected.bytes}); ` +
      "if the change is yours, run preamp plan lock",
    { facts: { url: displayUrl(file.url, pins.base_url), expected: expected.sha256, received: file.sha256 } },
  );
}

/**
 * Checks a graph: the lock contains every file of a locked module with these bytes, and the digest equals the
 * pin.
 * @throws {PreampError} `module_pin_required`, `module_integrity_mismatch`.
 */
export function checkGraph(
  graph: { integrity: string; url: string; files: readonly GraphFile[] },
  pins: IntegrityPins,
  name: string,
): void {
  for (const file of graph.files) {
    checkFile(file, pins);
    if (pins.locked && !isInline(file.url) && lockedFiles(file, pins).length === 0) {
      throw new PreampError(
        "module_pin_required",
        `Cannot load ${name}: the lock has the module but not ${
          displayUrl(file.url, pins.base_url)
        }: run preamp plan lock`,
      );
    }
  }
  const [expected] = pins.integrity;
  if (expected === undefined || expected === graph.integrity) return;
  const which = graph.files.length === 1
    ? `the bytes of ${displayUrl(graph.url, pins.base_url)}`
    : pins.locked
    ? "which files it has"
    : `one of its ${graph.files.length} files (a lock would say which)`;
  throw new PreampError(
    "module_integrity_mismatch",
    `Cannot load ${name}: ${which} changed: expected ${expected}: received ${graph.integrity}${
      pins.locked ? "; if the change is yours, run preamp plan lock" : ""
    }`,
    { facts: { url: displayUrl(graph.url, pins.base_url), expected, received: graph.integrity } },
  );
}

function lockedFiles({ url }: GraphFile, { lock, base_url }: IntegrityPins): readonly LockedFile[] {
  return lock ? LockLookup.of(lock, base_url).filesAt(url) : [];
}

/** One line of a manifest. */
export interface ManifestEntry {
  /** Path relative to the entry; for another origin its whole URL. */
  readonly path: string;
  /** Lower-case hex SHA-256 of the bytes. */
  readonly sha256: string;
}

/**
 * Returns the manifest of a graph, sorted by path. The same files at another address have the same manifest.
 */
export function manifestOf(entry: string, files: readonly GraphFile[]): ManifestEntry[] {
  return files.map(({ url, sha256 }) => ({ path: pathFrom(entry, url, sha256), sha256 }))
    .sort((a, b) => a.path < b.path ? -1 : a.path > b.path ? 1 : 0);
}

/** Returns `sha256-…` of the canonical JSON of a graph's manifest. */
export function integrityOf(entry: string, files: readonly GraphFile[]): string {
  return canonicalHash(manifestOf(entry, files));
}

/** Returns the path of a file as the manifest has it: `./mod.ts`, `../lib/x.ts?v=2`, or a URL. */
export function pathFrom(entry: string, url: string, sha256: string): string {
  if (url.startsWith("data:")) return `data:${mediaTypeOf(url)},${sha256}`; // its bytes may be megabytes
  const from = new URL(entry);
  const to = new URL(url);
  const same = from.protocol === to.protocol && from.host === to.host;
  if (!same) return url;
  const folders = from.pathname.split("/").slice(1, -1);
  const parts = to.pathname.split("/").slice(1);
  let shared = 0;
  while (shared < folders.length && shared < parts.length - 1 && folders[shared] === parts[shared]) shared++;
  const up = folders.slice(shared).map(() => "..");
  return [...(up.length > 0 ? up : ["."]), ...parts.slice(shared)].join("/") + to.search;
}
