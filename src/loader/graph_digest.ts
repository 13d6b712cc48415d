/** The digest of a module's graph: the one number that `integrity` pins (plan.md). Pure. */
import { canonicalHash } from "../sdk/digest.ts";
import { mediaTypeOf } from "./fetch/media_type.ts";
import type { GraphFile } from "./types.ts";

/** One line of a manifest. */
export interface ManifestEntry {
  /** Path relative to the entry; for another origin its whole URL. */
  readonly path: string;
  /** Lower-case hex SHA-256 of the bytes. */
  readonly sha256: string;
}

/** Returns the manifest of a graph, sorted by path. The same files at another address have the same manifest. */
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
