/** The `deno.json` of an author's folder: it says where editors and tests find "preamp". */
import { isObject } from "../sdk/json.ts";
import { readOptional } from "./files.ts";

/** Resolves to whether the nearest deno.json of a folder says what "preamp" is. */
export async function isMapped(folder: URL): Promise<boolean> {
  for (let at = folder;; at = new URL("../", at)) {
    for (const file of ["deno.json", "deno.jsonc"]) {
      const text = await readOptional(new URL(file, at), file).catch(() => undefined); // above our reach: as if there were none
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
    return config.includes('"preamp"'); // it has comments, or is no JSON: Deno says so better than we do
  }
}

/** Returns the text of a `deno.json` with these imports. */
export function denoJson(imports: Readonly<Record<string, string>>): string {
  const document = { exports: "./mod.ts", imports, exclude: [".preamp"], fmt: { lineWidth: 110 } };
  return `${JSON.stringify(document, null, 2)}\n`;
}
