/**
 * Finds the imports that a file appears to have, so that they are fetched before the bundler requests them. A guess: the lexer does not
 * understand TSX and type imports; a wrong guess costs a request or a second bundling. Runs in the bundler's process.
 */
import { init, parse } from "es-module-lexer";
import { resolveSpecifier } from "../fetch/specifiers.ts";
import type { BundlerFile, ImportsOptions } from "../types.ts";

/**
 * Returns the distinct URLs that a module appears to import; none if the lexer rejects it.
 * @throws {Error} if the lexer itself fails.
 */
export async function findImports(
  { url, bytes }: Pick<BundlerFile, "url" | "bytes">,
  { max, esm_host }: ImportsOptions,
): Promise<string[]> {
  await init();
  const urls = new Set<string>();
  for (const specifier of specifiersOf(new TextDecoder().decode(bytes))) {
    const resolved = resolveSpecifier(specifier, url, esm_host);
    // data: URLs need no request
    if (resolved.kind === "url" && !resolved.url.startsWith("data:")) urls.add(resolved.url);
    if (urls.size >= max) break;
  }
  return [...urls];
}

function specifiersOf(text: string): string[] {
  try {
    const [imports] = parse(text);
    return imports.flatMap((found) => {
      if (found.type === "import-meta") return [];
      if (found.type !== "dynamic") return found.typeOnly ? [] : [found.specifier];
      return found.specifier === undefined || found.glob || found.probablyTypeOnly ? [] : [found.specifier];
    });
  } catch (error) {
    if (error instanceof RangeError || error instanceof WebAssembly.RuntimeError) throw error;
    return []; // the bundler reports syntax errors
  }
}
