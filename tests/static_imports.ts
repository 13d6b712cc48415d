/** What a file loads when it is imported, as Deno resolves it. */
import { assert } from "./assert.ts";

interface Graph {
  roots: string[];
  redirects: Record<string, string>;
  modules: {
    specifier: string;
    dependencies?: { code?: { specifier: string }; isDynamic?: boolean; specifier: string }[];
  }[];
}

/** Resolves to what a file loads when it is imported, dynamic imports left out. */
export function staticImports(path: string): Promise<string[]> {
  return reachable(path, false);
}

/** Resolves to what `deno run` reads before it starts a file: what it imports later too, when its name stands there. */
export function graphAtStart(path: string): Promise<string[]> {
  return reachable(path, true);
}

async function reachable(path: string, dynamic: boolean): Promise<string[]> {
  const { stdout, success } = await new Deno.Command(Deno.execPath(), { args: ["info", "--json", path] })
    .output();
  assert(success);
  const { roots, redirects, modules }: Graph = JSON.parse(new TextDecoder().decode(stdout));
  const bySpecifier = new Map(modules.map((module) => [module.specifier, module]));
  const seen = new Set<string>();
  const queue = [...roots];
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    const specifier = redirects[next] ?? next;
    if (seen.has(specifier)) continue;
    seen.add(specifier);
    for (const { code, isDynamic } of bySpecifier.get(specifier)?.dependencies ?? []) {
      if (code && (dynamic || !isDynamic)) queue.push(code.specifier);
    }
  }
  return [...seen];
}
