/**
 * A bundle as a file for others: it says again what it takes from the host, as imports, and its source map names no folder of
 * this machine. Pure.
 */
import type { SourceMap } from "./source_map.ts";
import type { ModuleBundle } from "../types.ts";

const MAP_COMMENT = "\n//# sourceMappingURL=data:application/json;base64,";

/**
 * Returns the text of a bundle that stands alone: loaded again it is the same module. The parts of the SDK are imported on
 * its first line and put where the code looks for them, unless the host did.
 */
export function publishable({ code, uses, url }: ModuleBundle): string {
  const at = code.lastIndexOf(MAP_COMMENT);
  const text = at === -1 ? code : code.slice(0, at);
  const lines = uses.length === 0 ? 0 : 1;
  const head = lines === 0 ? "" : `${headOf(uses)}\n`;
  if (at === -1) return head + text;
  const encoded = code.slice(at + MAP_COMMENT.length).trim();
  const map = JSON.parse(new TextDecoder().decode(Uint8Array.fromBase64(encoded))) as SourceMap; // bundle.ts wrote it
  const shifted = {
    ...map,
    mappings: ";".repeat(lines) + map.mappings,
    sources: map.sources.map((source) => relativeTo(source, url)),
  };
  const bytes = new TextEncoder().encode(JSON.stringify(shifted));
  return `${head}${text}${MAP_COMMENT}${bytes.toBase64()}\n`;
}

/** Returns what a text that {@link publishable} made takes from the host, and its code with every line in its place. */
export function readHead(text: string): { uses: string[]; code: string } {
  const end = text.indexOf("\n");
  const line = end === -1 ? text : text.slice(0, end);
  const uses = [...line.matchAll(/import \* as preamp_\d+ from "([a-z/]+)";/g)].map(([, name = ""]) => name);
  return uses.length > 0 && line === headOf(uses)
    ? { uses, code: text.slice(end) }
    : { uses: [], code: text };
}

function headOf(uses: readonly string[]): string {
  const imports = uses.map((name, index) => `import * as preamp_${index} from ${JSON.stringify(name)};`);
  const parts = uses.map((name, index) => `sdk[${JSON.stringify(name)}]??=preamp_${index};`);
  const holder = `globalThis[Symbol.for("preamp.sdk")]??=Object.create(null)`;
  return `${imports.join("")}{const sdk=${holder};${parts.join("")}}`;
}

/** Files are told from the entry's folder, or by name alone when they lie elsewhere. */
function relativeTo(source: string, entry: string): string {
  if (!source.startsWith("file:")) return source;
  const folder = new URL(".", entry).href;
  return source.startsWith(folder) ? source.slice(folder.length) : source.slice(source.lastIndexOf("/") + 1);
}
