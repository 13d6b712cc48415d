/**
 * What a file seems to import, so that the next files are on their way before the bundler asks for them. A guess: the bundler
 * alone knows (a lexer cannot read TSX, and types are dropped), and a wrong guess costs a request or a second bundle.
 */
import { init, parse } from "es-module-lexer";

/** Returns the specifiers that a module in TypeScript or JavaScript imports; none when it cannot be read. */
export async function guessImports(text: string): Promise<string[]> {
  await init();
  try {
    const [imports] = parse(text);
    return imports.flatMap((found) => {
      if (found.type === "import-meta") return [];
      if (found.type !== "dynamic") return found.typeOnly ? [] : [found.specifier];
      return found.specifier === undefined || found.glob || found.probablyTypeOnly ? [] : [found.specifier];
    });
  } catch {
    return []; // the bundler says what is wrong with it, and where
  }
}
