/** What the bundler made and what was fetched, as one bundle. Pure. */
import type { GraphPrefetcher } from "./fetch/prefetch.ts";
import { integrityOf, pathFrom } from "./graph_digest.ts";
import type { BundleAnswer, ModuleBundle } from "./types.ts";

/** Returns the bundle of an answer: only files that went in are a part of the graph. */
export function bundleOf(
  requested: string,
  entry: string,
  graph: Pick<GraphPrefetcher, "files" | "added" | "redirects" | "requests">,
  answer: BundleAnswer & { kind: "bundle" },
): ModuleBundle {
  const files = answer.inputs.flatMap((url) => {
    const file = graph.files.get(url);
    return file ? [{ url, sha256: file.sha256, bytes: file.bytes.length }] : [];
  });
  files.push(...answer.inline);
  files.push(...graph.added.map(({ url, sha256, bytes }) => ({ url, sha256, bytes: bytes.length })));
  const paths = new Map(files.map((file) => [file, pathFrom(entry, file.url, file.sha256)]));
  files.sort((a, b) => paths.get(a)! < paths.get(b)! ? -1 : 1); // each has its own
  const used = new Set(answer.inputs);
  const requests = graph.requests.filter(({ url }) => used.has(graph.redirects.get(url) ?? url));
  const { code, exports, uses, imports_refused, declared } = answer;
  return {
    requested,
    url: entry,
    integrity: integrityOf(entry, files),
    files,
    exports,
    uses,
    imports_refused,
    code,
    declared,
    requests,
  };
}
