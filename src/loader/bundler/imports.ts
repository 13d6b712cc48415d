/**
 * Finds the imports in code with `es-module-lexer`: those of a source, so that they are fetched early, and
 * those that remain in a bundle, which are replaced. Runs in the bundler's process.
 */
import { init, parse } from "es-module-lexer";
import { init as initMinimal, parse as parseMinimal } from "es-module-lexer/minimal";
import { resolveSpecifier } from "../fetch/specifiers.ts";
import type { BundlerFile, ImportsOptions } from "../types.ts";

/**
 * Returns the distinct URLs that a module appears to import; none if the lexer rejects it. A guess: the lexer
 * does not understand TSX and type imports; a wrong guess costs a request or a second bundling.
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

/** A bundle without imports. */
export interface Sealed {
  readonly code: string;
  /** Names of its exports. */
  readonly exports: readonly string[];
  /** Replaced imports, with their offsets in the code. */
  readonly refused: readonly { offset: number; specifier: string | null }[];
}

/** The keyword; its replacement has the same length. */
const KEYWORD = "import";

/**
 * Replaces every import that remains in a bundle, mostly computed ones, by a function that rejects with
 * `import_refused`. Deno's permissions do not cover module loading, so none may remain. Positions do not
 * change, which keeps the source map valid.
 *
 * @throws {Error} if an import cannot be replaced or the text cannot be parsed: it must not be used.
 */
export async function sealImports(code: string): Promise<Sealed> {
  await initMinimal();
  const [imports, exports] = parseMinimal(code);
  const refused = imports.filter(({ d }) => d !== -2).map(({ ss, d, n }) => {
    if (d < 0 || code.slice(ss, ss + KEYWORD.length) !== KEYWORD) {
      throw new Error(`Cannot seal the bundle: it imports ${JSON.stringify(n ?? "something")}`);
    }
    return { offset: ss, specifier: n ?? null };
  });
  const names = exports.map(({ n }) => n);
  if (refused.length === 0) return { code, exports: names, refused };
  const name = freeName(code);
  let sealed = "";
  let position = 0;
  for (const { offset } of refused) {
    sealed += code.slice(position, offset) + name;
    position = offset + KEYWORD.length;
  }
  sealed += code.slice(position) + refusingFunction(name);
  if (parseMinimal(sealed)[0].some(({ d }) => d !== -2)) {
    throw new Error("Cannot seal the bundle: an import remains");
  }
  return { code: sealed, exports: names, refused };
}

/** Returns a name of six characters that the text does not contain. */
function freeName(code: string): string {
  for (let number = 0; number < 36 ** 4; number++) {
    const name = `$i${number.toString(36).padStart(4, "0")}`;
    if (!code.includes(name)) return name;
  }
  throw new Error("Cannot seal the bundle: it uses every name");
}

/**
 * Returns the replacing function. A declaration is hoisted; `source` and `defer` serve `import.source(…)` and
 * `import.defer(…)`.
 */
function refusingFunction(name: string): string {
  const message = '"Cannot import " + what + ": a module has only what it was bundled with"';
  return `\nfunction ${name}(specifier) { let what = typeof specifier === "string" ? JSON.stringify(specifier) : ` +
    `typeof specifier; return Promise.reject(Object.assign(new Error(${message}), { code: "import_refused" })); }\n` +
    `${name}.source = ${name}.defer = ${name};\n`;
}
