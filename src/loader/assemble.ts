/** What the bundler made and what was fetched, as one bundle. Pure. */
import type { GraphFetch } from "./graph_fetch.ts";
import { integrityOf, pathFrom } from "./manifest.ts";
import type { BundleAnswer, ModuleBundle } from "./types.ts";

/** Returns the bundle of an answer: only files that went in are a part of the graph. */
export function bundleOf(
  requested: string,
  entry: string,
  graph: Pick<GraphFetch, "files">,
  answer: BundleAnswer & { kind: "bundle" },
): ModuleBundle {
  const files = answer.inputs.flatMap((url) => {
    const file = graph.files.get(url);
    return file ? [{ url, sha256: file.sha256, bytes: file.bytes.length }] : [];
  });
  files.sort((a, b) => pathFrom(entry, a.url, a.sha256) < pathFrom(entry, b.url, b.sha256) ? -1 : 1);
  const { code, exports, uses, imports_refused } = answer;
  return {
    requested,
    url: entry,
    integrity: integrityOf(entry, files),
    files,
    exports,
    uses,
    imports_refused,
    code,
  };
}
