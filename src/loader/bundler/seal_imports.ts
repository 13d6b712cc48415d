/**
 * Imports that are left in a bundle, computed ones above all, made to throw. Module loads are not covered by permissions, so
 * no `import` may survive (modules.md, Loading 4). Positions do not move, and so the source map stays true.
 */
import { init, parse } from "es-module-lexer/minimal";

/** A bundle in which nothing imports. */
export interface Sealed {
  readonly code: string;
  /** Names it exports. */
  readonly exports: readonly string[];
  /** Offsets in the code of the imports that were overwritten. */
  readonly refused: readonly { offset: number; specifier: string | null }[];
}

/** Letters of `import`: what stands in its place has as many. */
const KEYWORD = "import";

/**
 * Returns the bundle with every dynamic import overwritten by a function that rejects with `import_refused`.
 *
 * @throws {Error} when an import is left that cannot be overwritten, or the text cannot be read: it must not be used.
 */
export async function sealImports(code: string): Promise<Sealed> {
  await init();
  const [imports, exports] = parse(code);
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
  if (parse(sealed)[0].some(({ d }) => d !== -2)) {
    throw new Error("Cannot seal the bundle: an import is left");
  }
  return { code: sealed, exports: names, refused };
}

/** Returns a name of six letters that the text does not hold. */
function freeName(code: string): string {
  for (let number = 0; number < 36 ** 4; number++) {
    const name = `$i${number.toString(36).padStart(4, "0")}`;
    if (!code.includes(name)) return name;
  }
  throw new Error("Cannot seal the bundle: it uses every name");
}

/** A declaration: it is there before the first statement runs. `import.source(…)` and `import.defer(…)` are calls on it. */
function refusingFunction(name: string): string {
  const message = '"Cannot import " + what + ": a module has only what it was bundled with"';
  return `\nfunction ${name}(specifier) { let what = typeof specifier === "string" ? JSON.stringify(specifier) : ` +
    `typeof specifier; return Promise.reject(Object.assign(new Error(${message}), { code: "import_refused" })); }\n` +
    `${name}.source = ${name}.defer = ${name};\n`;
}
