/** Returns the import graph of a file, as Deno resolves it, and where its packages are. */
import { assert } from "./assert.ts";

interface Graph {
  roots: string[];
  redirects: Record<string, string>;
  npmPackages: Record<string, { localPath: string }>;
  modules: {
    specifier: string;
    dependencies?: { code?: { specifier: string }; isDynamic?: boolean; specifier: string }[];
  }[];
}

/** Resolves to the files and packages that a file imports statically. */
export function staticImports(path: string): Promise<string[]> {
  return reachable(path);
}

/** Resolves to all files and packages in a file's graph, with dynamic imports and types. */
export async function wholeGraph(path: string): Promise<string[]> {
  return (await graphOf(path)).modules.map(({ specifier }) => specifier);
}

/** Resolves to the folders in Deno's cache of the npm packages in a file's graph. */
export async function npmPackages(path: string): Promise<{ cached_at: string; path: string }[]> {
  const { npmPackages } = await graphOf(path);
  return Object.values(npmPackages).map(({ localPath }) => ({
    cached_at: localPath,
    path: localPath.replace(/^.*\/npm\//, ""),
  }));
}

async function reachable(path: string): Promise<string[]> {
  const { roots, redirects, modules } = await graphOf(path);
  const bySpecifier = new Map(modules.map((module) => [module.specifier, module]));
  const seen = new Set<string>();
  const queue = [...roots];
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    const specifier = redirects[next] ?? next;
    if (seen.has(specifier)) continue;
    seen.add(specifier);
    for (const { code, isDynamic } of bySpecifier.get(specifier)?.dependencies ?? []) {
      if (code && !isDynamic) queue.push(code.specifier);
    }
  }
  return [...seen];
}

async function graphOf(path: string): Promise<Graph> {
  const { stdout, success } = await new Deno.Command(Deno.execPath(), { args: ["info", "--json", path] })
    .output();
  assert(success);
  return JSON.parse(new TextDecoder().decode(stdout));
}
