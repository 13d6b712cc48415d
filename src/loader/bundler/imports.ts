/**
 * What a file seems to import, so that the next files are on their way before the bundler asks for them. A guess: the bundler
 * alone knows (a lexer cannot read TSX, and types are dropped), and a wrong guess costs a request or a second bundle. Runs in
 * the bundler's process: the time it takes is the author's choice.
 */
import { init, parse } from "es-module-lexer";
import { resolveSpecifier } from "../fetch/specifiers.ts";
import type { BundlerFile, ImportsOptions } from "../types.ts";

/**
 * Returns the URLs that a module in TypeScript or JavaScript imports, each once; none when it cannot be read.
 * @throws {Error} when the lexer itself fails.
 */
export async function findImports(
  { url, bytes }: Pick<BundlerFile, "url" | "bytes">,
  { max, esm_host }: ImportsOptions,
): Promise<string[]> {
  await init();
  const urls = new Set<string>();
  for (const specifier of specifiersOf(new TextDecoder().decode(bytes))) {
    const resolved = resolveSpecifier(specifier, url, esm_host);
    // what is in the URL itself needs no request
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
    return []; // the bundler says what is wrong with it, and where
  }
}
