/** The `deno.json` of a module author's folder, which maps "preamp" for editors and tests. */
import { isObject } from "../sdk/json.ts";
import { readOptional } from "./paths.ts";

/** Resolves to whether the nearest deno.json of a folder maps "preamp". */
export async function isMapped(folder: URL): Promise<boolean> {
  for (let at = folder;; at = new URL("../", at)) {
    for (const file of ["deno.json", "deno.jsonc"]) {
      const text = await readOptional(new URL(file, at), file).catch(() => undefined); // not readable: treated as absent
      if (text !== undefined) return maps(text);
    }
    if (at.pathname === new URL("../", at).pathname) return false;
  }
}

function maps(config: string): boolean {
  try {
    const { imports } = JSON.parse(config) as { imports?: unknown };
    return isObject(imports) && Object.hasOwn(imports, "preamp");
  } catch {
    return config.includes('"preamp"'); // it has comments or is not JSON: Deno reports that better
  }
}

/** Returns the text of a `deno.json` with these imports. */
export function denoJson(imports: Readonly<Record<string, string>>): string {
  const document = { exports: "./mod.ts", imports, exclude: [".preamp"], fmt: { lineWidth: 110 } };
  return `${JSON.stringify(document, null, 2)}\n`;
}
