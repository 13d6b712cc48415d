/**
 * Converts a bundle to a file for others: it imports the parts of the SDK, and its source map names no local
 * folder.
 */
import { readMap, splitMap, withMap } from "./source_map.ts";
import type { ModuleBundle } from "../types.ts";

/**
 * Returns a bundle as a self-contained file. Its first line imports the parts of the SDK and publishes them
 * where the code reads them, unless the host already did.
 */
export function publishable({ code: bundle, uses, url }: ModuleBundle): string {
  const { code, comment } = splitMap(bundle);
  const lines = uses.length === 0 ? 0 : 1;
  const head = lines === 0 ? "" : `${headOf(uses)}\n`;
  if (comment === "") return head + code;
  const map = readMap(comment);
  return withMap(head + code, {
    ...map,
    mappings: ";".repeat(lines) + map.mappings,
    sources: map.sources.map((source) => relativeTo(source, url)),
  });
}

/**
 * Reads a text of {@link publishable}; returns the parts of the SDK that it uses, and its code with unchanged
 * lines.
 */
export function readHead(text: string): { uses: string[]; code: string } {
  const end = text.indexOf("\n");
  const line = end === -1 ? text : text.slice(0, end);
  const uses = [...line.matchAll(/import \* as preamp_\d+ from "([^"]+)";/g)].map(([, name = ""]) => name);
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

/** Returns the URL of a source relative to the entry's folder, or only its name if it is elsewhere. */
function relativeTo(source: string, entry: string): string {
  if (!source.startsWith("file:")) return source;
  const folder = new URL(".", entry).href;
  return source.startsWith(folder) ? source.slice(folder.length) : source.slice(source.lastIndexOf("/") + 1);
}
